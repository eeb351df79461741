"""What differs between a plan and what machines answered: every kind, in the words a person reads."""

from __future__ import annotations

import json

import pytest

from operations import drift
from operations.observe import overview
from operations.observe.etcd_store import Alarm
from operations.observe.hints import AGAIN, RAISE, UP
from stacks.cluster.plan import Plan
from tests.unit.configs import lab, planned
from tests.unit.operations.probed import (
    Edits,
    absent,
    b64,
    line,
    look,
    member_list,
    member_status,
    not_made,
)

PLAN = planned(lab())
MIB = 1024**2
HAPROXY = "/etc/haproxy/haproxy.cfg"
KUBELET_PEM = "/var/lib/kubelet/pki/kubelet-client-current.pem"
SERVER = "/etc/kube-ha/etcd/server.crt"


def of_machine(name: str, edits: Edits, plan: Plan = PLAN) -> list[tuple[str, str, str]]:
    """Kind, text and way out of each difference of the whole report; asserts that all are that node's."""
    report = look(plan, {name: edits}).report
    assert report.count == len(report.nodes[name]), report
    return [(one.kind, one.text, one.do) for one in report.nodes[name]]


@pytest.mark.parametrize(
    "edits",
    [
        {},
        {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]},
        {"pools.master.count": 1, "pools.worker.count": 0},
        {"controlPlane.audit": {"enabled": False}, "proxy": {"http": "http://p:3128"}},
    ],
)
def test_what_is_as_planned_differs_in_nothing(edits: dict[str, object]) -> None:
    seen = look(planned(lab(edits)))
    assert drift.code(seen) == 0
    assert seen.report.count == 0
    assert drift.table(seen.plan.nodes, seen.report)[-1] == "everything is as planned"


