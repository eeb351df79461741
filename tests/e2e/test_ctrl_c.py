"""Story: Ctrl-C while a cluster is made, once and later twice; the next update repairs whatever was left."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.update import Update
from tests.e2e.harness.waiting import wait_for


def wanted() -> config.Config:
    return config.lab("test-ctrl-c", "10.93.7.0/24", masters=1, workers=1)


def test_ctrl_c_ends_the_run_in_order_and_the_next_up_goes_on(stack: Stack) -> None:
    update = stack.start_up()
    _wait_until(stack, update, "containerd")
    update.interrupt()
    assert update.end(limit_s=120) != 0

    # No lock was left behind, so nothing has to be cancelled.
    update = stack.start_up()
    _wait_until(stack, update, "kubeadm")
    update.interrupt()
    wait_for("first Ctrl-C noticed", lambda: _unheard(update), limit_s=30)
    update.interrupt()
    assert update.end(limit_s=120) != 0
    stack.cancel()

    stack.up()
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=30)


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def _wait_until(stack: Stack, update: Update, program: str) -> None:
    """Until this program runs on the master."""
    master = stack.node("master-1")

    def missing() -> str:
        assert update.alive, f"ended before {program} ran\n{update.tail()}"
        return "" if master.runs(program) else f"no process {program}"

    wait_for(f"{program} runs", missing, limit_s=300, every_s=0.1)


def _unheard(update: Update) -> str:
    if not update.alive or "^C" in update.output or "ancel" in update.output:
        return ""
    return f"no answer to Ctrl-C: {update.tail(3)}"
