"""Manifests of Calico: what the config says in its objects, rights, and what goes where."""

from __future__ import annotations

import re

import pytest
import yaml

from stacks.checks.sizes import OTHER_VALUES
from stacks.cluster import artifacts
from stacks.cluster.plan import Plan
from stacks.networks import calico, calico_objects, calico_pods, registry
from stacks.phases import downloads, gate, nodes, system_addons
from stacks.phases.scripts import STDIN_LIMIT
from stacks.render import sysctl
from tests.unit.render.examples import assert_snapshot, lab
from tests.unit.render.manifests import Yaml, at, one, pod_of

BGP: dict[str, object] = {"backend": "bgp"}
REFLECTORS: dict[str, object] = {**BGP, "bgpTopology": "reflectors"}
ROUTERS = [
    {"address": "192.0.2.1", "asNumber": 65001, "zones": ["a", "b"], "passwordSecret": "rack-a"},
    {"address": "192.0.2.2", "asNumber": 65002},
]


def wanted(**network: object) -> Plan:
    return sized(3, 2, network)


def sized(masters: int, workers: int, network: dict[str, object] | None = None) -> Plan:
    return lab(masters, workers, network={"plugin": "calico", **(network or {})})


def addon(name: str, plan: Plan | None = None) -> str:
    return system_addons.addons(plan or wanted())[name]


def made(plan: Plan) -> dict[tuple[str, str], dict[str, Yaml]]:
    """`spec` by kind and name of what the config says in Calico's own objects."""
    found = yaml.safe_load_all(addon("calico-settings", plan))
    return {(each["kind"], each["metadata"]["name"]): each["spec"] for each in found}


def env(plan: Plan) -> dict[str, str]:
    found = at(pod_of(addon("calico-node", plan)), "containers", 0, "env")
    assert isinstance(found, list)
    rows = [each for each in found if isinstance(each, dict)]
    return {str(each["name"]): str(each["value"]) for each in rows if "value" in each}


def rules(role: str) -> list[tuple[set[str], set[str], set[str]]]:
    """Of a ClusterRole: groups, resources, verbs."""
    (found,) = [
        each
        for each in yaml.safe_load_all(addon("calico-rights"))
        if (each["kind"], each["metadata"]["name"]) == ("ClusterRole", role)
    ]
    return [({*r["apiGroups"]}, {*r["resources"]}, {*r["verbs"]}) for r in found["rules"]]


def named(row: str) -> set[str]:
    """Nodes of a line `a-[1-2],b-[3-3]<TAB>...`."""
    return {
        f"{begin}{number}"
        for begin, first, last in re.findall(r"([a-z-]+)\[(\d+)-(\d+)\]", row.partition("\t")[0])
        for number in range(int(first), int(last) + 1)
    }


def reflecting(plan: Plan) -> set[str]:
    """The label and the annotation have the same nodes."""
    said = nodes.of_nodes(plan)
    labelled, annotated = (
        {name for row in said[key].splitlines() if word in row for name in named(row)}
        for key, word in (
            ("LABELS", "route-reflector=true"),
            ("ANNOTATIONS", "RouteReflectorClusterID="),
        )
    )
    assert labelled == annotated
    return labelled


@pytest.mark.parametrize("name", calico.ADDONS)
def test_snapshots(name: str) -> None:
    assert_snapshot(f"{name}.yaml", addon(name))


@pytest.mark.parametrize("name", calico.ADDONS)
def test_sizes_fit_into_one_command(name: str) -> None:
    assert len(addon(name)) <= STDIN_LIMIT - OTHER_VALUES


@pytest.mark.parametrize("name", calico.ADDONS)
def test_more_workers_change_nothing(name: str) -> None:
    assert addon(name) == addon(name, sized(1, 1)) == addon(name, sized(3, 7))


@pytest.mark.parametrize(
    ("backend", "vxlan", "by"),
    [
        ("vxlan", "Always", "vxlan"),
        ("vxlan-across-subnets", "CrossSubnet", "vxlan"),
        ("bgp", "Never", "bird"),
    ],
)
def test_packets_go_as_the_backend_says(backend: str, vxlan: str, by: str) -> None:
    plan = wanted(backend=backend)
    pool = made(plan)["IPPool", "default-ipv4-ippool"]
    assert (pool["vxlanMode"], pool["ipipMode"], pool["cidr"]) == (vxlan, "Never", "10.244.0.0/16")
    assert env(plan)["CALICO_NETWORKING_BACKEND"] == by
    probes = addon("calico-node", plan)
    assert ("-bird-ready" in probes) == ("-bird-live" in probes) == (by == "bird")
    assert env(plan)["NO_DEFAULT_POOLS"] == "true"


