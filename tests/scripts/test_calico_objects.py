"""A real API server takes all that makes Calico, keeps every field of it, and bounds its account on nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from stacks.cluster.plan import Plan
from stacks.networks import calico
from stacks.phases import system_addons
from stacks.render.admission_policies import admission_policies
from tests.scripts.real_api import RealApi
from tests.scripts.shell import Shell
from tests.scripts.test_admission_policies import token_of, until
from tests.unit.render.examples import lab

OWN = "/apis/crd.projectcalico.org/v1"
SYSTEM = "/api/v1/namespaces/kube-system"
NODES = "/api/v1/nodes"
ADDRESS = "projectcalico.org/IPv4Address"
CLUSTER_ID = "projectcalico.org/RouteReflectorClusterID"
ROUTERS = [
    {"address": "192.0.2.1", "asNumber": 4200000001, "zones": ["a"], "passwordSecret": "rack-a"},
    {"address": "192.0.2.2", "asNumber": 65002},
]
REFLECTORS = {"backend": "bgp", "bgpTopology": "reflectors"}
PATHS = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "DaemonSet": "/apis/apps/v1/namespaces/kube-system/daemonsets",
    "Deployment": "/apis/apps/v1/namespaces/kube-system/deployments",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings",
    "Service": f"{SYSTEM}/services",
    "ServiceAccount": f"{SYSTEM}/serviceaccounts",
    "BGPConfiguration": f"{OWN}/bgpconfigurations",
    "BGPPeer": f"{OWN}/bgppeers",
    "FelixConfiguration": f"{OWN}/felixconfigurations",
    "IPPool": f"{OWN}/ippools",
}


def wanted(**network: object) -> Plan:
    return lab(network={"plugin": "calico", "mtu": 1400, **network})


def applied(shell: Shell, plan: Plan) -> dict[str, str]:
    """All add-ons of Calico, in the order of an update; what each phase said."""
    made = system_addons.addons(plan)
    return {
        name: shell.run(
            "main", phase="addon", values=system_addons.of_addon(plan, name, made[name])
        )
        for name in sorted(calico.ADDONS)
    }


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    # As kubeadm's: agents of networks are privileged.
    server = RealApi(tmp_path_factory.mktemp("api"), flags={"allow-privileged": "true"})
    try:
        server.start()
        server.apply("boss", admission_policies(wanted()))
        applied(server.master(Shell(tmp_path_factory.mktemp("master"))), wanted())
        for name in ("worker-1", "worker-2"):
            said = {CLUSTER_ID: "244.0.0.1"} if name == "worker-2" else {}
            node = {"metadata": {"name": name, "annotations": said}}
            assert server.ask("boss", "POST", NODES, node).taken
            spec = {
                "nodeName": name,
                "serviceAccountName": "calico-node",
                "containers": [{"name": "calico-node", "image": "calico"}],
            }
            pod = {"metadata": {"name": f"calico-{name}"}, "spec": spec}
            assert server.ask("boss", "POST", f"{SYSTEM}/pods", pod).taken
        path, nothing = f"{NODES}/worker-2/status?dryRun=All", dict[str, object]()
        until(server, (agent(server, "worker-1"), "PATCH", path, nothing), 422)
        yield server
    finally:
        server.stop()


@pytest.fixture
def master(tmp_path: Path, api: RealApi) -> Shell:
    return api.master(Shell(tmp_path))


def agent(api: RealApi, node: str) -> str:
    """The token of calico-node's pod there, as that node's kubelet asks for it."""
    metadata = api.ask("boss", "GET", f"{SYSTEM}/pods/calico-{node}").body["metadata"]
    assert isinstance(metadata, dict)
    bound = {"apiVersion": "v1", "kind": "Pod", "name": f"calico-{node}", "uid": metadata["uid"]}
    body = {"spec": {"boundObjectRef": bound, "expirationSeconds": 3607, "audiences": []}}
    return token_of(api.ask(node, "POST", f"{SYSTEM}/serviceaccounts/calico-node/token", body))


def lost(said: object, kept: object, path: str = "") -> Iterator[str]:
    """Paths of what is said and not kept; defaults that the API adds are no loss."""
    if isinstance(said, Mapping) and isinstance(kept, Mapping):
        for key, value in said.items():
            yield from lost(value, kept.get(key), f"{path}.{key}")
    elif isinstance(said, list) and isinstance(kept, list) and len(said) == len(kept):
        for place, (one, other) in enumerate(zip(said, kept, strict=True)):
            yield from lost(one, other, f"{path}[{place}]")
    # As the API writes an empty list or mapping.
    elif said != kept and (said or kept):
        yield f"{path}: {said!r} became {kept!r}"


@pytest.mark.parametrize(
    "network",
    [
        {},
        {"backend": "vxlan-across-subnets", "blockSize": 24, "proxyMode": "iptables"},
        {**REFLECTORS, "bgpPeers": ROUTERS},
        {"backend": "bgp", "bgpTopology": "peers", "bgpPeers": ROUTERS, "bgpAsNumber": 4200000000, "typha": True},
    ],
)  # fmt: skip
def test_every_object_is_taken_and_every_field_is_kept(
    api: RealApi, master: Shell, network: dict[str, object]
) -> None:
    plan = wanted(**network)
    applied(master, plan)
    made = system_addons.addons(plan)
    found, kinds = [], set()
    for name in calico.ADDONS:
        for said in yaml.safe_load_all(made[name]):
            kinds.add(said["kind"])
            path = f"{PATHS[said['kind']]}/{said['metadata']['name']}"
            found += [f"{path}{one}" for one in lost(said, api.ask("boss", "GET", path).body)]
    assert found == []
    assert kinds == {*PATHS} - (set() if plan.spec.network.backend == "bgp" and network.get("bgpPeers") else {"BGPPeer"})  # fmt: skip


def test_a_field_of_another_type_is_refused(api: RealApi) -> None:
    pool = {
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": "IPPool",
        "metadata": {"name": "other"},
        "spec": {"cidr": "10.9.0.0/16", "vxlanMode": "Sometimes"},
    }
    answer = api.ask("boss", "POST", f"{OWN}/ippools?dryRun=All", pool)
    assert answer.status == 422
    assert 'Unsupported value: "Sometimes"' in answer.why
    pool["spec"] = {"cidr": "10.9.0.0/16", "blockSize": "26"}
    assert api.ask("boss", "POST", f"{OWN}/ippools?dryRun=All", pool).status == 422


def peers(api: RealApi) -> set[str]:
    items = api.ask("boss", "GET", f"{OWN}/bgppeers").body["items"]
    assert isinstance(items, list)
    return {one["metadata"]["name"] for one in items}


def test_peers_that_left_the_config_are_deleted_and_those_of_others_stay(
    api: RealApi, master: Shell
) -> None:
    applied(master, wanted(**REFLECTORS, bgpPeers=ROUTERS))
    own = {"route-reflectors", "router-192-0-2-1", "router-192-0-2-2"}
    by_hand = {
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": "BGPPeer",
        "metadata": {"name": "by-hand"},
        "spec": {"peerIP": "192.0.2.9", "asNumber": 65009},
    }
    assert api.ask("boss", "POST", f"{OWN}/bgppeers", by_hand).taken
    assert peers(api) == {*own, "by-hand"}
    said = applied(master, wanted(backend="bgp", bgpPeers=ROUTERS[1:]))["calico-settings"]
    assert peers(api) == {"router-192-0-2-2", "by-hand"}
    assert "deleted bgppeer.crd.projectcalico.org/route-reflectors" in said
    again = applied(master, wanted(backend="bgp", bgpPeers=ROUTERS[1:]))["calico-settings"]
    assert "deleted" not in again
    applied(master, wanted())
    assert peers(api) == {"by-hand"}
    assert api.ask("boss", "DELETE", f"{OWN}/bgppeers/by-hand").taken


def test_of_nodes_its_account_writes_its_own_part_of_its_own(api: RealApi) -> None:
    own = agent(api, "worker-1")

    def noted(key: str, value: str | None) -> dict[str, object]:
        return {"metadata": {"annotations": {key: value}}}

    path = f"{NODES}/worker-1/status"
    assert api.ask(own, "PATCH", path, noted(ADDRESS, "10.92.0.101/24")).taken
    ready = {"status": {"conditions": [{"type": "NetworkUnavailable", "status": "False"}]}}
    assert api.ask(own, "PATCH", path, ready).taken
    for node, body in (
        ("worker-2", noted(ADDRESS, "10.92.0.101/24")),
        ("worker-1", noted("kube-ha.io/leaving", "true")),
        # Who reflects routes is the masters' word: not to become one, nor to stop others.
        ("worker-1", noted(CLUSTER_ID, "244.0.0.1")),
        ("worker-1", {"metadata": {"labels": {"team": "x"}}}),
        ("worker-1", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    ):
        refused = api.ask(own, "PATCH", f"{NODES}/{node}/status", body)
        assert refused.status == 422, (node, body, refused)
        assert "calico-node changes" in refused.why
    of_reflector = agent(api, "worker-2")
    taken_away = noted(CLUSTER_ID, None)
    assert api.ask(of_reflector, "PATCH", f"{NODES}/worker-2/status", taken_away).status == 422
    assert api.ask(own, "PATCH", f"{NODES}/worker-1", noted(ADDRESS, "x")).status == 403


def test_its_account_reads_what_it_needs_and_writes_no_settings(api: RealApi) -> None:
    own = agent(api, "worker-1")
    for plural in ("ippools", "felixconfigurations", "bgppeers", "globalnetworkpolicies", "tiers"):
        # 429 for seconds after its kind was defined
        until(api, (own, "GET", f"{OWN}/{plural}", None), 200)
    affinity = {
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": "BlockAffinity",
        "metadata": {"name": "worker-1-10-244-1-0-26"},
        "spec": {
            "cidr": "10.244.1.0/26",
            "deleted": "false",
            "node": "worker-1",
            "state": "pending",
        },
    }
    assert api.ask(own, "POST", f"{OWN}/blockaffinities", affinity).taken
    token = {"spec": {"audiences": [], "expirationSeconds": 3600}}
    asked = f"{SYSTEM}/serviceaccounts/{{}}/token"
    assert api.ask(own, "POST", asked.format("calico-cni-plugin"), token).taken
    for method, path in (
        ("POST", asked.format("calico-kube-controllers")),
        ("PATCH", f"{OWN}/felixconfigurations/default"),
        ("PATCH", f"{OWN}/ippools/default-ipv4-ippool"),
        ("PATCH", f"{OWN}/bgpconfigurations/default"),
        ("GET", f"{SYSTEM}/secrets"),
        ("GET", f"{SYSTEM}/configmaps"),
    ):
        assert api.ask(own, method, path, token if method == "POST" else {}).status == 403, path


def test_felix_is_told_of_kinds_that_are_not_there_that_they_are_not(api: RealApi) -> None:
    """403 in place of 404 is a failure to it: it waits, and no pod of any node reaches another."""
    own = agent(api, "worker-1")
    for path in (
        "/apis/kubevirt.io/v1/virtualmachineinstancemigrations",
        "/apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies",
    ):
        until(api, (own, "GET", path, None), 404)
