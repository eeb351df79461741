"""Every row of docs/operate/change.md: the edit changes the resources it names, the words name the same nodes, one more up nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stacks.edits import memory, transition
from stacks.explain import report
from stacks.explain.report import Report
from tests.plan.registration import Run
from tests.plan.settled import Stacks, assert_exactly
from tests.plan.told import Told
from tests.unit.configs import adopted, gcp, host_key, lab, planned, with_store

PAGE = Path(__file__).parents[2] / "docs" / "operate" / "change.md"
MASTERS = frozenset({"master-1", "master-2", "master-3"})
WORKERS = frozenset({"worker-1", "worker-2"})
ALL = MASTERS | WORKERS

Edit = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One edit of a row."""

    edit: Edit
    touched: frozenset[str]  # nodes with resources that change
    before: Edit = field(default_factory=dict)
    named: frozenset[str] = frozenset()  # of the cluster: what the page says that preview shows
    given: bool = False  # on adopted machines
    cloud: bool = False  # at Google


def states(**said: str) -> Edit:
    return {f"nodes/{name.replace('_', '-')}": {"state": what} for name, what in said.items()}


def names(*given: str) -> frozenset[str]:
    return frozenset(given)


GATE = names("nodes", "gate")
SEPARATE = {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}
ETCD = names("etcd-1", "etcd-2", "etcd-3")
TRUST, ISSUE = {"generation": 2, "step": "trust"}, {"generation": 2, "step": "issue"}
FIVE = {"pools.master.count": 5}
VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
EDGES = {**VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}}
EDGE = names("edge-1", "edge-2")
MOVED = GATE | {
    *("vip-holders", "master-1-node", "master-1-master-keys", "master-1-master", "master-1-vip"),
}
INGRESS = {**VIP, "frontDoors.ingress": {"hosts": ["shop.example.com"]}}
HOSTS = {**VIP, "frontDoors.ingress": {"hosts": ["shop.example.com", "*.blog.example.com"]}}

FILES = [
    str(PAGE.parents[2] / name)
    for name in ("examples/addons/defaults.yaml", "tests/fuzz/gadgets.yaml")
]
HOOKS = {"hooks": {"url": "https://hooks.example.com/nodes"}}
ADDON = {"addons": {"team": {"manifests": FILES[:1]}}}
TWO_FILES = {"addons": {"team": {"manifests": FILES}}}

NAMED = {"cluster.endpoint": "api.example.com"}
RECORD = {
    **NAMED,
    "frontDoors": {"dns": "managed", "zone": {"domain": "example.com", "id": "my-zone"}},
}

