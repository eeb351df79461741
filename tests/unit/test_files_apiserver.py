"""Audit policy and encryption at rest."""

from __future__ import annotations

import yaml

from stacks.files import apiserver
from stacks.files.acceptance import acceptance
from stacks.files.coredns import coredns
from stacks.files.flannel import flannel
from stacks.files.kube_proxy import kube_proxy
from stacks.plan import Plan
from tests.unit.files_examples import assert_snapshot, lab

Rule = dict[str, object]


def _rules(plan: Plan) -> list[Rule]:
    rules: list[Rule] = yaml.safe_load(apiserver.audit_policy(plan))["rules"]
    return rules


def _level(rules: list[Rule], verb: str, group: str, resource: str, user_group: str) -> object:
    """The level that the API server would log a request at: that of the first rule that fits."""
    for rule in rules:
        verbs, groups, resources = (rule.get(key) for key in ("verbs", "userGroups", "resources"))
        if isinstance(verbs, list) and verb not in verbs:
            continue
        if isinstance(groups, list) and user_group not in groups:
            continue
        if isinstance(resources, list) and not any(
            each["group"] == group and resource in each["resources"] for each in resources
        ):
            continue
        return rule["level"]
    return "None"


def test_snapshot() -> None:
    assert_snapshot("audit-policy.yaml", apiserver.audit_policy(lab()))


def test_writes_are_logged_and_noise_is_not() -> None:
    rules = _rules(lab())
    admin, node = "system:masters", "system:nodes"
    assert _level(rules, "patch", "apps", "deployments", admin) == "Metadata"
    assert _level(rules, "delete", "", "pods", node) == "Metadata"
    assert _level(rules, "list", "", "pods", admin) == "None"
    assert _level(rules, "create", "", "events", admin) == "None"
    assert _level(rules, "update", "coordination.k8s.io", "leases", node) == "None"
    assert _level(rules, "patch", "", "nodes/status", node) == "None"
    assert _level(rules, "patch", "", "nodes/status", admin) == "Metadata"


def test_reading_secrets_and_entering_pods_is_logged() -> None:
    rules = _rules(lab())
    assert _level(rules, "get", "", "secrets", "developers") == "Metadata"
    assert _level(rules, "get", "", "pods/exec", "developers") == "Metadata"


def test_no_body_is_ever_logged() -> None:
    assert {rule["level"] for rule in _rules(lab())} == {"None", "Metadata"}


def test_the_users_policy_is_taken_whole() -> None:
    mine = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Request"}]}
    plan = lab(controlPlane={"audit": {"policy": mine}})
    assert yaml.safe_load(apiserver.audit_policy(plan)) == mine


def test_secrets_are_encrypted_and_older_ones_still_readable() -> None:
    parsed = yaml.safe_load(apiserver.encryption_config({"key-1": "a2V5"}))
    assert parsed["resources"] == [
        {
            "resources": ["secrets"],
            "providers": [
                {"secretbox": {"keys": [{"name": "key-1", "secret": "a2V5"}]}},
                {"identity": {}},
            ],
        }
    ]


def test_the_first_of_several_keys_encrypts() -> None:
    parsed = yaml.safe_load(apiserver.encryption_config({"key-2": "bmV3", "key-1": "b2xk"}))
    keys = parsed["resources"][0]["providers"][0]["secretbox"]["keys"]
    assert [key["name"] for key in keys] == ["key-2", "key-1"]


def test_without_a_word_on_pod_security_there_is_no_admission_file() -> None:
    assert apiserver.admission_configuration(lab()) == ""
    assert apiserver.oidc_ca(lab()) == ""


def test_pod_security_is_that_of_the_config_and_spares_the_clusters_own_parts() -> None:
    wanted = {
        "enforce": "baseline",
        "warn": "restricted",
        "version": "v1.36",
        "exemptNamespaces": ["storage", "kube-system"],
    }
    parsed = yaml.safe_load(
        apiserver.admission_configuration(lab(controlPlane={"podSecurity": wanted}))
    )
    assert (parsed["apiVersion"], parsed["kind"]) == (
        "apiserver.config.k8s.io/v1",
        "AdmissionConfiguration",
    )
    [plugin] = parsed["plugins"]
    assert plugin["name"] == "PodSecurity"
    assert plugin["configuration"] == {
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
        "defaults": {
            "enforce": "baseline",
            "enforce-version": "v1.36",
            "audit": "privileged",
            "audit-version": "v1.36",
            "warn": "restricted",
            "warn-version": "v1.36",
        },
        "exemptions": {
            "usernames": [],
            "runtimeClasses": [],
            "namespaces": ["kube-flannel", "kube-ha-acceptance", "kube-system", "storage"],
        },
    }


def test_every_namespace_of_our_own_manifests_is_spared() -> None:
    plan = lab(controlPlane={"podSecurity": {"enforce": "restricted"}})
    parsed = yaml.safe_load(apiserver.admission_configuration(plan))
    spared = set(parsed["plugins"][0]["configuration"]["exemptions"]["namespaces"])
    used = {
        document["metadata"]["namespace"]
        for render in (acceptance, coredns, flannel, kube_proxy)
        for document in yaml.safe_load_all(render(plan))
        if "namespace" in document["metadata"]
    }
    assert used <= spared