JOURNAL = "journalctl -u {} there tells why; " + RAISE
CASES: list[tuple[str, Edits, list[tuple[str, str, str]]]] = [
    (
        "worker-1",
        {f"file\t{HAPROXY}": line("file", HAPROXY, "f" * 64)},
        [("file", f"{HAPROXY} differs from the plan", RAISE)],
    ),
    (
        "worker-1",
        {f"file\t{HAPROXY}": line("file", HAPROXY, "missing")},
        [("file", f"{HAPROXY} is missing", RAISE)],
    ),
    (
        "master-1",
        {"changed": line("changed", "static-pods", "/etc/kubernetes/manifests/x.yaml", "changed")},
        [
            (
                "file",
                "/etc/kubernetes/manifests/x.yaml was changed by hand",
                f"{RAISE} (its API server restarts in order)",
            )
        ],
    ),
    (
        "master-1",
        {
            "changed": line("changed", "pki", SERVER, "missing"),
            f"certificate\t{SERVER}": line("certificate", SERVER, "missing"),
        },
        [("secret", f"{SERVER} was removed", RAISE)],
    ),
    (
        "master-1",
        {"changed": line("changed", "pki", "/etc/kubernetes/pki/sa.key", "changed")},
        [("secret", "/etc/kubernetes/pki/sa.key was changed by hand", RAISE)],
    ),
    (
        "master-1",
        {"changed": line("changed", "pki", "/etc/kubernetes/pki/ca.key", "mode 644")},
        [("secret", "/etc/kubernetes/pki/ca.key can be read by others (mode 644)", RAISE)],
    ),
    (
        "master-1",
        {"sums\tpki": line("sums", "pki", "missing")},
        [
            (
                "secret",
                "sums of its keys are not kept: whether they were changed cannot be told",
                AGAIN,
            )
        ],
    ),
    (
        "worker-1",
        {"unit\thaproxy": line("unit", "haproxy", "failed", "enabled", 900, 3)},
        [("unit", "unit haproxy is failed", JOURNAL.format("haproxy"))],
    ),
    (
        "worker-1",
        {"unit\tkubelet": line("unit", "kubelet", "active", "disabled", 900, 0)},
        [("unit", "unit kubelet is disabled: it does not start with the machine", RAISE)],
    ),
    (
        "worker-1",
        {"unit\tkubelet": line("unit", "kubelet", "active", "masked", 900, 0)},
        [
            (
                "unit",
                "unit kubelet is masked: it does not start with the machine",
                f"systemctl unmask kubelet; {RAISE}",
            )
        ],
    ),
    (
        "worker-1",
        {"unit\tkubelet": line("unit", "kubelet", "inactive", "", "", "")},
        [("unit", "unit kubelet is missing", RAISE)],
    ),
    (
        "worker-1",
        {"sums\tkubelet.service": line("sums", "kubelet.service", "missing")},
        [("unfinished", "the last change of kubelet.service was never finished", AGAIN)],
    ),
    (
        "worker-1",
        {"changed": line("changed", "kubelet.service", "/var/lib/kubelet/config.yaml", "changed")},
        [("file", "/var/lib/kubelet/config.yaml was changed by hand", RAISE)],
    ),
    (
        "worker-1",
        {"changed": line("changed", "haproxy.service", HAPROXY, "changed")},
        [("unit", f"unit haproxy was started with another {HAPROXY}", RAISE)],
    ),
    (
        "worker-1",
        {
            "changed": line("changed", "haproxy.service", HAPROXY, "changed"),
            f"file\t{HAPROXY}": line("file", HAPROXY, "f" * 64),
        },
        [("file", f"{HAPROXY} differs from the plan", RAISE)],
    ),
    (
        "master-2",
        {"mark\tmaster": line("mark", "master", "under-way")},
        [("unfinished", "a change of its control plane was never finished", AGAIN)],
    ),
    (
        "master-2",
        {"mark\tcertificates": line("mark", "certificates", "missing")},
        [("unfinished", "renewing certificates in its kubeconfigs was never finished", AGAIN)],
    ),
    (
        "worker-1",
        {"program\trunc": line("program", "runc", "runc version 1.1.0")},
        [("version", f"runc is 1.1.0, planned is {PLAN.versions.runc}", RAISE)],
    ),
    (
        "worker-1",
        {"program\tkubelet": line("program", "kubelet", "missing")},
        [("version", f"kubelet is missing, planned is {PLAN.versions.kubernetes}", RAISE)],
    ),
    (
        "master-1",
        {"etcd-status": line("etcd-status", member_status(PLAN, "master-1", version="3.5.1"))},
        [("version", f"the etcd that runs is 3.5.1, planned is {PLAN.versions.etcd}", RAISE)],
    ),
    (
        "worker-1",
        {"artefact\trunc": line("artefact", "runc", "f" * 64, "untouched")},
        [("artefact", "download runc is another one than planned", AGAIN)],
    ),
    (
        "worker-1",
        {"artefact\trunc": line("artefact", "runc", f"{4:064x}", "touched")},
        [("artefact", "files of download runc were changed by hand", RAISE)],
    ),
    (
        "worker-1",
        {"script\twipe.sh": line("script", "wipe.sh", "ffff")},
        [("script", "its copy of the script wipe.sh is another one than this program's", AGAIN)],
    ),
    (
        "worker-1",
        {"clock": line("clock", "1061.5")},
        [("clock", "clock is +61 s off the other machines", "run a time service (chrony)")],
    ),
    (
        "worker-1",
        {"busy": line("busy", "1")},
        [
            (
                "busy",
                "a phase runs on it right now: what is told below may be on its way",
                "let it end, then look again",
            )
        ],
    ),
    (
        "worker-1",
        {"owner": line("owner", "prod ffffffffffff web-1")},
        [
            (
                "owner",
                'belongs to "prod ffffffffffff web-1" (cluster, id, node)',
                "release it there, or give worker-1 another machine",
            )
        ],
    ),
    (
        "worker-1",
        {"owner": line("owner", ""), "program\trunc": line("program", "runc", "missing")},
        [
            (
                "owner",
                "is not a machine of a cluster",
                "run pulumi up; if it was recreated, raise nodes.worker-1.generation and run it again",
            )
        ],
    ),
    (
        "worker-1",
        {
            "incarnation": line("incarnation", 2),
            "program\trunc": line("program", "runc", "missing"),
        },
        [("owner", "is incarnation 2 of the node, planned is 1", UP)],
    ),
    (
        "master-1",
        {"etcd-status": line("etcd-status", "no answer: context deadline exceeded")},
        [
            (
                "etcd",
                "its etcd does not answer: no answer: context deadline exceeded",
                "journalctl -u etcd there tells why",
            )
        ],
    ),
    (
        "master-1",
        {"etcd-status": line("etcd-status", member_status(PLAN, "master-1", leader=0))},
        [
            (
                "etcd",
                "its etcd knows no leader",
                "bring the other members back: this one alone has no quorum",
            )
        ],
    ),
    (
        "master-1",
        {
            "etcd-status": line(
                "etcd-status", member_status(PLAN, "master-1", errors=["alarm:NOSPACE"])
            )
        },
        [("etcd", "etcd alarm NOSPACE of master-1", Alarm(name="NOSPACE", member="master-1").do)],
    ),
    (
        "master-1",
        {
            "etcd-status": line(
                "etcd-status", member_status(PLAN, "master-1", errors=["etcdserver: strange"])
            )
        },
        [("etcd", "its etcd says: etcdserver: strange", "journalctl -u etcd there tells why")],
    ),
    (
        "master-1",
        {
            "etcd-status": line(
                "etcd-status",
                member_status(PLAN, "master-1", dbSize=1504 * MIB, dbSizeInUse=1000 * MIB),
            )
        },
        [
            (
                "etcd",
                "its database is 1504 MiB, 73 % of its quota of 2 GiB",
                "make defrag (33 % of it are free inside); if it grows on, raise "
                "etcd.quotaBackendGib and run pulumi up: a full etcd takes no writes",
            )
        ],
    ),
    (
        "master-2",
        {
            "etcd-status": line(
                "etcd-status",
                member_status(PLAN, "master-2", dbSize=600 * MIB, dbSizeInUse=200 * MIB),
            )
        },
        [
            (
                "etcd",
                "66 % of its database of 600 MiB are free inside",
                "make defrag gives that back to the disk",
            )
        ],
    ),
    (
        "worker-1",
        {"disk": line("disk", 1024**2, 20 * 1024**2, "/var/lib")},
        [
            (
                "disk",
                "the disk of /var/lib is 95 % full: 1.0 of 20.0 GiB are left",
                "make room there (du -xh --max-depth 2 /var/lib | sort -h); on an etcd machine: a "
                "lower etcd.backup.keep, pulumi up, make backup",
            )
        ],
    ),
    (
        "master-2",
        {
            "etcd-status": line(
                "etcd-status",
                member_status(PLAN, "master-2", header={"member_id": 1, "cluster_id": 5}),
            ),
            "etcd-identity": line("etcd-identity", "5 1 none"),
            "etcd-list": line("etcd-list", member_list(PLAN, "master-2")),
        },
        [
            (
                "etcd",
                "its etcd is another cluster, which began empty, since 1970-01-01 00:15:00 UTC",
                f"{RAISE}: its data is set aside, and it joins the others again",
            )
        ],
    ),
    (
        "master-2",
        {"etcd-refused": line("etcd-refused", "empty 1795312000 0 there is no data in there")},
        [
            (
                "etcd",
                "its etcd may not serve since 2026-11-22 01:46:40 UTC: there is no data in there",
                f"if a disk is missing, bring it back: etcd starts by itself; else {RAISE}",
            )
        ],
    ),
    (
        "master-2",
        {"balancer\tmaster-3": line("balancer", "master-3", "DOWN")},
        [
            (
                "balancer",
                "its HAProxy finds master-3 DOWN, which serves",
                "see that this machine reaches port 6443 of that one (firewall, routes)",
            )
        ],
    ),
    (
        "worker-2",
        {"balancer\tmaster-3": line("balancer", "master-9", "UP")},
        [
            ("balancer", "the HAProxy that runs does not know master master-3", RAISE),
            ("balancer", "the HAProxy that runs still knows master-9", RAISE),
        ],
    ),
]