ROWS: dict[str, list[Row]] = {
    "add a worker": [
        Row(edit={"pools.worker.count": 3}, touched=names("worker-3"), named=GATE | {"join-token"}),
    ],
    "remove a worker": [
        Row(edit={"pools.worker.count": 1}, touched=names("worker-2"), named=GATE),
    ],
    "label or taint nodes": [
        Row(edit={"pools.worker.labels": {"disk": "nvme"}}, touched=names(), named=GATE),
        Row(edit={"nodes.master-1.taints": [{"key": "a", "effect": "NoSchedule"}]}, touched=names(), named=GATE),
    ],
    "name the zones": [
        Row(edit={"pools.worker.zones": ["a", "b"]}, touched=names(), named=GATE | {"addon-coredns"}),
    ],
    "grow 1 to 3 or 5 masters": [
        Row(before={"pools.master.count": 1}, edit={"pools.master.count": 3}, touched=ALL, named=GATE),
        Row(edit=FIVE, touched=ALL | {"master-4", "master-5"}, named=GATE),
    ],
    "remove masters, 5 to 3 to 1": [
        Row(before=FIVE, edit={"pools.master.count": 3}, touched=ALL | {"master-4", "master-5"}, named=GATE),
        Row(edit={"pools.master.count": 1}, touched=ALL, named=GATE),
    ],
    "remove a certain node, the first master too": [
        Row(edit=states(master_1="removed"), touched=ALL, named=GATE),
        Row(edit=states(worker_1="removed"), touched=names("worker-1"), named=GATE),
        Row(edit=states(worker_1="removed"), touched=names("worker-1"), named=GATE, given=True),
    ],
    "replace a dead machine": [
        Row(edit={**states(worker_1="lost"), "pools.worker.count": 3}, touched=names("worker-1", "worker-3"), named=GATE | {"retire", "join-token"}),
        Row(edit={**states(master_2="lost"), "pools.master.count": 4}, touched=ALL | {"master-4"}, named=GATE | {"retire"}),
    ],
    "a machine is in wrong hands": [
        Row(edit=states(worker_1="compromised"), touched=names("worker-1"), named=GATE | {"retire"}),
    ],
    "rebuild a node under its name": [
        Row(edit={"nodes/worker-1": {"generation": 2}}, touched=names("worker-1"), named=GATE | {"retire", "join-token"}),
        Row(edit={"nodes/worker-1": {"generation": 2}, "pools.worker.hosts.0.hostKey": host_key(900)}, touched=names("worker-1"), named=GATE | {"retire"}, given=True),
    ],
    "cordon a node": [
        Row(edit=states(worker_1="maintenance"), touched=names(), named=GATE),
    ],
    "empty a node": [
        Row(edit={"nodes": {"worker-1": {"state": "maintenance", "drain": True}}}, touched=names(), named=GATE),
    ],
    "keep pods on a node while it is down": [
        Row(edit={"nodes": {"worker-1": {"state": "maintenance", "keepPodsS": 3600}}}, touched=names(), named=GATE),
    ],
    "ask a webhook before a drain": [
        Row(edit=HOOKS, touched=ALL, named=GATE | {"master-1-node", "worker-1-node"}),
        Row(before=HOOKS, edit={}, touched=ALL, named=GATE | {"master-1-node", "worker-1-node"}),
    ],
    "leave a machine alone that is down for a time": [
        Row(edit=states(worker_1="absent"), touched=names("worker-1"), named=GATE),
        Row(edit=states(master_1="absent"), touched=names("master-1"), named=GATE | {"addon-coredns"}),
    ],
    "take a node out and keep the machine": [
        Row(edit=states(worker_1="decommissioned"), touched=names("worker-1"), named=GATE | {"worker-1-decommission"}),
    ],
    "move etcd to machines of its own, or back": [
        Row(edit=SEPARATE, touched=MASTERS | ETCD, named=GATE | {"master-1-etcd-absent"}),
        Row(before=SEPARATE, edit={}, touched=MASTERS | ETCD, named=GATE),
    ],
    "change address, user, port or host key by which machines are reached": [
        Row(edit={"machines.ssh.user": "ops", "machines.ssh.port": 2222}, touched=ALL, given=True),
        Row(edit={"pools.worker.hosts.0.hostKey": host_key(900), "allow": ["host-key/worker-1"]}, touched=names("worker-1"), given=True),
        Row(edit={"pools.worker.hosts.0.sshAddress": "worker-1.example.com"}, touched=names("worker-1"), given=True),
    ],
    "change a flag, the audit policy, feature gates, leader election; users of an identity provider (`oidc`); Pod Security Standards (`podSecurity`)": [
        Row(edit={"controlPlane.apiServerArgs": {"v": "4"}}, touched=MASTERS, named=GATE | {"master-1-master"}),
        Row(edit={"controlPlane.audit": {"enabled": False}}, touched=MASTERS, named=GATE),
        Row(edit={"controlPlane.featureGates": {"ContextualLogging": False}}, touched=MASTERS, named=GATE),
        Row(edit={"controlPlane.leaderElection.retryPeriodS": 3}, touched=MASTERS, named=GATE),
        Row(edit={"controlPlane.podSecurity": {"enforce": "baseline"}}, touched=MASTERS, named=GATE),
        Row(edit={"controlPlane.oidc": {"issuerUrl": "https://id.example.com", "clientId": "kubernetes"}}, touched=MASTERS, named=GATE),
    ],
    "tune etcd": [
        Row(edit={"etcd.snapshotCount": 20000}, touched=MASTERS, named=GATE | {"master-1-etcd"}),
    ],
    "save etcd more often, elsewhere, or not by a timer": [
        Row(edit={"etcd.backup": {"everyHours": 1, "directory": "/mnt/backups"}}, touched=MASTERS, named=GATE | {"master-1-etcd"}),
        Row(edit=with_store(), touched=MASTERS, named=GATE | {"master-1-etcd", "master-1-etcd-keys"}),
        Row(before=with_store(), edit={}, touched=MASTERS, named=GATE | {"master-1-etcd"}),
        Row(edit={"etcd.backup": {"encrypt": False, "everyHours": 0}}, touched=MASTERS, named=GATE | {"master-1-etcd"}),
    ],
    "have settings for more nodes": [
        Row(edit={"sizing.nodes": 300}, touched=ALL, named=GATE | {"master-1-etcd", "master-1-master", "worker-1-node", "addon-coredns"}),
    ],
    "tune the way to the API": [
        Row(edit={"loadBalancing.maxConnections": 8000}, touched=ALL, named=GATE | {"worker-1-node"}),
    ],
    "give clients outside a virtual IP, or take it away": [
        Row(edit=VIP, touched=MASTERS, named=GATE | {"master-1-node", "master-1-master-keys", "master-1-master", "master-1-vip"}),
        Row(before=VIP, edit={}, touched=MASTERS, named=GATE | {"master-1-node", "master-1-master-keys", "master-1-vip"}),
    ],
    "put the virtual IP on machines of its own, or back on masters": [
        Row(before=VIP, edit=EDGES, touched=MASTERS | EDGE, named=MOVED | {"edge-1-node", "edge-1-vip", "edge-1-keys"}),
        Row(before=EDGES, edit=VIP, touched=MASTERS | EDGE, named=MOVED | {"edge-1-preflight"}),
        Row(before=EDGES, edit={**EDGES, "nodes.edge-1.generation": 2}, touched=names("edge-1"), named=GATE | {"edge-1-node", "edge-1-vip"}),
        Row(before=EDGES, edit={**EDGES, **states(edge_1="maintenance")}, touched=names("edge-1"), named=GATE | {"vip-holders", "edge-1-vip"}),
    ],
    "have the stack make the API's DNS record, or take it away": [
        Row(before=NAMED, edit=RECORD, touched=names(), named=GATE | {"api-name", "api-name-known", "door"}, cloud=True),
        Row(before=RECORD, edit=NAMED, touched=names(), named=GATE | {"api-name", "api-name-known", "door"}, cloud=True),
    ],
    "end TLS for what runs in the cluster": [
        Row(before=VIP, edit=INGRESS, touched=MASTERS, named=GATE | {"master-1-ingress", "master-1-ingress-own"}),
        Row(before=INGRESS, edit=HOSTS, touched=MASTERS, named=GATE | {"master-1-ingress", "master-1-ingress-own"}),
        Row(before=INGRESS, edit={**INGRESS, "pools.worker.count": 3}, touched=MASTERS | {"worker-3"}, named=GATE | {"master-1-ingress"}),
        Row(before=INGRESS, edit=VIP, touched=MASTERS, named=GATE | {"master-1-node", "master-1-ingress"}),
    ],
    "lead programs on some nodes to etcd": [
        Row(edit={"frontDoors.etcd": {"pools": ["worker"]}}, touched=WORKERS, named=GATE | {"worker-1-node"}),
    ],
    "change mirrors of registries, containerd's log or downloads": [
        Row(edit={"runtime.registryMirrors": {"docker.io": ["https://mirror.example.com"]}}, touched=ALL, named=GATE | {"worker-1-node"}),
    ],
    "change kubelet settings": [
        Row(edit={"kubelet.maxPods": 60}, touched=ALL, named=GATE | {"master-1-master", "worker-1-node"}),
    ],
    "replace a CA, the key of service accounts or the key of Secrets": [
        Row(edit={"controlPlane.encryptionKey": TRUST}, touched=MASTERS, named=GATE | {"rotation", "master-1-master"}),
        Row(before={"controlPlane.encryptionKey": TRUST}, edit={"controlPlane.encryptionKey": ISSUE}, touched=MASTERS, named=GATE | {"rotation"}),
        Row(edit={"pki.rotation.etcd": TRUST}, touched=MASTERS, named=GATE | {"rotation", "master-1-etcd"}),
        Row(edit={"pki.rotation.kubernetes": TRUST}, touched=ALL, named=GATE | {"rotation", "worker-1-node"}),
    ],
    "shut out a kubeconfig of the administrator that leaked": [
        Row(before={"pki.adminGeneration": 1}, edit={"pki.adminGeneration": 2}, touched=names(), named=GATE | {"addon-admin-generation", "pki-admin-2", "pki-admin-2-key"}),
        Row(edit={"pki.adminGeneration": 1}, touched=names(), named=GATE | {"addon-admin-generation", "pki-admin-1"}),
    ],
    "go to another Kubernetes version": [
        Row(before={"cluster.kubernetes": "1.35.4"}, edit={}, touched=ALL, named=GATE | {"master-1-node", "master-1-master", "worker-1-node", "addon-coredns", "addon-kube-proxy"}),
    ],
    "take another etcd or containerd": [
        Row(edit={"cluster.etcd": "3.6.15"}, touched=MASTERS, named=GATE | {"master-1-etcd"}),
        Row(before={"cluster.etcd": "3.5.35"}, edit={}, touched=MASTERS, named=GATE | {"master-1-etcd"}),
        Row(edit={"cluster.containerd": "2.3.6"}, touched=ALL, named=GATE | {"worker-1-node"}),
    ],
    "run something else in the cluster, change it, take it out": [
        Row(edit=ADDON, touched=names(), named=GATE | {"addon-team", "addon-team-file-1"}),
        Row(before=ADDON, edit=TWO_FILES, touched=names(), named=GATE | {"addon-team", "addon-team-file-2"}),
        Row(before=ADDON, edit={}, touched=names(), named=GATE | {"addon-team"}),
    ],
    "have a cloud controller manager on Google Cloud or AWS": [
        Row(edit={"machines.gcp.cloudController": "external"}, touched=ALL, named=GATE | {"master-1-node", "master-1-master", "worker-1-node"}, cloud=True),
    ],
    "update packages of the operating system": [
        Row(edit={"os/packages": "june"}, touched=ALL, named=GATE | {"snapshot", "master-1-node", "master-1-etcd", "master-1-master", "worker-1-node"}),
        Row(before={"os/packages": "may", "os/hold": ["linux-image-amd64"]}, edit={"os/packages": "june"}, touched=ALL, named=GATE | {"wave-0", "worker-1-node"}),
        Row(before=SEPARATE, edit={**SEPARATE, "os/packages": "june"}, touched=ALL | ETCD, named=GATE | {"etcd-1-node", "etcd-1-etcd"}),
        Row(before={"os/packages": "may"}, edit={}, touched=ALL, named=GATE | {"worker-1-node"}),
    ],
    "run everything again (drift)": [
        Row(edit={"converge.generation": 2}, touched=ALL, named=GATE | {"addon-flannel"}),
    ],
}  # fmt: skip


