"""Story: kubelet and containerd of a worker hang, and systemd restarts them; containers keep running."""

from __future__ import annotations

import pytest

from tests.e2e.harness import config, pods
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

SECONDS = 30
_LIMIT_S = SECONDS + 120  # systemd asks the program to end, then ends it, and starts it again


def wanted() -> config.Config:
    return {
        **config.lab("test-hung-programs", "10.93.151.0/24", masters=1, workers=1),
        "kubelet": {"watchdogS": SECONDS},
        "runtime": {"watchdogS": SECONDS},
    }


def test_up_ends_with_pods(stack: Stack) -> None:
    stack.up()
    pods.deploy(stack)


def test_programs_that_answer_are_left_alone(stack: Stack) -> None:
    """For longer than the watchdog waits; a loop of an earlier start would show as a second one."""
    node = stack.node("worker-1")
    with pods.untouched(stack, {"worker-1"}):
        node.run(f"sleep {2 * SECONDS}", timeout_s=2 * SECONDS + 30)
    assert loops(stack) == 1


@pytest.mark.parametrize("program", ["containerd", "kubelet"])
def test_one_that_hangs_is_restarted_and_containers_go_on(stack: Stack, program: str) -> None:
    node = stack.node("worker-1")
    before = node.processes()
    node.run(f"kill -STOP {before[program]}")

    def still() -> str:
        now = node.run(f"systemctl show -p MainPID --value {program}").strip()
        return "" if now not in ("0", before[program]) else f"{program} is {now}, as it was"

    stack.took(f"a {program} that hangs is restarted", wait_for(program, still, limit_s=_LIMIT_S))
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=120)
    pods.wait_running(stack)
    after = node.processes()
    assert {name: pid for name, pid in after.items() if name != program} == {
        name: pid for name, pid in before.items() if name != program
    }
    assert "watchdog" in node.run(f"journalctl -q -u {program} -o cat | grep -i watchdog").lower()
    wait_for(
        "one loop",
        lambda: "" if loops(stack) == 1 else f"{loops(stack)} loops",
        limit_s=2 * SECONDS,
    )


def loops(stack: Stack) -> int:
    """How many tell systemd that containerd answers."""
    return int(stack.node("worker-1").run("pgrep -fc '^/bin/sh -c while kill -0' || true").strip())
