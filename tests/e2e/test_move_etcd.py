"""Story: etcd moves from the masters to machines of its own and back, while clients go on."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

NAME = "test-move"
MASTERS = ("master-1", "master-2")


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.23.0/24", masters=2, workers=1)


def test_etcd_moves_out(stack: Stack) -> None:
    stack.up()
    stack.kubectl("create", "configmap", "written-before", "--from-literal=a=b")
    stack.edit("pools.etcd", {"roles": ["etcd"], "count": 1})
    stack.edit("pools.master.roles", ["master"])
    moved(stack, "out")
    assert members(stack, "etcd-1") == ["etcd-1"]
    for name in MASTERS:
        assert stack.node(name).run("pgrep -x etcd || true").strip() == ""


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def test_etcd_moves_back(stack: Stack) -> None:
    stack.edit("pools.etcd", None)
    stack.edit("pools.master.roles", ["etcd", "master"])
    moved(stack, "back")
    assert members(stack, "master-1") == sorted(MASTERS)
    assert stack.kubectl("get", "configmap", "written-before", "-o", "jsonpath={.data.a}") == "b"
    assert stack.up().changes == {}


def moved(stack: Stack, where: str) -> None:
    with Load(stack, f"etcd moves {where}") as load:
        update = stack.up()
    stack.took(f"etcd moved {where}", update.seconds)
    load.assert_unharmed()


def members(stack: Stack, at: str) -> list[str]:
    rows = stack.node(at).etcdctl("member list -w simple").strip().splitlines()
    return sorted(row.split(", ")[2] for row in rows)