@pytest.mark.parametrize(("name", "edits", "told"), CASES, ids=[case[2][0][1] for case in CASES])
def test_every_difference_is_told_once_with_what_mends_it(
    name: str, edits: Edits, told: list[tuple[str, str, str]]
) -> None:
    assert of_machine(name, edits) == told


RENEW = (
    "run pulumi up: it renews certificates that end within pki.leafRenewalHours; "
    "else run pulumi up; if that has nothing to do, raise converge.generation and run it again"
)


@pytest.mark.parametrize(
    ("path", "days", "life", "told"),
    [
        (SERVER, 90.1, 365, None),
        (SERVER, 89, 365, f"{SERVER} ends on 2027-08-29 12:00 UTC, in 89 days"),
        (SERVER, 0.5, 365, f"{SERVER} ends on 2027-06-02 00:00 UTC, in 12 hours"),
        (SERVER, -1, 365, f"{SERVER} has expired on 2027-05-31 12:00 UTC"),
        ("/etc/kubernetes/admin.conf", 1, 365, "/etc/kubernetes/admin.conf ends on 2027-06-02 12:00 UTC, in 24 hours"),
        # It renews itself when 10 to 30 % of its life are left.
        (KUBELET_PEM, 40, 365, None),
        (KUBELET_PEM, 36, 365, f"{KUBELET_PEM} ends on 2027-07-07 12:00 UTC, in 36 days"),
        ("/etc/kube-ha/ca.crt", 10, 365, "/etc/kube-ha/ca.crt ends on 2027-06-11 12:00 UTC, in 10 days"),
    ],
)  # fmt: skip
def test_a_certificate_is_told_when_somebody_has_to_see_to_it(
    path: str, days: float, life: int, told: str | None
) -> None:
    edits = {f"certificate\t{path}": line("certificate", path, b64(days, life))}
    found = of_machine("master-1", edits)
    assert [text for _, text, _ in found] == ([] if told is None else [told])
    assert [kind for kind, _, _ in found] == ([] if told is None else ["certificate"])
    if told and path == SERVER:
        assert found[0][2] == RENEW


