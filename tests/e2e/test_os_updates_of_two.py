"""Story: packages of the operating system of the only master and a worker: where nothing is newer nobody steps aside, and an engine that dies
leaves machines that go on by themselves."""

from __future__ import annotations

from tests.e2e.harness import config, debian, pods
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

SUBNET, MIRROR = "10.93.75.0/24", "10.93.75.2"
NODES = ["master-1", "worker-1"]


def wanted() -> config.Config:
    return config.lab("test-os-two", SUBNET, masters=1, workers=1)


def test_where_nothing_is_newer_nobody_steps_aside(cluster: Stack) -> None:
    debian.give(cluster, NODES, MIRROR)
    # apt asks whether a list is newer by its time, to the second: on a fast computer old and new ones were made in one.
    cluster.node("mirror").run("touch -d '1 minute' /srv/apt/Packages")
    cluster.edit("os.packages", "none")
    cluster.edit("os.reboot", "never")
    cluster.edit("os.hold", ["test-held", "test-kernel"])
    with pods.untouched(cluster, NODES):
        cluster.up()
    assert debian.reboots(cluster, NODES) == dict.fromkeys(NODES, 0)
    assert debian.versions(cluster, NODES) == dict.fromkeys(NODES, "1.0 1.0")
    assert debian.marks(cluster) == dict.fromkeys(NODES, "os=none")


def test_an_engine_that_dies_leaves_a_machine_that_goes_on_by_itself(cluster: Stack) -> None:
    for field in ("reboot", "hold"):
        cluster.edit(f"os.{field}", None)
    cluster.edit("os.packages", "first")
    update = cluster.start_up()

    def pending() -> str:
        return "" if debian.reboots(cluster, NODES)["master-1"] else "not yet"

    wait_for("reboot of the only master", pending, limit_s=240)
    update.sigkill()
    cluster.wait_healthy(set(NODES), limit_s=180)
    assert debian.reboots(cluster, NODES) == {"master-1": 1, "worker-1": 0}