def of_page() -> list[str]:
    """First column of the page's first table."""
    table = PAGE.read_text().partition("| I want to |")[2].partition("\n\n")[0]
    return [row.split(" | ")[0].strip("| ") for row in table.splitlines()[2:]]


def test_every_row_of_the_page_has_its_edits_here() -> None:
    assert of_page() == list(ROWS)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=f"{title[:40]}, {number}")
        for title, rows in ROWS.items()
        for number, row in enumerate(rows, 1)
    ],
)
def test_a_row_changes_what_the_page_says_and_the_words_name_the_same_nodes(
    stacks: Stacks, row: Row
) -> None:
    make = gcp if row.cloud else adopted if row.given else lab
    before, after = make(row.before), make(row.edit)
    engine, _ = stacks.settled(before)
    run = engine.up(after)
    cluster = "prod" if row.given or row.cloud else "dev"
    assert nodes_of(run, cluster) == set(row.touched)
    changed = {change.name for change in run.changes}
    assert {f"{cluster}-{name}" for name in row.named} <= changed
    said = told(before, after)
    assert spoken_of(said) == set(row.touched)
    assert not said.is_empty
    assert Told(planned(before), planned(after), said, run).findings() == []
    assert_exactly(engine.up(after), [])
    assert told(after, after).is_empty


def nodes_of(run: Run, cluster: str) -> set[str]:
    """Nodes whose own resources change, their certificates too."""
    mark = re.compile(rf"{cluster}-(?:pki-)?((?:master|worker|etcd|edge)-[0-9]+)-")
    return {found[1] for change in run.changes if (found := mark.match(change.name))}


def told(before: Mapping[str, object], after: Mapping[str, object]) -> Report:
    known = memory.read(json.loads(json.dumps(memory.of(planned(before)))))
    wanted = planned(after)
    return report.report(known, wanted, transition.check(known, wanted))


def spoken_of(said: Report) -> set[str]:
    """Nodes that the words say something happens on; labels and cordons are set from a master.

    And those of which they say that nothing does: what they were told leaves the state.
    """
    return {
        node.name
        for node in said.changes.nodes
        if any(
            action.phase not in ("nodes", "first") or "nothing is changed on it" in action.text
            for action in node.actions
        )
    }