def test_nodes_have_sessions_with_whom_the_config_says() -> None:
    def mesh(plan: Plan) -> Yaml:
        return made(plan)["BGPConfiguration", "default"]["nodeToNodeMeshEnabled"]

    assert mesh(wanted(**BGP)) is True
    assert ("BGPPeer", "route-reflectors") not in made(wanted(**BGP))
    peers = made(wanted(**REFLECTORS))["BGPPeer", "route-reflectors"]
    assert mesh(wanted(**REFLECTORS)) is False
    assert peers == {"nodeSelector": "all()", "peerSelector": f"has({calico_objects.REFLECTOR})"}
    both = wanted(**BGP, bgpTopology="mesh-and-reflectors")
    assert mesh(both) is True
    assert made(both)["BGPPeer", "route-reflectors"] == peers
    assert reflecting(both) == reflecting(wanted(**REFLECTORS)) == {"worker-1", "worker-2"}
    own = wanted(**BGP, bgpTopology="peers", bgpPeers=ROUTERS, bgpAsNumber=65000)
    assert mesh(own) is False
    assert made(own)["BGPConfiguration", "default"]["asNumber"] == 65000
    assert made(own)["BGPPeer", "router-192-0-2-1"] == {
        "asNumber": 65001,
        "nodeSelector": "topology.kubernetes.io/zone in {'a', 'b'}",
        "password": {"secretKeyRef": {"name": "rack-a", "key": "password"}},
        "peerIP": "192.0.2.1",
    }
    assert made(own)["BGPPeer", "router-192-0-2-2"]["nodeSelector"] == "all()"


def test_accounts_of_nodes_read_the_secrets_of_passwords_alone() -> None:
    text = addon("calico-rights", wanted(**BGP, bgpPeers=ROUTERS))
    role = one(text, "Role")
    assert at(role, "rules", 0, "resourceNames") == ["rack-a"]
    assert at(role, "rules", 0, "verbs") == ["get", "list", "watch"]
    assert at(one(text, "RoleBinding"), "subjects", 0, "name") == calico_pods.NODE
    assert "secrets" not in addon("calico-rights")


def test_two_workers_of_each_zone_reflect_routes() -> None:
    pools: dict[str, object] = {
        "master": {"roles": ["etcd", "master"], "count": 3, "zones": ["a", "b", "c"]},
        "worker": {"roles": ["worker"], "count": 5, "zones": ["a", "b"]},
    }
    plan = lab(network={"plugin": "calico", **REFLECTORS}, pools=pools)
    # Zone c has no worker.
    assert reflecting(plan) == {"worker-1", "worker-2", "worker-3", "worker-4", "master-3"}
    assert reflecting(sized(3, 7, REFLECTORS)) == {"worker-1", "worker-2"}


def test_reflectors_are_the_nodes_of_pools_where_some_are_named() -> None:
    plan = wanted(**REFLECTORS, bgpReflectorPools=["master"])
    assert reflecting(plan) == {"master-1", "master-2", "master-3"}


@pytest.mark.parametrize("network", [{}, BGP, {**BGP, "bgpTopology": "peers", "bgpPeers": ROUTERS}])
def test_without_reflectors_the_marks_of_earlier_ones_go(network: dict[str, object]) -> None:
    assert not reflecting(wanted(**network))
    # Nodes are listed, or nothing would be taken from them.
    (row,) = nodes.of_nodes(wanted(**network))["ANNOTATIONS"].splitlines()
    assert row.endswith("\t")
    assert len(named(row)) == 5
    assert "ANNOTATIONS" not in nodes.of_nodes(lab())


def test_no_kubelet_can_make_its_node_a_reflector() -> None:
    # NodeRestriction lets none write this kind.
    assert calico_objects.REFLECTOR.startswith("node-restriction.kubernetes.io/")