def test_a_kubeconfig_past_rbac_is_told_and_not_missed() -> None:
    path = "/etc/kubernetes/super-admin.conf"
    there = {f"certificate\t{path}": line("certificate", path, b64(300, 365))}
    assert of_machine("master-1", there) == [
        ("secret", f"{path} is there: who reads it acts past RBAC, and nothing needs it", RAISE)
    ]
    missing = {f"certificate\t{path}": line("certificate", path, "missing")}
    assert of_machine("master-1", missing) == []


def test_an_administrators_file_is_missed() -> None:
    path = "/etc/kubernetes/admin.conf"
    missing = {f"certificate\t{path}": line("certificate", path, "missing")}
    assert of_machine("master-1", missing) == [
        ("certificate", f"{path} holds no certificate", RAISE)
    ]


def test_a_kubelet_without_its_certificate_is_made_anew() -> None:
    missing = {f"certificate\t{KUBELET_PEM}": line("certificate", KUBELET_PEM, "missing")}
    ((_, text, do),) = of_machine("worker-1", missing)
    assert text == f"{KUBELET_PEM} holds no certificate"
    assert do == "raise nodes.<name>.generation of this node and run pulumi up: it is recreated"


NODE = "node\t{}\tTrue\t\tv{}\tcontainerd://{}\t{}\t{}\t{}"


def node_line(name: str, **edits: str) -> str:
    applied = look(PLAN).findings.expected[name].applied
    sets = PLAN.versions
    fields = {
        "kubelet": sets.kubernetes,
        "runtime": sets.containerd,
        "applied": applied,
        "begun": "",
        "failed": "",
    }
    return NODE.format(name, *(fields | edits).values())


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (None, ("node", "there is no Node worker-1 in the cluster")),
        (node_line("worker-1").replace("True", "Unknown"), ("not-ready", "Node is not Ready")),
        (node_line("worker-1").replace("\tTrue\t\t", "\tTrue\ttrue\t"), ("cordoned", "Node is cordoned, and not in maintenance by the config")),
        (
            node_line("worker-1", applied="ffff", failed="eeee 2027-06-01T11:00:00Z disk is full"),
            ("failed", "its last change failed: 2027-06-01T11:00:00Z disk is full"),
        ),
        (
            node_line("worker-1", begun="eeee"),
            ("unfinished", "a change of it has begun, and has not come to its end"),
        ),
        (
            node_line("worker-1", applied="ffff"),
            ("applied", "has not announced that it applied this configuration"),
        ),
        (
            node_line("worker-1", kubelet="1.30.0"),
            ("version", f"the kubelet that runs is 1.30.0, planned is {PLAN.versions.kubernetes}"),
        ),
        (
            node_line("worker-1", runtime="1.7.0"),
            ("version", f"the containerd that runs is 1.7.0, planned is {PLAN.versions.containerd}"),
        ),
    ],
    # Not by the lines: they hold the hash of a CA that is new in every process.
    ids=["missing", "not ready", "cordoned", "failed", "unfinished", "older", "kubelet", "containerd"],
)  # fmt: skip
def test_what_the_cluster_knows_of_a_node_is_told_at_the_node(
    new: str | None, told: tuple[str, str]
) -> None:
    report = look(PLAN, of_cluster={"node\tworker-1": new}).report
    assert report.count == 1
    assert [(one.kind, one.text) for one in report.nodes["worker-1"]] == [told]


