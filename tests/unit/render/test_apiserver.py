"""Admission and encryption at rest."""

from __future__ import annotations

import yaml

from stacks.render import apiserver
from stacks.render.acceptance import acceptance
from stacks.render.coredns import coredns
from stacks.render.kube_proxy import kube_proxy
from tests.unit.render.examples import lab
from tests.unit.render.manifests import flannel


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
    before = lab(cluster={"name": "dev", "kubernetes": "1.36.3", "defaults": 1})
    assert apiserver.admission_configuration(before) == ""


def test_without_a_word_a_new_cluster_warns_of_what_is_under_baseline() -> None:
    parsed = yaml.safe_load(apiserver.admission_configuration(lab()))
    found = parsed["plugins"][0]["configuration"]["defaults"]
    levels = {mode: found[mode] for mode in ("enforce", "audit", "warn")}
    assert levels == {"enforce": "privileged", "audit": "baseline", "warn": "baseline"}


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
            "namespaces": ["kube-flannel", "kube-system", "storage"],
        },
    }


def test_a_namespace_that_the_cluster_does_not_make_is_not_spared() -> None:
    """Whoever makes one of that name could run what he likes there."""
    wanted = {"podSecurity": {"enforce": "restricted"}}
    none = lab(controlPlane=wanted, network={"plugin": "none"})
    parsed = yaml.safe_load(apiserver.admission_configuration(none))
    spared = parsed["plugins"][0]["configuration"]["exemptions"]["namespaces"]
    assert spared == ["kube-system"]


def test_every_namespace_of_our_own_manifests_is_spared_or_within_the_strictest_standard() -> None:
    plan = lab(controlPlane={"podSecurity": {"enforce": "restricted"}})
    parsed = yaml.safe_load(apiserver.admission_configuration(plan))
    spared = set(parsed["plugins"][0]["configuration"]["exemptions"]["namespaces"])
    used = {
        document["metadata"]["namespace"]
        for render in (coredns, flannel, kube_proxy)
        for document in yaml.safe_load_all(render(plan))
        if "namespace" in document["metadata"]
    }
    assert used <= spared
    namespace, daemons, _ = yaml.safe_load_all(acceptance(plan))
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    pod = daemons["spec"]["template"]["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & set(pod)
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert [one["securityContext"]["capabilities"] for one in pod["containers"]] == [
        {"drop": ["ALL"]}
    ]
