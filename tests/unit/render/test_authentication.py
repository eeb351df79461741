"""Who users are: the API server's AuthenticationConfiguration, and when flags say it in its place."""

from __future__ import annotations

import pytest
import yaml

from stacks.render import authentication
from tests.unit.certificate import certificate
from tests.unit.render.examples import lab
from tests.unit.render.kubeadm_documents import server_flags, volumes

CLUSTER = {"name": "dev", "kubernetes": "1.36.3"}
OIDC = {"issuerUrl": "https://id.example.com", "clientId": "kube"}
FILE = ("authentication-config", "/etc/kubernetes/authentication.yaml")


def test_a_new_cluster_takes_anonymous_requests_for_health_alone() -> None:
    parsed = yaml.safe_load(authentication.configuration(lab()))
    assert parsed == {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {
            "enabled": True,
            "conditions": [{"path": path} for path in ("/healthz", "/livez", "/readyz")],
        },
    }
    assert FILE in server_flags(lab())
    assert "authentication" in volumes(lab())


def test_a_cluster_from_before_has_no_such_file() -> None:
    plan = lab(cluster={**CLUSTER, "defaults": 1}, controlPlane={"oidc": OIDC})
    assert authentication.configuration(plan) == ""
    assert FILE not in server_flags(plan)
    assert ("oidc-issuer-url", "https://id.example.com") in server_flags(plan)


def test_one_issuer_means_by_the_file_what_it_means_by_flags() -> None:
    """The API server makes the same of its flags: options.ToAuthenticationConfig."""
    ca = certificate()
    oidc = {
        **OIDC,
        "groupsClaim": "groups",
        "groupsPrefix": "oidc:",
        "requiredClaims": {"hd": "example.com", "amr": "mfa"},
        "ca": ca,
    }
    plan = lab(controlPlane={"oidc": oidc})
    [found] = yaml.safe_load(authentication.configuration(plan))["jwt"]
    assert found["issuer"].pop("certificateAuthority").strip() == ca.strip()
    assert found == {
        "issuer": {"url": "https://id.example.com", "audiences": ["kube"]},
        "claimMappings": {
            "username": {"claim": "sub", "prefix": "https://id.example.com#"},
            "groups": {"claim": "groups", "prefix": "oidc:"},
        },
        "claimValidationRules": [
            {"claim": "amr", "requiredValue": "mfa"},
            {"claim": "hd", "requiredValue": "example.com"},
        ],
    }
    assert not [name for name, _ in server_flags(plan) if name.startswith("oidc-")]
    assert authentication.oidc_ca(plan) == ""


@pytest.mark.parametrize(
    ("said", "prefix"),
    [
        ({}, "https://id.example.com#"),
        ({"usernamePrefix": "-"}, ""),
        ({"usernamePrefix": "oidc:"}, "oidc:"),
        ({"usernameClaim": "email"}, ""),
    ],
)
def test_prefixes_of_users_are_those_of_the_flags(said: dict[str, str], prefix: str) -> None:
    plan = lab(controlPlane={"oidc": {**OIDC, **said}})
    [found] = yaml.safe_load(authentication.configuration(plan))["jwt"]
    assert found["claimMappings"]["username"]["prefix"] == prefix


def test_several_issuers_are_a_list_whatever_the_level() -> None:
    other = {"issuerUrl": "https://other.example.com", "clientId": "kube"}
    wanted = {"oidc": OIDC, "oidcIssuers": [other]}
    before = lab(cluster={**CLUSTER, "defaults": 1}, controlPlane=wanted)
    parsed = yaml.safe_load(authentication.configuration(before))
    urls = [each["issuer"]["url"] for each in parsed["jwt"]]
    assert urls == ["https://id.example.com", "https://other.example.com"]
    assert "anonymous" not in parsed
    assert "anonymous" in yaml.safe_load(authentication.configuration(lab(controlPlane=wanted)))


def test_signing_algorithms_are_flags_and_keep_everything_flags() -> None:
    plan = lab(controlPlane={"oidc": {**OIDC, "signingAlgs": ["ES256"]}})
    assert authentication.configuration(plan) == ""
    assert ("oidc-signing-algs", "ES256") in server_flags(plan)
