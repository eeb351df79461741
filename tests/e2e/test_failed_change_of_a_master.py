"""Story: a change fails half-way on the only master, the user takes it back, and the master is as it was."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.faults import broken_connection
from tests.e2e.harness.node import Node
from tests.e2e.harness.points import held
from tests.e2e.harness.stack import Stack
from tests.e2e.test_failed_change_reverted import shape


def wanted() -> config.Config:
    return config.lab("test-master-reverted", "10.93.37.0/24", masters=1, workers=1)


def test_change_whose_connection_broke_is_undone(cluster: Stack) -> None:
    master = cluster.node("master-1")
    before = shape(master)

    cluster.edit("etcd.heartbeatIntervalMs", 150)
    with held(master, "etcd-member", "[[ $BASH_COMMAND == promote ]]") as point:
        update = cluster.start_up()
        point.wait(update)
        assert _heartbeat(master) == "150", "etcd has the new settings, its phase is not through"
        broken_connection(master, "etcd-member")
        assert update.end() != 0, update.tail()

    cluster.edit("etcd.heartbeatIntervalMs", None)
    cluster.up()
    assert shape(master) == before
    assert_up_changes_nothing(cluster)


def test_change_that_no_apiserver_starts_with_is_undone(cluster: Stack) -> None:
    master = cluster.node("master-1")
    before = shape(master)

    cluster.edit("controlPlane.apiServerArgs", {"request-timeout": "-1s"})
    failed = cluster.up(fails=True)
    assert "apiserver of master-1 ready" in failed.tail()

    cluster.edit("controlPlane.apiServerArgs", None)
    cluster.up()
    assert shape(master) == before
    assert_up_changes_nothing(cluster)


def _heartbeat(node: Node) -> str:
    environment = node.running().get("etcd-env", "")
    return environment.partition("ETCD_HEARTBEAT_INTERVAL=")[2].partition(" ")[0]
