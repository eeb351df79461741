"""A phase that stands still, or dies, at the very point of its script: decided on the machine, between two of its commands.

Who looks from outside whether a phase is there yet comes too late where the phase is quick or the computer is busy. Bash
itself asks here before each command, by a trap that BASH_ENV brings into the script.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.e2e.harness.node import Node
from tests.e2e.harness.update import Update
from tests.e2e.harness.waiting import wait_for

_FOLDER = "/run/kube-ha-test"
HOOK = f"{_FOLDER}/hook"  # for BASH_ENV
_REACHED = f"{_FOLDER}/reached"

# Once in all: what follows the point, and later runs, go their way. Commands of the trap read nothing that is meant for the phase.
_TEXT = r"""
if [[ $(tr '\0' ' ' </proc/$$/cmdline) =~ ^bash\ [^\ ]*scripts/run\.sh\ {phase}\  ]]; then
  at_point() {{
    if [[ -e {reached} || ! -e {hook} ]]; then return 0; fi
    if {point}; then
      echo "$BASH_COMMAND" >{reached}
      {action}
    fi
  }} </dev/null
  set -o functrace
  trap at_point DEBUG
  unset BASH_ENV # what the phase starts is none
fi
"""
_DIE = "pkill -9 -f '[k]ube-ha/scripts/run[.]sh'"
_STAND_STILL = f"while [[ -e {HOOK} ]]; do sleep 0.05; done"

# sshd gives it to every session of root; where there is no such file bash continues without a word.
_BY_SSHD = f"""
printf 'SetEnv BASH_ENV={HOOK}\\n' >/etc/ssh/sshd_config.d/000-points.conf
systemctl reload ssh
"""


@dataclass(frozen=True, slots=True)
class Point:
    """Where a phase stops. `condition` is a bash command; $BASH_COMMAND in it is the command that comes next."""

    node: Node
    phase: str
    condition: str

    def set_to_die(self) -> None:
        """The next run of the phase dies there, with all its children, as by a power cut; HOOK has to reach it."""
        self._set(_DIE)

    def set_to_hold(self) -> None:
        """The next run of the phase that comes by SSH stands still there until `release`."""
        self._set(_STAND_STILL)
        self.node.run(_BY_SSHD)

    def reached(self) -> str:
        """The command before which the phase stopped; empty while it has not come there."""
        return self.node.asked(f"cat {_REACHED} 2>/dev/null").strip()

    def wait(self, update: Update, *, limit_s: float = 300) -> None:
        """Until a phase of this update stands there."""

        def missing() -> str:
            if self.reached():
                return ""
            assert update.alive, f"the update ended before {self.phase} came there\n{update.tail()}"
            return f"not there yet: {update.tail(5)}"

        wait_for(f"{self.phase} of {self.node.name} at {self.condition}", missing, limit_s=limit_s)

    def release(self) -> None:
        """Whoever stands there continues."""
        self.node.run(f"rm -f {HOOK} {_REACHED}")

    def _set(self, action: str) -> None:
        self.node.run(f"rm -f {_REACHED}")
        values = {"phase": self.phase, "point": self.condition, "action": action}
        self.node.put(HOOK, _TEXT.format(**values, hook=HOOK, reached=_REACHED))


@contextmanager
def held(node: Node, phase: str, condition: str) -> Iterator[Point]:
    """While this lasts, the next run of the phase on the node gets no further than there."""
    point = Point(node, phase, condition)
    point.set_to_hold()
    try:
        yield point
    finally:
        point.release()