def test_a_node_in_maintenance_is_to_be_cordoned() -> None:
    plan = planned(lab({"nodes": {"worker-1": {"state": "maintenance"}}}))
    report = look(plan).report
    assert [one.text for one in report.nodes["worker-1"]] == [
        "Node is in maintenance by the config, and not cordoned"
    ]
    cordoned = node_line("worker-1").replace("\tTrue\t\t", "\tTrue\ttrue\t")
    assert look(plan, of_cluster={"node\tworker-1": cordoned}).report.count == 0


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        (
            {"node\tweb": "node\tweb\tTrue\t\tv1\tcontainerd://1\t\t\t"},
            ("stranger", "Node web is in the cluster, but not in the config"),
        ),
        (
            {"node\tweb": "node\tweb\tTrue\t\tv1\tcontainerd://1\t\t\t", "asked": "asked\tworker-1"},
            ("stranger", "Node web is in the cluster, but not in the config, and was never asked for by this stack"),
        ),
        (
            {"endpoint\t10.0.0.9": "endpoint\t10.0.0.9"},
            ("endpoint", "API server 10.0.0.9 is an endpoint of the Service kubernetes, but no master"),
        ),
        (
            {"settings": line("settings", 1)},
            ("settings", "ConfigMap kubeadm-config or kubelet-config is missing in namespace kube-system"),
        ),
    ],
)  # fmt: skip
def test_what_belongs_to_no_node_is_told_of_the_cluster(
    edits: Edits, told: tuple[str, str]
) -> None:
    report = look(PLAN, of_cluster=edits).report
    assert report.count == 1
    assert [(one.kind, one.text) for one in report.cluster] == [told]


def test_a_node_that_was_lost_and_came_back_is_told_as_that() -> None:
    plan = planned(lab({"nodes": {"worker-2": {"state": "lost"}}}))
    seen = look(plan, of_cluster={"node\tworker-2": node_line("worker-2")})
    assert [one.text for one in seen.report.cluster] == [
        "Node worker-2 is in the cluster, but lost by the config"
    ]
    assert "worker-2" not in seen.report.nodes


def with_members(listed: str, but: Edits | None = None) -> dict[str, Edits]:
    """Every master tells this list of etcd's members."""
    return {
        node.name: {"etcd-list": line("etcd-list", listed), **(but or {})} for node in PLAN.etcd
    }


@pytest.mark.parametrize(
    ("listed", "at", "told"),
    [
        (member_list(PLAN, "master-1", "master-2"), "master-3", "is not an etcd member"),
        (
            member_list(PLAN, "master-1", "master-2", "master-3", isLearner=True),
            "master-3",
            "is an etcd learner, without a vote",
        ),
        (
            member_list(PLAN, "master-1", "master-2", "master-3", name=""),
            "master-3",
            "was added to etcd, and has never started as a member",
        ),
        (
            member_list(PLAN, "master-1", "master-2", "master-3", "master-1", name="old", peerURLs=["https://10.0.0.9:2380"]),
            "cluster",
            "etcd member old at https://10.0.0.9:2380 is not in the config",
        ),
        ("no answer: context deadline exceeded", "cluster", "no etcd member tells of a quorum"),
    ],
)  # fmt: skip
def test_members_of_etcd_are_those_of_the_config(listed: str, at: str, told: str) -> None:
    report = look(PLAN, with_members(listed)).report
    found = report.cluster if at == "cluster" else report.nodes[at]
    assert [one.text for one in found] == [told]
    assert report.count == 1


