"""Which resources an edit of the config changes: these, and nothing more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from tests.plan.settled import Stacks, assert_changes
from tests.unit.configs import adopted, host, lab, with_store

Edits = Mapping[str, object]

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "Metadata"}],
}

MASTERS = ["master-1", "master-2", "master-3"]
WORKERS = ["worker-1", "worker-2"]
# Every change passes the list of nodes and the gate, and is remembered only then.
GATE = ["! dev-acceptance-attempt", "~ dev-nodes", "~ dev-gate"]
# Before the control plane changes, etcd is saved.
SAVED = "~ dev-snapshot"


def marked(mark: str, phases: str, nodes: Iterable[str], cluster: str = "dev") -> list[str]:
    return [f"{mark} {cluster}-{node}-{phase}" for node in nodes for phase in phases.split()]


def prepared_again(nodes: Iterable[str]) -> list[str]:
    """The node phase, and before it the scripts, whose copy is its attempt stamp."""
    return [*marked("!", "scripts", nodes), *marked("~", "node", nodes)]


def stamped(phase: str, nodes: Iterable[str]) -> list[str]:
    """A phase that has an attempt stamp of its own."""
    return [*marked("!", f"{phase}-attempt", nodes), *marked("~", phase, nodes)]


# What the workers should be changes: the gates before their waves run. The last wave has none behind it.
WAVES = ["! dev-wave-0", "! dev-wave-1"]


VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
NEW_APISERVER = [
    line
    for node in MASTERS
    for line in (
        f"! dev-pki-{node}-apiserver",
        f"! dev-pki-{node}-apiserver-request",
        *stamped("master-keys", [node]),
        *stamped("master", [node]),
    )
]


def addons(*names: str) -> list[str]:
    return [line for name in names for line in stamped(name, ["addon"])]


def pair(node: str, leaf: str, cluster: str = "dev") -> list[str]:
    """A leaf's key, request and certificate."""
    name = f"+ {cluster}-pki-{node}-{leaf}"
    return [f"{name}-key", f"{name}-request", name]


def new_worker(node: str) -> list[str]:
    return marked("+", "machine scripts preflight node join", [node])


def new_master(node: str) -> list[str]:
    leafs = "apiserver apiserver-kubelet-client front-proxy-client apiserver-etcd-client approver"
    members = "etcd-server etcd-peer etcd-client"
    phases = "machine scripts preflight node etcd-keys etcd master-shared-keys master-keys master"
    stamps = ["etcd-keys", "etcd", "master-shared-keys", "master-keys", "master"]
    return [
        *(line for leaf in f"{leafs} {members}".split() for line in pair(node, leaf)),
        *marked("+", phases, [node]),
        *marked("+", " ".join(f"{phase}-attempt" for phase in stamps), [node]),
    ]


# Who is in the cluster under which address: by it kubelets get certificates.
ADDRESSES = addons("serving-certificates")

