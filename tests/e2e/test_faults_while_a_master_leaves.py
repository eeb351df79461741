"""Story: the engine dies and a machine stands still while the bootstrap master leaves; clients feel nothing, and a plain up continues."""

from __future__ import annotations

import time

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.faults import engine_death, stall
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-leaving"
SUBNET = "10.93.36"
STALL_S = 20


def wanted() -> config.Config:
    return config.lab(NAME, f"{SUBNET}.0/24", masters=3, workers=2)


def test_bootstrap_master_leaves_through_faults(stack: Stack) -> None:
    stack.up()
    pods.deploy(stack)
    second = stack.node("master-2")
    stack.make_leader("master-1")
    stack.set_nodes({"master-1": {"state": "removed"}})

    def removed() -> bool:
        return ", master-1, " not in second.etcdctl("member list -w simple")

    with (
        Load(stack, "while a master leaves") as load,
        pods.untouched(stack, {"master-2", "master-3", "worker-1", "worker-2"}),
    ):
        # Its member is gone; its machine, and its name in every list, are not.
        engine_death(stack, resource=f"{NAME}-nodes", until=removed)
        update = stack.start_up()
        # Before its first step it would be put off, as a worker that is away is.
        wait_for("its first step", lambda: "" if update.changes else "none yet", limit_s=120)
        with stall(stack.node("worker-2")):
            time.sleep(STALL_S)
        assert update.end() == 0, update.tail()
        load.read_kubeconfig_again()
        stack.took("the update after that", update.seconds)
        stack.wait_healthy({"master-2", "master-3", "worker-1", "worker-2"}, limit_s=30)
    load.assert_unharmed()


def test_what_is_left_is_sound(stack: Stack) -> None:
    assert_sound(stack, gone=[f"{SUBNET}.11"])
