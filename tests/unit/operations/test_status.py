"""The cluster on one screen."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from operations import status
from operations.observe.status_document import document
from tests.unit.configs import lab, planned, with_store
from tests.unit.operations.probed import (
    Edits,
    b64,
    hours_ago,
    line,
    look,
    member_id,
    member_list,
    member_status,
    not_made,
)

PLAN = planned(lab())
SERVER = "/etc/kube-ha/etcd/server.crt"


def test_a_cluster_as_planned_fits_on_a_screen() -> None:
    server = {f"certificate\t{SERVER}": line("certificate", SERVER, b64(200))}
    assert status.screen(look(PLAN, {"master-2": server})) == [
        "cluster dev: Kubernetes 1.36.3, API at https://10.92.0.11:6443, ready on 3 of 3 masters",
        "",
        "node      roles        address      state  kubelet  containerd  etcd    units   certs  disk  differs",
        "master-1  etcd+master  10.92.0.11   Ready  1.36.3   2.3.7       3.6.16  5 of 5  300 d  80 %  -",
        "master-2  etcd+master  10.92.0.12   Ready  1.36.3   2.3.7       3.6.16  5 of 5  200 d  80 %  -",
        "master-3  etcd+master  10.92.0.13   Ready  1.36.3   2.3.7       3.6.16  5 of 5  300 d  80 %  -",
        "worker-1  worker       10.92.0.101  Ready  1.36.3   2.3.7       -       3 of 3  300 d  80 %  -",
        "worker-2  worker       10.92.0.102  Ready  1.36.3   2.3.7       -       3 of 3  300 d  80 %  -",
        "",
        "etcd: 3 voting members, leader master-1, 5.0 MiB of 2 GiB, no alarms, survives the loss of 1 member",
        "load balancers: 5 of 5 nodes find every master up",
        f"certificates: the first ends in 200 days (2027-12-18): {SERVER} of master-2",
        "backups: the last one 2 h 30 min ago (revision 4711, 3.0 MiB, on master-3), every 6 h",
        "plan: everything is as planned",
    ]


def test_a_dead_master_shows_in_every_line() -> None:
    down = {"balancer\tmaster-2": line("balancer", "master-2", "DOWN")}
    others: dict[str, Edits | str] = {
        name: down for name in ("master-1", "master-3", "worker-1", "worker-2")
    }
    lines = status.screen(look(PLAN, {**others, "master-2": "No route to host"}))
    assert lines[0].endswith("ready on 2 of 3 masters")
    assert lines[4].split()[:3] == ["master-2", "etcd+master", "10.92.0.12"]
    assert "unreachable (Ready)" in lines[4]
    assert "no alarms, survives the loss of 0 members" in lines[9]
    assert lines[10] == (
        "load balancers: 4 of 5 nodes tell: master-2 is down for master-1, master-3 and 2 more"
    )
    assert lines[13] == "plan: 1 difference on 1 of 5 machines; details: make drift STACK=dev"


@pytest.mark.parametrize(
    ("machine", "of_cluster", "state"),
    [
        ({}, {"node\tworker-1": None}, "no Node"),
        ({}, {"node\tworker-1": line("node", "worker-1", "Unknown", "", "v1.36.3", "c://2", "", "", "")}, "NotReady"),
        ({}, {"node\tworker-1": line("node", "worker-1", "True", "true", "v1.36.3", "c://2", "", "", "")}, "Ready, cordoned"),
        (
            {},
            {"node\tworker-1": line("node", "worker-1", "True", "", "v1.36.3", "c://2", "", "", "ee 11:00 disk is full")},
            "failed: 11:00 disk is full",
        ),
        ("No route to host", "refused", "unreachable"),
        ({"owner": line("owner", "prod 1 web")}, {}, "of another cluster"),
        ({"owner": line("owner", "")}, {}, "not set up"),
        ({}, "refused", "unknown"),
    ],
)  # fmt: skip
def test_the_state_of_a_node_is_the_worst_that_is_known(
    machine: Edits | str, of_cluster: Edits | str, state: str
) -> None:
    told = document(look(PLAN, {"worker-1": machine}, of_cluster))["nodes"]
    assert isinstance(told, dict)
    assert told["worker-1"]["state"] == state


def test_a_machine_still_to_be_made_is_told() -> None:
    seen = replace(not_made(look(PLAN), "worker-2"), not_applied=("a: 1, applied was 2", "b", "c"))
    lines = status.screen(seen)
    assert "not made" in lines[7]
    assert lines[-1] == (
        "plan: not applied yet: a: 1, applied was 2 and 2 more; pulumi preview --stack dev shows it"
    )


def test_nodes_that_are_away_are_named() -> None:
    states = {"worker-1": {"state": "lost"}, "worker-2": {"state": "decommissioned"}}
    seen = look(planned(lab({"nodes": states})))
    lines = status.screen(seen)
    assert lines[6] == "away by the config: worker-1 lost, worker-2 decommissioned"
    assert document(seen)["away"] == {"worker-1": "lost", "worker-2": "decommissioned"}


def test_machines_of_etcd_alone_are_ready_when_they_know_a_leader() -> None:
    plan = planned(
        lab({"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]})
    )
    lost = {"etcd-status": line("etcd-status", member_status(plan, "etcd-2", leader=0))}
    told = document(look(plan, {"etcd-2": lost}))["nodes"]
    assert isinstance(told, dict)
    assert (told["etcd-1"]["state"], told["etcd-2"]["state"]) == ("Ready", "NotReady")


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        (
            {"etcd-list": line("etcd-list", "no answer"), "etcd-status": line("etcd-status", "no answer")},
            "etcd: NO QUORUM: no member tells of one (0 of 3 answer)",
        ),
        (
            {"etcd-list": line("etcd-list", member_list(PLAN, "master-1", "master-2", "master-3", isLearner=True))},
            "etcd: 2 voting members and 1 learning, leader master-1, 5.0 MiB of 2 GiB, no alarms, survives the loss of 0 members",
        ),
    ],
)  # fmt: skip
def test_etcd_in_one_line(edits: Edits, told: str) -> None:
    seen = look(PLAN, {node.name: edits for node in PLAN.etcd})
    assert status.screen(seen)[9] == told


@pytest.mark.parametrize("false", ["master-1", "master-2", "master-3"])
def test_an_etcd_that_is_another_cluster_is_named_and_counts_for_nothing(false: str) -> None:
    """Whichever: also the one that is asked first."""
    leader = next(node.name for node in PLAN.etcd if node.name != false)
    edits: dict[str, Edits] = {
        node.name: {
            "etcd-status": line(
                "etcd-status",
                member_status(PLAN, node.name, leader=member_id(PLAN, leader)),
            )
        }
        for node in PLAN.etcd
    }
    status_of = member_status(PLAN, false, header={"member_id": 77, "cluster_id": 5}, leader=77)
    edits[false] = {
        "etcd-status": line("etcd-status", status_of),
        "etcd-identity": line("etcd-identity", "5 1 none"),
        "etcd-list": line("etcd-list", member_list(PLAN, false)),
    }
    lines = status.screen(look(PLAN, edits))
    assert f"3 voting members, leader {leader}, " in lines[9]
    assert "survives the loss of 0 members" in lines[9]
    assert lines[10] == (
        f"  ATTENTION: etcd of {false} is another cluster, which began empty, "
        "since 1970-01-01 00:15:00 UTC"
    )


def test_alarms_of_etcd_are_shouted() -> None:
    alarm = line("etcd-status", member_status(PLAN, "master-2", errors=["alarm:NOSPACE"]))
    lines = status.screen(look(PLAN, {"master-2": {"etcd-status": alarm}}))
    assert "ALARMS: NOSPACE of master-2 (make drift tells what to do)" in lines[9]


def test_an_alarm_is_told_once_and_by_the_name_of_whose_it_is() -> None:
    """Every member tells those of all; one whose member no machine is known for runs as standby its id."""
    errors = ["memberID:1001 alarm:CORRUPT ", "memberID:255 alarm:NOSPACE "]
    edits = {
        node.name: {
            "etcd-status": line("etcd-status", member_status(PLAN, node.name, errors=errors))
        }
        for node in PLAN.etcd
    }
    seen = look(PLAN, edits)
    assert "ALARMS: CORRUPT of master-2; NOSPACE of ff (" in status.screen(seen)[9]
    alarms = {name: [one.text for one in found] for name, found in seen.report.nodes.items()}
    assert [name for name, texts in alarms.items() if texts] == ["master-2"]
    assert "raise nodes.master-2.generation" in seen.report.nodes["master-2"][0].do
    assert [one.text for one in seen.report.cluster] == ["etcd alarm NOSPACE of ff"]


def test_what_is_free_inside_of_etcd_is_told() -> None:
    half = member_status(PLAN, "master-2", dbSize=400 * 1024**2, dbSizeInUse=100 * 1024**2)
    lines = status.screen(look(PLAN, {"master-2": {"etcd-status": line("etcd-status", half)}}))
    assert "400.0 MiB (75 % of it free inside) of 2 GiB" in lines[9]


def test_an_api_that_does_not_answer_is_the_first_line() -> None:
    seen = look(PLAN, of_cluster="master-1: connection refused")
    assert status.screen(seen)[0] == (
        "cluster dev: Kubernetes 1.36.3, API at https://10.92.0.11:6443 DOES NOT ANSWER: "
        "master-1: connection refused"
    )
    assert status.code(seen) == 0


def test_where_no_machine_is_reached_nothing_was_seen() -> None:
    dead: dict[str, Edits | str] = {node.name: "No route to host" for node in PLAN.nodes}
    seen = look(PLAN, dead, "no master can be reached over SSH")
    assert status.code(seen) == 2
    lines = status.screen(seen)
    assert "certificates: the first ends in 300 days (2028-03-27): kubeconfig of the stack" in lines


def test_of_many_nodes_only_those_that_are_not_fine_are_listed() -> None:
    plan = planned(lab({"machines.lab": {"subnet": "10.92.0.0/16"}, "pools.worker.count": 200}))
    dead: dict[str, Edits | str] = {
        f"worker-{number}": "No route to host" for number in range(1, 41)
    }
    lines = status.screen(look(plan, dead))
    assert lines[2:6] == [
        "pool master      3 nodes,     3 fine",
        "pool worker    200 nodes,   160 fine",
        "",
        lines[5],
    ]
    assert [row.split()[0] for row in lines[6:36]] == [
        f"worker-{number}" for number in range(1, 31)
    ]
    assert lines[36] == "and 10 more that are not fine"
    assert len(lines) == 43


def test_programs_get_the_same_in_stable_keys() -> None:
    told = json.loads(json.dumps(document(look(PLAN, {"worker-2": "No route to host"}))))
    assert told["nodes"]["worker-2"] == {
        "pool": "worker",
        "roles": ["worker"],
        "address": "10.92.0.102",
        "state": "unreachable (Ready)",
        "versions": {"kubelet": "1.36.3", "containerd": "2.3.7"},
        "units": {},
        "certificateDays": None,
        "diskFreePercent": None,
        "differences": 1,
    }
    assert told["nodes"]["master-1"]["units"] == dict.fromkeys(
        ("haproxy", "containerd", "kubelet", "kube-ha-approver", "etcd"), "active"
    )
    assert told["etcd"]["status"]["master-1"] == {
        "version": "3.6.16",
        "raftIndex": 4711,
        "bytes": 5 * 1024**2,
        "bytesInUse": None,
        "quotaBytes": 2 * 1024**3,
        "errors": [],
    }
    assert told["etcd"]["canLose"] == 1
    assert told["firstCertificateToEnd"]["days"] == 300
    assert sorted(told) == [
        "api", "away", "cluster", "clusterDifferences", "differences", "endpoint", "etcd",
        "firstCertificateToEnd", "kubernetes", "lastBackup", "lastBackupSent", "loadBalancers", "nodes", "notApplied", "programVersion", "stack", "virtualIp",
    ]  # fmt: skip


def test_the_last_backup_is_told_to_people_and_programs() -> None:
    assert document(look(PLAN))["lastBackup"] == {
        "node": "master-3",
        "name": "dev-20270601T093000Z-4711-schedule.db.enc",
        "time": "2027-06-01T09:30:00+00:00",
        "bytes": 3 * 1024**2,
        "revision": 4711,
    }
    none = look(PLAN, {"master-3": {"backup": None}})
    assert "backups: NONE yet (every 6 h)" in status.screen(none)
    assert document(none)["lastBackup"] is None
    assert document(none)["lastBackupSent"] is None


def test_the_screen_says_how_old_the_last_one_in_the_object_store_is() -> None:
    plan = planned(lab(with_store()))
    one = "dev-20270601T093000Z-4711-master-3-schedule.db.enc"
    there = look(plan, {"master-3": {"backup-sent": line("backup-sent", hours_ago(26), one)}})
    assert "every 6 h; in the object store: 26 h 0 min ago" in "\n".join(status.screen(there))
    sent = document(there)["lastBackupSent"]
    assert isinstance(sent, dict)
    assert sent["name"] == one
    assert "every 6 h; NONE in the object store" in "\n".join(status.screen(look(plan)))


WITH_VIP = planned(lab({"frontDoors.vip": {"address": "10.92.0.5"}}))
VIP = "10.92.0.5:8443"


@pytest.mark.parametrize(
    ("masters", "told"),
    [
        ({}, "is on master-1"),
        ({"master-1": {"vip": line("vip", 0)}}, "is on NO MACHINE"),
        ({"master-3": {"vip": line("vip", 1)}}, "is on master-1, master-3 AT ONCE"),
    ],
)
def test_who_has_the_virtual_ip(masters: dict[str, dict[str, str | None]], told: str) -> None:
    seen = look(WITH_VIP, masters)
    assert f"virtual IP: {VIP} {told}" in status.screen(seen)
    assert bool(masters) == any(one.kind == "virtual-ip" for one in seen.report.cluster)
    asked = document(seen)["virtualIp"]
    assert isinstance(asked, dict)
    assert asked["address"] == VIP


def test_a_virtual_ip_that_a_master_may_have_that_was_not_reached() -> None:
    seen = look(WITH_VIP, {"master-1": "No route to host"})
    assert not [one for one in seen.report.cluster if one.kind == "virtual-ip"]


ON_EDGES = planned(
    lab(
        {
            "frontDoors.vip": {"address": "10.92.0.5"},
            "pools.edge": {"roles": ["loadbalancer"], "count": 2},
            "nodes": {"edge-2": {"state": "maintenance"}},
        }
    )
)


def test_load_balancers_are_told_as_what_they_are() -> None:
    seen = look(ON_EDGES)
    assert not seen.report.count, seen.report
    screen = status.screen(seen)
    assert f"virtual IP: {VIP} is on edge-1" in screen
    assert "load balancers: 7 of 7 nodes find every master up" in screen
    rows = {row.split()[0]: row for row in screen if row.startswith("edge-")}
    assert " Ready  " in rows["edge-1"]
    assert "2 of 2" in rows["edge-1"]  # HAProxy and keepalived
    assert "Ready, in maintenance" in rows["edge-2"]
    assert "1 of 1" in rows["edge-2"]
    off = look(
        ON_EDGES,
        {"edge-1": {"unit\tkeepalived": line("unit", "keepalived", "failed", "enabled", 900, 3)}},
    )
    assert "NotReady" in "\n".join(status.screen(off))
    assert [one.subject for one in off.report.nodes["edge-1"]] == ["keepalived"]


def test_without_one_nothing_is_said_of_it() -> None:
    assert not [text for text in status.screen(look(PLAN)) if "virtual IP" in text]
    assert document(look(PLAN))["virtualIp"] is None