@pytest.mark.parametrize(
    ("size", "found"),
    [
        (100, (True, 0, None)),
        (300, (False, 3, calico_pods.TYPHA)),
        (1000, (False, 3, calico_pods.TYPHA)),
    ],
)
def test_many_nodes_have_reflectors_and_typha(size: int, found: object) -> None:
    plan = lab(network={"plugin": "calico", **BGP}, sizing={"nodes": size})
    mesh = made(plan)["BGPConfiguration", "default"]["nodeToNodeMeshEnabled"]
    replicas = at(one(addon("calico-typha", plan), "Deployment"), "spec", "replicas")
    asked = env(plan).get("FELIX_TYPHAK8SSERVICENAME")
    assert (mesh, replicas, asked) == found


@pytest.mark.parametrize("mtu", [None, 1400])
def test_the_mtu_is_that_of_pods(mtu: int | None) -> None:
    plan = wanted() if mtu is None else wanted(mtu=mtu)
    install = at(pod_of(addon("calico-node", plan)), "initContainers", 0, "env")
    assert isinstance(install, list)
    (said,) = [at(each, "value") for each in install if at(each, "name") == "CNI_NETWORK_CONFIG"]
    assert yaml.safe_load(str(said))["plugins"][0]["mtu"] == (mtu or 0)
    assert made(plan)["FelixConfiguration", "default"].get("vxlanMTU") == mtu


def test_the_rules_are_written_where_kube_proxys_are() -> None:
    for mode, found in (("nftables", "Enabled"), ("iptables", "Disabled")):
        felix = made(wanted(proxyMode=mode))["FelixConfiguration", "default"]
        assert felix["nftablesMode"] == found


def test_every_field_that_is_set_has_its_type_in_its_definition() -> None:
    plan = wanted(**REFLECTORS, bgpPeers=ROUTERS, mtu=1400)
    kinds = set()
    for (kind, _), spec in made(plan).items():
        kinds.add(kind)
        assert set(spec) <= set(calico_objects.FIELDS[kind])
    assert kinds == set(calico_objects.FIELDS)


def test_every_kind_that_an_account_reads_or_writes_is_defined() -> None:
    defined = {
        each["metadata"]["name"].partition(".")[0]
        for name in ("calico-crds", "calico-crds-of-settings")
        for each in yaml.safe_load_all(addon(name))
    }
    named = {
        resource.partition("/")[0]
        for role in (calico_pods.NODE, calico_pods.CNI, calico_pods.CONTROLLERS)
        for groups, resources, _ in rules(role)
        if groups == {calico_objects.GROUP}
        for resource in resources
    }
    assert named <= defined


def test_no_node_writes_pools_peers_settings_or_policies() -> None:
    for account in (calico_pods.NODE, calico_pods.CNI):
        written = {
            resource
            for _, resources, verbs in rules(account)
            if verbs - {"get", "list", "watch"}
            for resource in resources
        }
        kinds = {"ippools", "bgppeers", "bgpconfigurations", "felixconfigurations"}
        assert not written & {*kinds, "networkpolicies", "globalnetworkpolicies", "hostendpoints"}
        named = {resource for _, resources, _ in rules(account) for resource in resources}
        assert not named & {"*", "secrets", "configmaps"}


def test_images_are_those_that_nodes_fetch() -> None:
    plan = wanted()
    text = "".join(addon(name, plan) for name in calico.ADDONS)
    said = set(re.findall(r'^ *image: "?(\S+?)"?$', text, re.MULTILINE))
    there = artifacts.images(plan)
    assert said == {there[name].ref for name in (*calico.IMAGES, *calico.MASTER_IMAGES)}
    of_worker = downloads.node_images(plan, plan.workers[0])
    assert {"image/calico-node", "image/calico-cni"} <= set(of_worker)
    assert "image/calico-typha" not in of_worker
    assert not {*calico.IMAGES, *calico.MASTER_IMAGES} & set(artifacts.images(lab()))


def test_the_gate_waits_for_it_and_kube_proxy_stays() -> None:
    waited = gate.of_gate(wanted())["DEPLOYMENTS"].split()
    assert {*calico.ROLLOUTS, "kube-system/daemonset/kube-proxy"} <= {*waited}


def test_kernel_modules_are_those_of_the_backend() -> None:
    def needed(backend: str) -> bool:
        plan = wanted(backend=backend)
        return "vxlan" in registry.backend(plan.spec).modules

    assert [needed(name) for name in calico.BACKENDS] == [True, True, False]
    assert "rp_filter" not in sysctl.sysctl(wanted())
