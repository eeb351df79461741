"""What goes wrong in real life, made to happen: an engine that dies, a connection that breaks, a machine that stalls, a disk that is full."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.update import Update
from tests.e2e.harness.waiting import wait_for

# Most steps take longer: what is killed is then at work on a machine.
_INTO_A_STEP_S = 3
_LAST_STEPS = 3  # the gate, and what is deleted after it

# The process of sshd that serves the session in which this phase runs.
_SESSION = r"""
pid=$(pgrep -o -f "[r]un.sh $PHASE( |$)")
until [ "$(cat "/proc/$pid/comm")" = sshd ]; do pid=$(ps -o ppid= -p "$pid" | tr -d ' '); done
kill -9 "$pid"
"""


def engine_death(stack: Stack, *, resource: str, until: Callable[[], bool] = lambda: True) -> None:
    """An update whose engine is killed once the step of this resource has begun and `until` is true.

    Plugins and what runs on nodes are left alone, as by an out-of-memory killer. The lock that the engine leaves is
    taken away.
    """
    update = stack.start_up()

    def missing() -> str:
        assert update.alive, f"the update ended before it came to {resource}\n{update.tail()}"
        reached = update.has_begun(resource) and until()
        return "" if reached else f"not there yet: {update.tail(5)}"

    try:
        seconds = wait_for(f"step of {resource}", missing, limit_s=300, every_s=0.1)
    finally:
        update.sigkill()
    stack.measured(f"engine killed after {seconds:.0f} s, at {resource}")
    stack.cancel()


def seeded(stack: Stack) -> random.Random:
    """Chance that can be had again: KUBE_HA_SEED, else a new seed, which is told."""
    seed = os.environ.get("KUBE_HA_SEED") or str(random.SystemRandom().randrange(1_000_000))
    stack.measured(f"KUBE_HA_SEED={seed}")
    return random.Random(seed)  # noqa: S311 (the steps shall be known again)


def engine_deaths_at_random(stack: Stack, chance: random.Random, times: int) -> int:
    """So many ups of one edit, killed at random steps of all that it takes; how many of them still ran then.

    Stamps of attempts are not steps here: all are made in the first second, and half of the kills would hit nothing else.
    Nor are the last ones of all, after which an engine is at its end before anybody can kill it.
    """
    every = len(_steps(stack.preview())) - _LAST_STEPS
    begun: set[str] = set()
    killed = 0
    for at in sorted(chance.sample(range(1, every + 1), times)):
        update = stack.start_up()

        def missing(update: Update = update, at: int = at) -> str:
            begun.update(_steps(update))
            reached = len(begun) >= at or not update.alive
            return "" if reached else f"{len(begun)} steps of {at}"

        try:
            wait_for(f"step {at} of {every}", missing, limit_s=300, every_s=0.1)
            time.sleep(chance.uniform(0, _INTO_A_STEP_S))
            alive = update.alive
        finally:
            update.sigkill()
        if not alive:
            assert update.end() == 0, update.tail()
            return killed
        stack.measured(f"engine killed at step {at} of {every}: {_steps(update)[-1]}")
        stack.cancel()
        killed += 1
    return killed


def _steps(update: Update) -> list[str]:
    return [name for name in update.changes if not name.endswith("-attempt")]


def broken_connection(node: Node, phase: str) -> None:
    """The SSH session in which this phase runs on the node breaks, as by a network that fails."""
    node.run(f"PHASE={phase}{_SESSION}")


@contextmanager
def stall(node: Node) -> Iterator[None]:
    """The machine stands still, and is not even silent as a dead one is: connections to it stay open."""
    node.pause()
    try:
        yield
    finally:
        node.unpause()


@contextmanager
def full_disk(node: Node, folder: str) -> Iterator[None]:
    """Not a byte more can be written below this folder, which is empty at first and of a disk of its own."""
    node.run(
        f"mkdir -p {folder} && mount -t tmpfs -o size=64k tmpfs {folder} && "
        f"{{ cat /dev/zero >{folder}/filler 2>/dev/null || true; }}"
    )
    try:
        yield
    finally:
        node.run(f"umount -l {folder}")
