"""Story: snapshots by the clock and before changes; every etcd machine destroyed, and restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.operations import destroy, operation, write, written
from tests.e2e.harness.stack import Stack

NAME = "test-backup"
MASTERS = ("master-1", "master-2", "master-3")


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.60.0/24", masters=3, workers=1)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.up()
    return stack


def backup(stack: Stack) -> Path:
    said = operation(stack, "backup", "--to", str(stack.folder / "backups"))
    return Path(said.strip().splitlines()[-1])


def test_the_leaders_timer_saves_and_the_others_leave_it_to_it(stack: Stack) -> None:
    counted = {}
    for name in MASTERS:
        node = stack.node(name)
        assert node.run("systemctl is-active kube-ha-backup.timer").strip() == "active"
        node.run("systemctl start kube-ha-backup.service")
        counted[name] = len(node.asked("ls /var/lib/kube-ha/backups/*-schedule.db.gz.enc").split())
    assert sorted(counted.values()) == [0, 0, 1]


def test_a_change_of_the_control_plane_is_saved_before_it(stack: Stack) -> None:
    stack.edit("etcd.snapshotCount", 20000)
    stack.up()
    kept = stack.node("master-3").run("ls /var/lib/kube-ha/backups").split()
    assert len([name for name in kept if name.endswith("-change.db.gz.enc")]) == 1


def test_every_etcd_machine_destroyed_and_the_cluster_goes_on(stack: Stack) -> None:
    write(stack, "before-the-backup")
    file = backup(stack)
    write(stack, "after-the-backup")
    worker = stack.node("worker-1").processes()
    destroy(stack, *MASTERS)
    # A first try prepares the machines, and founds no empty cluster in place of the one that was.
    stack.edit("converge.generation", 2)
    failed = stack.up(fails=True)
    assert "restore a snapshot" in failed.tail(200)
    cut = stack.folder / "cut.db.gz.enc"
    cut.write_bytes(file.read_bytes()[:-4096])
    refused = operation(stack, "restore", "--snapshot", str(cut), fails=True)
    assert "bears no seal of this stack" in refused
    said = operation(stack, "restore", "--snapshot", str(file))
    assert "etcd serves on master-1" in said
    update = stack.up()
    stack.took("up after the restore of three destroyed masters", update.seconds)
    stack.wait_healthy({*MASTERS, "worker-1"})
    assert "before-the-backup" in written(stack)
    assert "after-the-backup" not in written(stack)
    assert stack.node("worker-1").processes()["kubelet"] == worker["kubelet"]
    assert_up_changes_nothing(stack)
