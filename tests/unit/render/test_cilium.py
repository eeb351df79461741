"""Manifests of Cilium: settings, rights, and what goes where."""

from __future__ import annotations

import re

import pytest
import yaml

from stacks.cluster import artifacts
from stacks.cluster.plan import Plan
from stacks.networks import cilium, registry
from stacks.phases import downloads, gate, system_addons
from stacks.render import sysctl
from tests.unit.render.examples import assert_snapshot, lab
from tests.unit.render.manifests import Yaml, at, one, pod_of


def wanted(**network: object) -> Plan:
    return lab(network={"plugin": "cilium", **network})


def sized(masters: int, workers: int) -> Plan:
    return lab(masters, workers, network={"plugin": "cilium"})


def addon(name: str, plan: Plan | None = None) -> str:
    return system_addons.addons(plan or wanted())[name]


def settings(**network: object) -> dict[str, str]:
    data = at(one(addon("cilium", wanted(**network)), "ConfigMap"), "data")
    assert isinstance(data, dict)
    return {key: str(value) for key, value in data.items()}


def rules(role: str) -> list[tuple[set[str], set[str], set[str]]]:
    """Of a ClusterRole: groups, resources, verbs."""
    (found,) = [
        each
        for each in yaml.safe_load_all(addon("cilium-rights"))
        if (each["kind"], each["metadata"]["name"]) == ("ClusterRole", role)
    ]
    return [({*r["apiGroups"]}, {*r["resources"]}, {*r["verbs"]}) for r in found["rules"]]


@pytest.mark.parametrize("name", cilium.ADDONS)
def test_snapshots(name: str) -> None:
    assert_snapshot(f"{name}.yaml", addon(name))


@pytest.mark.parametrize("name", cilium.ADDONS)
def test_sizes_fit_into_one_command(name: str) -> None:
    assert len(addon(name)) <= 7000


@pytest.mark.parametrize("name", cilium.ADDONS)
def test_growing_changes_nothing(name: str) -> None:
    assert addon(name) == addon(name, sized(1, 1)) == addon(name, sized(3, 7))


def test_backends_differ_in_how_packets_go() -> None:
    assert settings()["routing-mode"] == "tunnel"
    by_routes = settings(backend="native")
    assert by_routes["routing-mode"] == "native"
    # Without it the sender of traffic between nodes would be hidden.
    assert by_routes["ipv4-native-routing-cidr"] == "10.244.0.0/16"
    assert by_routes["auto-direct-node-routes"] == "true"


@pytest.mark.parametrize(
    ("network", "told"),
    [({}, None), ({"mtu": 1400}, "1450"), ({"mtu": 1400, "backend": "native"}, "1400")],
)
def test_the_agent_is_told_what_is_beneath_the_packets_of_pods(
    network: dict[str, object], told: str | None
) -> None:
    assert settings(**network).get("mtu") == told


def test_pods_restart_when_their_settings_change() -> None:
    path = ("spec", "template", "metadata", "annotations", "kube-ha/config")
    for name in ("cilium", "cilium-operator"):
        plain, other = (
            at(one(addon(name, wanted(**network)), "DaemonSet"), *path)
            for network in ({}, {"mtu": 1400})
        )
        assert plain != other


def test_the_operator_is_on_masters_alone() -> None:
    pod = pod_of(addon("cilium-operator"))
    assert at(pod, "nodeSelector") == {"node-role.kubernetes.io/control-plane": ""}
    plan = wanted()
    assert "image/cilium-operator" in downloads.node_images(plan, plan.masters[0])
    assert "image/cilium-operator" not in downloads.node_images(plan, plan.workers[0])
    assert "image/cilium" in downloads.node_images(plan, plan.workers[0])


def test_a_workers_account_reads_no_secrets_and_writes_no_policies() -> None:
    writes = {
        (verb, resource)
        for _, resources, verbs in rules("cilium")
        for verb in verbs - {"get", "list", "watch"}
        for resource in resources
    }
    assert writes == {
        ("create", "ciliumendpoints"),
        ("create", "ciliumidentities"),
        ("create", "ciliumnodes"),
        ("delete", "ciliumendpoints"),
        ("patch", "ciliumendpoints"),
        ("patch", "ciliumendpoints/status"),
        ("update", "ciliumidentities"),
        ("update", "ciliumnodes"),
        ("update", "ciliumnodes/status"),
    }
    named = {resource for _, resources, _ in rules("cilium") for resource in resources}
    assert not named & {"*", "secrets", "configmaps"}


def test_no_rule_names_everything() -> None:
    for role in ("cilium", "cilium-operator"):
        for part in rules(role):
            assert "*" not in set().union(*part)


def test_services_are_kube_proxys_unless_cilium_implements_them() -> None:
    beside, alone = wanted(), wanted(kubeProxyReplacement=True)
    for plan, there in ((beside, True), (alone, False)):
        assert ("kube-proxy" in system_addons.addons(plan)) == there
        assert ("kube-system/daemonset/kube-proxy" in gate.of_gate(plan)["DEPLOYMENTS"]) == there
        for node in plan.nodes:
            assert ("image/kube-proxy" in downloads.node_images(plan, node)) == there
    # Without it a pod's ports of the machine would be nobody's beside kube-proxy.
    assert settings()["cni-chaining-mode"] == "portmap"
    assert settings()["kube-proxy-replacement"] == "false"
    assert "cni-chaining-mode" not in settings(kubeProxyReplacement=True)
    assert settings(kubeProxyReplacement=True)["kube-proxy-replacement"] == "true"


def test_images_are_those_that_nodes_fetch() -> None:
    plan = wanted()
    text = "".join(addon(name, plan) for name in cilium.ADDONS)
    said = set(re.findall(r'^ *image: "(\S+)"$', text, re.MULTILINE))
    network = registry.of(plan.spec)
    there = artifacts.images(plan)
    assert said == {there[name].ref for name in (*network.IMAGES, *network.MASTER_IMAGES)}


def test_images_of_another_network_are_none_of_the_cluster() -> None:
    assert not {"cilium", "cilium-operator"} & set(artifacts.images(lab()))


def test_the_machine_gets_its_kernel_settings_and_others_none() -> None:
    ours = "-net.ipv4.conf.lxc*.rp_filter = 0\n"
    assert ours in sysctl.sysctl(wanted())
    assert "rp_filter" not in sysctl.sysctl(lab())


def test_the_agent_outlives_the_api() -> None:
    pod = pod_of(addon("cilium"))
    headers = at(pod, "containers", 0, "livenessProbe", "httpGet", "httpHeaders")
    assert isinstance(headers, list)
    away: Yaml = {"name": "require-k8s-connectivity", "value": "false"}
    assert away in headers