LAB = [
    pytest.param({}, {}, [], id="no edit, no change"),
    pytest.param(
        {},
        {"pools.worker.count": 3},
        [*new_worker("worker-3"), "+ dev-wave-2", "~ dev-join-token", *ADDRESSES, *GATE],
        id="one worker more touches that worker, its wave, the token and the gate; no HAProxy",
    ),
    pytest.param(
        {"pools.worker.count": 3},
        {"pools.worker.count": 2},
        [
            *marked("-", "machine scripts preflight node join", ["worker-3"]),
            "- dev-wave-2",
            *ADDRESSES,
            *GATE,
        ],
        id="one worker less touches that worker, its wave and the gate",
    ),
    pytest.param(
        {},
        {"nodes.worker-1.labels": {"disk": "nvme"}},
        GATE,
        id="a label is set by the list of nodes, not on the machine",
    ),
    pytest.param(
        {},
        {"pools.worker.taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
        GATE,
        id="a taint is set by the list of nodes, not on the machine",
    ),
    pytest.param(
        {},
        {"pools.worker.zones": ["a", "b"]},
        [*addons("coredns"), *GATE],
        id="a zone is a label, and CoreDNS is spread over it",
    ),
    pytest.param(
        {},
        VIP,
        [
            *prepared_again(MASTERS),
            *NEW_APISERVER,
            *marked("+", "vip vip-attempt", MASTERS),
            "+ dev-vip-holders",
            "+ dev-vip-holders-attempt",
            *GATE,
        ],
        id="a virtual IP touches masters alone",
    ),
    pytest.param(
        VIP,
        {"frontDoors.vip": {"address": "10.92.0.5", "routerId": 52}},
        [*stamped("vip", MASTERS), *GATE],
        id="another number of VRRP is keepalived's business alone",
    ),
    pytest.param(
        {**VIP, "pools.master.count": 1},
        {**VIP, "pools.master.count": 2},
        [
            *new_master("master-2"),
            *marked("+", "vip vip-attempt", ["master-2"]),
            *stamped("vip", ["master-1"]),
            *prepared_again(["master-1", *WORKERS]),
            *WAVES,
            *stamped("etcd", ["master-1"]),
            *stamped("master", ["master-1"]),
            SAVED,
            *ADDRESSES,
            *GATE,
        ],
        id="a master more is told to who holds the virtual IP",
    ),
    pytest.param(
        {"pools.master.count": 1},
        {"pools.master.count": 3},
        [
            *new_master("master-2"),
            *new_master("master-3"),
            *prepared_again(["master-1", *WORKERS]),  # their HAProxy lists the masters
            *WAVES,
            *stamped("etcd", ["master-1"]),
            *stamped("master", ["master-1"]),
            SAVED,
            *ADDRESSES,
            *GATE,
        ],
        id="from one master to three",
    ),
    pytest.param(
        {},
        {"pools.master.count": 1},
        [
            *(f"-{line[1:]}" for name in MASTERS[1:] for line in new_master(name)),
            *prepared_again(["master-1", *WORKERS]),
            *WAVES,
            *stamped("etcd", ["master-1"]),
            *stamped("master", ["master-1"]),
            SAVED,
            *ADDRESSES,
            *GATE,
        ],
        id="from three masters to one, in one edit",
    ),
    pytest.param(
        {},
        {"controlPlane.apiServerArgs": {"v": "4"}},
        [*stamped("master", MASTERS), SAVED, *GATE],
        id="a flag of the API server touches masters alone",
    ),
    pytest.param(
        {},
        {"controlPlane.audit.policy": AUDIT_POLICY},
        [*stamped("master", MASTERS), SAVED, *GATE],
        id="an audit policy touches masters alone",
    ),
    *(
        pytest.param(
            {},
            {f"controlPlane.{key}": value},
            [*stamped("master", MASTERS), SAVED, *GATE],
            id=f"{key} of the control plane touches masters alone",
        )
        for key, value in {
            "featureGates": {"AllAlpha": False},
            "oidc": {"issuerUrl": "https://id.example.com", "clientId": "kube"},
            "podSecurity": {"enforce": "baseline"},
        }.items()
    ),
    pytest.param(
        {},
        {"etcd.quotaBackendGib": 4},
        [*stamped("etcd", MASTERS), SAVED, *GATE],
        id="a setting of etcd touches members alone",
    ),
    pytest.param(
        {"os/packages": "may"},
        {"os/packages": "june"},
        [
            *prepared_again([*MASTERS, *WORKERS]),
            *WAVES,
            *stamped("etcd", MASTERS),
            *stamped("master", MASTERS),
            SAVED,
            *GATE,
        ],
        id="newer packages of the operating system pass every node, in waves",
    ),
    pytest.param(
        {},
        {"etcd.backup": {"keep": 5}},
        [*stamped("etcd", MASTERS), *GATE],
        id="the schedule of backups touches members alone, and is not a reason for a snapshot",
    ),
    pytest.param(
        {},
        with_store(),
        [*stamped("etcd-keys", MASTERS), *stamped("etcd", MASTERS), *GATE],
        id="an object store comes with its key to members alone",
    ),
    pytest.param(
        with_store(),
        with_store(prefix="elsewhere"),
        [*stamped("etcd", MASTERS), *GATE],
        id="another place in the object store is not a reason for a snapshot",
    ),
    pytest.param(
        {},
        {"loadBalancing.maxConnections": 5000},
        [*prepared_again([*MASTERS, *WORKERS]), *WAVES, *stamped("master", MASTERS), *GATE],
        id="a setting of HAProxy touches every machine, none of the members",
    ),
    pytest.param(
        {},
        {"runtime/registryMirrors": {"docker.io": ["https://mirror.example.com"]}},
        [*prepared_again([*MASTERS, *WORKERS]), *WAVES, *stamped("master", MASTERS), *GATE],
        id="a mirror of a registry touches every node",
    ),
    *(
        pytest.param(
            {},
            {f"kubelet/{key}": value},
            [
                *prepared_again([*MASTERS, *WORKERS]),
                *WAVES,
                *stamped("master", MASTERS),
                SAVED,
                *GATE,
            ],
            id=f"{key} of the kubelet touches every node, and the masters that keep it",
        )
        for key, value in {
            "maxPods": 60,
            "podPidsLimit": 1000,
            "evictionHard": {"memory.available": "200Mi"},
        }.items()
    ),
    pytest.param(
        {},
        {"network.proxyMode": "iptables"},
        [*addons("kube-proxy", "flannel"), *GATE],
        id="a setting of add-ons touches no machine",
    ),
    pytest.param(
        {},
        {"network.mtu": 1400},
        [*addons("flannel"), *GATE],
        id="the size of packets is flannel's",
    ),
    pytest.param(
        {},
        {"cluster.endpoint": "api.example.com"},
        [
            *(f"! dev-pki-{node}-apiserver{part}" for node in MASTERS for part in ("", "-request")),
            *stamped("master-keys", MASTERS),
            *stamped("master", MASTERS),
            SAVED,
            *GATE,
        ],
        id="another endpoint is another name in the API servers' certificates",
    ),
    pytest.param(
        {},
        {"converge.generation": 2},
        [
            *marked("~", "machine", [*MASTERS, *WORKERS]),
            *prepared_again([*MASTERS, *WORKERS]),
            *WAVES,
            *stamped("etcd-keys", MASTERS),
            *stamped("etcd", MASTERS),
            *stamped("master-shared-keys", MASTERS),
            *stamped("master-keys", MASTERS),
            *stamped("master", MASTERS),
            *addons("admission-policies", "coredns", "flannel", "kube-proxy", "lost-nodes"),
            *ADDRESSES,
            *GATE,
        ],
        id="a raised generation runs every phase again",
    ),
    pytest.param(
        {"kubelet.servingCertificates": "self-signed"},
        {"kubelet.servingCertificates": "issued"},
        [
            *prepared_again([*MASTERS, *WORKERS]),
            *WAVES,
            *stamped("master", MASTERS),
            SAVED,
            *ADDRESSES,
            *GATE,
        ],
        id="kubelets get certificates of the CA: every node",
    ),
    pytest.param(
        {"kubelet.servingCertificates": "issued"},
        {"kubelet.servingCertificates": "verified"},
        [*stamped("master", MASTERS), SAVED, *GATE],
        id="API servers check them: masters alone",
    ),
]


@pytest.mark.parametrize(("start", "edit", "changes"), LAB)
def test_edit_of_a_lab_changes_exactly_this(
    stacks: Stacks, start: Edits, edit: Edits, changes: list[str]
) -> None:
    assert_changes(stacks, lab(start), lab({**start, **edit}), changes)


def separate(members: int) -> dict[str, object]:
    return lab(
        {
            "cluster.name": "apart",
            "pools.etcd": {"roles": ["etcd"], "count": members},
            "pools.master": {"roles": ["master"], "count": 2},
            "pools.worker.count": 1,
        }
    )


def test_separate_etcd_machines_change_nothing_without_an_edit(stacks: Stacks) -> None:
    assert_changes(stacks, separate(3), separate(3), [])


def test_etcd_machines_added_to_separate_ones_roll_the_masters(stacks: Stacks) -> None:
    assert_changes(
        stacks,
        separate(1),
        separate(3),
        [
            *(
                f"+ apart-{node}-{phase}"
                for node in ("etcd-2", "etcd-3")
                for phase in (
                    *("machine", "scripts", "preflight", "node", "etcd-keys", "etcd"),
                    *("etcd-keys-attempt", "etcd-attempt"),
                )
            ),
            *(
                line
                for node in ("etcd-2", "etcd-3")
                for leaf in ("etcd-server", "etcd-peer", "etcd-client")
                for line in pair(node, leaf, "apart")
            ),
            *("! apart-etcd-1-etcd-attempt", "~ apart-etcd-1-etcd"),
            *(f"! apart-master-{number}-master-attempt" for number in (1, 2)),
            *(f"~ apart-master-{number}-master" for number in (1, 2)),
            *("! apart-acceptance-attempt", "~ apart-nodes", "~ apart-gate", "~ apart-snapshot"),
        ],
    )


def test_adopted_hosts_in_another_order_are_no_edit(stacks: Stacks) -> None:
    hosts = {"pools.worker.hosts": [host("worker", 2), host("worker", 1)]}
    assert_changes(stacks, adopted(), adopted(hosts), [])


def test_adopted_worker_taken_out_is_released_and_touches_no_other(stacks: Stacks) -> None:
    run = assert_changes(
        stacks,
        adopted(),
        adopted({"pools.worker.hosts": [host("worker", 1)]}),
        [
            *marked("-", "scripts preflight node join", ["worker-2"], "prod"),
            "- prod-wave-1",
            "! prod-addon-serving-certificates-attempt",
            "~ prod-addon-serving-certificates",
            *("! prod-acceptance-attempt", "~ prod-nodes", "~ prod-gate"),
        ],
    )
    left = {change.name: change.before for change in run.changes if change.mark == "-"}
    leaves = {name: old.text("delete") for name, old in left.items() if old is not None}
    (name,) = [name for name, text in leaves.items() if text]
    assert name == "prod-worker-2-preflight"
    assert leaves[name].endswith("run.sh leave keep")


def test_another_ssh_user_runs_nothing_again_with_values_of_the_first_day(stacks: Stacks) -> None:
    """Commands whose values are kept forever must not meet newer scripts (the preflight may)."""
    before, after = adopted(), adopted({"machines.ssh.user": "ops"})
    engine, _ = stacks.settled(before)
    first = engine.up(after)
    changed = {change.name for change in first.changes}
    assert "! prod-worker-1-scripts" in {str(change) for change in first.changes}  # another home
    assert first.named("prod-worker-1-preflight").text("create").startswith("sudo -n ")
    assert "prod-worker-1-node" in changed
    assert not {name for name in changed if name.endswith(("-join", "-join-token", "-found"))}
    run = engine.up(after)
    assert run.changes == []
    keeping = [
        r.name for r in run.commands if "stdin" in r.ignores and "connection" not in r.ignores
    ]
    assert keeping
    assert all(name.endswith("-preflight") for name in keeping)


def test_another_address_for_ssh_changes_connections_and_nothing_else(stacks: Stacks) -> None:
    """The cluster knows a machine by its own address: no file, certificate or value holds the other one."""
    before = adopted()
    after = adopted({"pools.master.hosts.1.sshAddress": "master-2.example.com"})
    run = stacks.settled(before)[0].up(after)
    # Every edit ends with the proof of the whole cluster, which counts it as applied.
    proof = {"prod-acceptance-attempt", "prod-nodes", "prod-gate"}
    assert proof < {change.name for change in run.changes}
    changed = [(c.before, c.after) for c in run.changes if c.name not in proof]
    for old, new in changed:
        assert old is not None
        assert new is not None
        keys = {*old.inputs, *new.inputs}
        assert {key for key in keys if old.value(key) != new.value(key)} == {"connection"}
        was, now = old.value("connection"), new.value("connection")
        assert isinstance(was, dict)
        assert isinstance(now, dict)
        assert {**was, "host": "master-2.example.com"} == now
    told = str([resource.inputs for resource in run.commands])
    assert told.count("master-2.example.com") == told.count("'host': 'master-2.example.com'")


def test_only_a_newborn_stack_may_found_an_etcd_cluster(stacks: Stacks) -> None:
    """Whoever is the first member later: on an emptied machine founding would make a second one."""
    three = adopted({"pools.master.hosts": [host("master", n) for n in (1, 2, 3)]})
    two = adopted({"pools.master.hosts": [host("master", n) for n in (2, 3)]})
    engine, born = stacks.settled(three)
    assert "BOOTSTRAP=1" in born.named("prod-master-1-etcd-found").text("stdin")
    for config in (two, three):
        run = engine.up(config)
        founding = [r for r in run.commands if "BOOTSTRAP=1" in r.text("stdin")]
        changed = {change.name for change in run.changes}
        assert not [r.name for r in founding if r.name in changed]


def test_a_store_that_is_changed_does_not_hold_up_the_change(stacks: Stacks) -> None:
    """It may be the very thing that does not work; one that stays gets the snapshot before a change."""
    raw = lab(with_store())
    change = {"etcd.snapshotCount": 20000}
    for edit, is_sent in (
        (with_store(), True),
        (with_store(prefix="elsewhere"), False),
        ({}, False),
    ):
        engine = stacks.settled(raw)[0]
        run = engine.up(lab({**edit, **change}))
        [snapshot] = [resource for resource in run.commands if resource.name == "dev-snapshot"]
        said = snapshot.text("stdin")
        assert "REASON=change" in said
        assert ("BACKUP_STORE=https://s3.example.com/acme\n" in said) == is_sent