def test_a_dead_master_is_a_row_and_no_node_complains_of_it_again() -> None:
    down = {"balancer\tmaster-2": line("balancer", "master-2", "DOWN")}
    others: dict[str, Edits | str] = {
        name: down for name in ("master-1", "master-3", "worker-1", "worker-2")
    }
    seen = look(
        PLAN,
        {**others, "master-2": "ssh: connect to host 10.92.0.12 port 22: No route to host"},
        {
            "endpoint\t10.92.0.12": None,
            "node\tmaster-2": node_line("master-2").replace("True", "Unknown"),
        },
    )
    assert drift.code(seen) == 1
    assert drift.table(PLAN.nodes, seen.report) == [
        "master-1  10.92.0.11       ok",
        "master-2  10.92.0.12       unreachable",
        "  - cannot be reached over SSH: ssh: connect to host 10.92.0.12 port 22: No route to host",
        "    do: start the machine, or see that this computer reaches its SSH port",
        "  - Node is not Ready",
        "    do: kubectl describe node master-2 tells why",
        "  - its API server 10.92.0.12 is not an endpoint of the Service kubernetes",
        "    do: see why its kube-apiserver does not serve (journalctl -u kubelet there)",
        "master-3  10.92.0.13       ok",
        "worker-1  10.92.0.101      ok",
        "worker-2  10.92.0.102      ok",
        "cluster                    ok",
        "1 of 5 machines are not as planned",
    ]


def test_where_no_master_tells_nobody_has_looked() -> None:
    seen = look(PLAN, of_cluster="master-1: connection refused")
    assert drift.code(seen) == 2
    assert [one.text for one in seen.report.cluster] == [
        "no master tells about the cluster: master-1: connection refused"
    ]


def test_a_machine_still_to_be_made_is_told_as_that_alone() -> None:
    seen = not_made(look(PLAN), "worker-2")
    assert drift.table(PLAN.nodes, seen.report)[4:7] == [
        "worker-2  10.92.0.102      not made",
        "  - is not made yet",
        "    do: run pulumi up",
    ]


def test_edits_that_are_not_applied_stand_at_the_top() -> None:
    edits = tuple(f"etcd.field{number}: 2, applied was 1" for number in range(7))
    assert drift.head(look(PLAN, not_applied=edits)) == [
        "not applied yet, so the machines cannot be as Pulumi.dev.yaml says:",
        *(f"  - {edit}" for edit in edits[:5]),
        "  - and 2 more",
        "    do: pulumi up --stack dev",
    ]
    assert drift.head(look(PLAN)) == []


def test_programs_get_the_same_in_stable_keys() -> None:
    seen = look(PLAN, {"worker-2": {f"file\t{HAPROXY}": line("file", HAPROXY, "missing")}})
    told = json.loads(json.dumps(drift.document(seen)))
    worker = told["nodes"].pop("worker-2")
    assert worker == {
        "address": "10.92.0.102",
        "pool": "worker",
        "roles": ["worker"],
        "verdict": "1 difference",
        "differences": [
            {
                "kind": "file",
                "subject": HAPROXY,
                "text": f"{HAPROXY} is missing",
                "do": RAISE,
            }
        ],
    }
    assert {node["verdict"] for node in told.pop("nodes").values()} == {"ok"}
    assert told == {
        "stack": "dev",
        "cluster": "dev",
        "exitCode": 1,
        "notApplied": [],
        "notes": [],
        "clusterDifferences": [],
    }


def test_an_absent_machine_is_not_asked_and_differs_in_nothing() -> None:
    plan = planned(lab({"nodes/worker-1": {"state": "absent"}}))
    seen = absent(
        look(
            plan,
            of_cluster={
                "node\tworker-1": line("node", "worker-1", "Unknown", "", "", "", "", "", "")
            },
        ),
        "worker-1",
    )
    assert seen.report.nodes["worker-1"] == ()
    assert drift.code(seen) == 0
    (row,) = [text for text in drift.table(plan.nodes, seen.report) if text.startswith("worker-1")]
    assert row.endswith("absent by the config, not asked")
    assert overview.state(plan.node("worker-1"), seen.findings) == "absent (NotReady)"
