"""Phases on real machines: run once, run again, and after kill -9 in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from operations import preflight
from operations.ssh import client
from tests.e2e.harness import lab
from tests.e2e.harness.waiting import wait_for
from tests.scripts.phases import LAB, Phases

pytestmark = pytest.mark.lab

MEMBERS = ("master-1", "master-2", "master-3")


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phases]:
    lab.free(LAB)
    try:
        yield Phases.start(tmp_path_factory.mktemp("phases"), masters=3, workers=2)
    finally:
        lab.free(LAB)


@pytest.fixture(scope="module")
def worker(phases: Phases) -> Phases:
    """worker-1 is prepared, undisturbed."""
    phases.run("worker-1-preflight")
    phases.run("worker-1-node")
    return phases


@pytest.fixture(scope="module")
def cluster(phases: Phases) -> Phases:
    """etcd founded on master-1, joined by master-2 and master-3."""
    for name in MEMBERS:
        phases.run(f"{name}-etcd-keys")
    phases.run("master-1-etcd-found")
    for name in MEMBERS:
        phases.run(f"{name}-etcd")
    return phases


def assert_second_run_changes_nothing(phases: Phases, name: str) -> None:
    node = phases.node(name.rpartition("-")[0])
    before, files = node.processes(), node.files()
    out = phases.run(name)
    assert out.splitlines()[-1].endswith("done, changes=0"), out
    assert (node.processes(), node.files()) == (before, files)


def test_preflight_passes_and_changes_nothing(phases: Phases) -> None:
    node = phases.node("worker-2")
    before = node.files()
    assert "preflight passed" in phases.run("worker-2-preflight")
    assert node.files() == before


def test_preflight_by_hand_finds_machines_ready(phases: Phases) -> None:
    """`make preflight` sends scripts and values along, over SSH; the user is not root."""
    answers = {
        name: client.run(phases.target(name), "preflight", phases.values(name), limit_s=60)
        for name in ("worker-1", "worker-2")
    }
    for name, answer in answers.items():
        assert preflight.of_answer(answer) == [], answer.text
        assert preflight.between(name, answers) == []


def test_preflight_by_hand_lists_every_problem(phases: Phases) -> None:
    missing = phases.values("worker-2")["SOURCES"].split()[0] + "-missing"
    values = phases.values("worker-2") | {"MIN_CPUS": "999", "SOURCES": missing}
    answer = client.run(phases.target("worker-2"), "preflight", values, limit_s=90)
    found = preflight.of_answer(answer)
    assert len(found) == 2
    assert "999 needed" in found[0]
    assert f"{missing} answers: 404" in found[1]


def test_preflight_by_hand_trusts_the_pinned_host_key_alone(phases: Phases) -> None:
    other = phases.target("worker-1").hop.host_key
    target = phases.target("worker-2")
    target = replace(target, hop=replace(target.hop, host_key=other))
    answer = client.run(target, "preflight", phases.values("worker-2"), limit_s=60)
    assert not answer.reached
    assert "cannot be reached over SSH" in preflight.of_answer(answer)[0]


def test_node_is_ready_for_its_roles(worker: Phases) -> None:
    node = worker.node("worker-1")
    running = node.processes()
    assert int(running["containerd"]) > 0
    assert int(running["haproxy"]) > 0


def test_second_run_on_a_node_changes_nothing(worker: Phases) -> None:
    assert_second_run_changes_nothing(worker, "worker-1-node")


@pytest.mark.parametrize(
    "seen",
    [
        "[[ -e /etc/haproxy/haproxy.cfg ]]",
        "[[ -e /etc/containerd/config.toml ]]",
        "[[ -e /usr/local/bin/kubeadm ]]",  # the kubelet is still to come
    ],
)
def test_node_killed_on_the_way_is_finished_by_the_next_run(worker: Phases, seen: str) -> None:
    node = worker.node("worker-2")
    if node.asked(f"{seen} && echo there"):
        worker.leave("worker-2")
        lab.engine("exec", node.container, "mkdir", "-p", "/root/.kube-ha")
        lab.engine("cp", "components/scripts", f"{node.container}:/root/.kube-ha/")
    assert worker.kill_at("worker-2-node", seen)
    out = worker.run("worker-2-node")
    assert not out.splitlines()[-1].endswith("changes=0"), out
    assert node.files().keys() == worker.node("worker-1").files().keys()
    assert node.files() == worker.node("worker-1").files()
    assert_second_run_changes_nothing(worker, "worker-2-node")


def voters(phases: Phases, at: str) -> list[str]:
    rows = [
        row.split(", ") for row in phases.node(at).etcdctl("member list -w simple").splitlines()
    ]
    return sorted(row[2] for row in rows if row[1] == "started" and row[5] == "false")


def test_etcd_is_not_founded_by_who_may_not(phases: Phases) -> None:
    """No member answers, and this machine has no data: never a reason for a second cluster."""
    phases.run("master-2-etcd-keys")
    out = phases.run("master-2-etcd", fails=True)
    assert "no etcd member with a quorum answers" in out


def test_members_join_one_by_one_and_vote(cluster: Phases) -> None:
    assert voters(cluster, "master-1") == list(MEMBERS)


def test_second_run_on_members_changes_nothing(cluster: Phases) -> None:
    for name in MEMBERS:
        assert_second_run_changes_nothing(cluster, f"{name}-etcd")


def test_founding_again_joins_what_is_there(cluster: Phases) -> None:
    """Its data is lost, its permission to found is not: the others are asked first."""
    cluster.node("master-1").run("systemctl stop etcd; rm -rf /var/lib/kube-ha/etcd/*")
    out = cluster.run("master-1-etcd-found")
    assert "founding" not in out
    assert "lost incarnation" in out
    assert voters(cluster, "master-2") == list(MEMBERS)


@pytest.mark.parametrize(
    "seen",
    [
        "[[ -e /etc/kube-ha/etcd/bootstrap.env ]]",
        "systemctl is-active -q etcd",
        """[[ $BASH_COMMAND == 'rm -f "$BOOTSTRAP_ENV"' ]]""",  # promoted already
    ],
)
def test_join_killed_on_the_way_is_finished_by_the_next_run(cluster: Phases, seen: str) -> None:
    node = cluster.node("master-3")
    node.run("systemctl stop etcd; rm -rf /var/lib/kube-ha/etcd/* /etc/kube-ha/etcd/bootstrap.env")
    assert cluster.kill_at("master-3-etcd", seen)
    cluster.run("master-3-etcd")
    assert voters(cluster, "master-1") == list(MEMBERS)
    assert_second_run_changes_nothing(cluster, "master-3-etcd")


def test_a_member_removed_while_it_was_down_joins_anew(cluster: Phases) -> None:
    node = cluster.node("master-3")
    rows = cluster.node("master-1").etcdctl("member list -w simple").splitlines()
    member = next(row.partition(",")[0] for row in rows if ", master-3, " in row)
    node.run("systemctl stop etcd")
    cluster.node("master-1").etcdctl(f"member remove {member}")
    out = cluster.run("master-3-etcd")
    assert "was removed from its cluster" in out
    assert voters(cluster, "master-1") == list(MEMBERS)


def test_a_restart_that_would_cost_the_quorum_is_refused(cluster: Phases) -> None:
    cluster.node("master-2").run("systemctl stop etcd")
    node = cluster.node("master-3")
    before = node.processes()
    node.run("rm /var/lib/kube-ha/state/etcd.service.sum")
    out = cluster.run("master-3-etcd", fails=True)
    assert "would cost the quorum" in out
    assert node.processes() == before
    cluster.node("master-2").run("systemctl start etcd")


def still_member(phases: Phases, name: str) -> str:
    """Remove a member; why it could not be done. etcd refuses for seconds after one was started."""
    first = phases.node("master-1")
    rows = first.etcdctl("member list -w simple").splitlines()
    member = next(row.partition(",")[0] for row in rows if f", {name}, " in row)
    try:
        first.etcdctl(f"member remove {member}")
    except lab.LabError as error:
        return str(error)
    return ""


def test_a_decommissioned_member_is_quiet_and_comes_back(cluster: Phases) -> None:
    node = cluster.node("master-3")
    out = cluster.by_hand("master-3", "decommission", fails=True)
    assert "still a voting member, so nothing was stopped" in out
    assert node.runs("etcd")
    wait_for("master-3 is not a member", lambda: still_member(cluster, "master-3"), limit_s=30)
    cluster.by_hand("master-3", "decommission")
    assert not node.runs("etcd")
    assert node.run("systemctl is-enabled etcd || true") == "disabled\n"
    again = cluster.by_hand("master-3", "decommission")
    assert again.splitlines()[-1].endswith("done, changes=0"), again
    assert "was removed from its cluster" in cluster.run("master-3-etcd")
    assert voters(cluster, "master-1") == list(MEMBERS)
    assert_second_run_changes_nothing(cluster, "master-3-etcd")


def test_a_machine_released_with_its_files_is_adopted_again(worker: Phases) -> None:
    node = worker.node("worker-1")
    before = node.files()
    assert "files stay" in worker.by_hand("worker-1", "leave", "keep")
    assert set(node.processes().values()) == {"0"}
    assert not [path for path in node.files() if path.startswith(("/etc/kube-ha", "/etc/kuber"))]
    assert "nothing of this cluster" in worker.by_hand("worker-1", "leave", "keep")
    assert "preflight passed" in worker.run("worker-1-preflight")
    worker.run("worker-1-node")
    assert node.files() == before
    assert_second_run_changes_nothing(worker, "worker-1-node")


def test_another_incarnation_is_wiped_first_however_often_it_is_killed(worker: Phases) -> None:
    node = worker.node("worker-2")
    node.run("touch /var/lib/kubelet/old /var/lib/kube-ha/old")
    for seen in ("[[ ! -e /etc/containerd ]]", "[[ -e /etc/haproxy/haproxy.cfg ]]"):
        assert worker.kill_at("worker-2-node", seen, incarnation=2)
    worker.renew("worker-2", 2)
    assert node.run("cat /var/lib/kube-ha/state/incarnation") == "2\n"
    assert node.run("ls /var/lib/kubelet/old /var/lib/kube-ha/old 2>/dev/null || true") == ""
    assert node.files() == worker.node("worker-1").files()
    assert worker.renew("worker-2", 2).splitlines()[-1].endswith("done, changes=0")
    assert "config wants 1" in worker.run("worker-2-preflight", fails=True)


def test_leaving_keeps_files_of_which_nothing_runs_and_a_wipe_leaves_nothing_of_ours(
    worker: Phases,
) -> None:
    node = worker.node("worker-1")
    assert "files stay, nothing of them runs" in worker.leave("worker-1")
    assert not node.runs("containerd")
    assert not node.runs("kubelet")
    assert node.run("ls -d /var/lib/kube-ha/state/owner /etc/kube-ha /etc/kubernetes || true") == ""
    assert "machine is clean" in worker.by_hand("worker-1", "leave")
    assert node.run(
        "ls -A /var/lib/kube-ha /var/lib/kubelet; ls -d /etc/kube-ha || true"
    ).split() == [
        "/var/lib/kube-ha:",
        "/var/lib/kubelet:",
    ]
    assert not node.runs("containerd")
