"""One part of an update as its words need it: what runs in it, and how many there are of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stacks.cluster.plan import Plan
from stacks.edits import membership
from stacks.edits.memory import Memory
from stacks.explain.changes import Changes
from stacks.explain.restarts import Restarts, Stop
from stacks.order.difference import Difference
from stacks.order.step import Said
from stacks.phases.effects import Restart


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """A part, and the edit that it is of."""

    before: Memory | None
    plan: Plan
    found: Changes
    running: Sequence[Difference]

    @property
    def phases(self) -> set[str]:
        """That run in it."""
        return {one.step.phase for one in self.running if one.mark != "-"} - {""}

    @property
    def machines(self) -> list[str]:
        """On which something runs in it."""
        names = (
            one.step.node.name for one in self.running if one.step.node and one.step.kind == "phase"
        )
        return list(dict.fromkeys(names))

    def values(self, phase: str) -> dict[str, Said]:
        """What that phase is told in it, on its last machine."""
        told = [one.step.values for one in self.running if one.step.phase == phase]
        return {**told[-1]} if told else {}

    def stops(self, program: Restart) -> list[Stop]:
        """Those of it that stop in this part."""
        if self.before is None:
            return []
        known = Restarts(self.before, self.plan, self.found).stops
        return [one for one in known if one.program == program and one.node in self.machines]

    @property
    def members_leave(self) -> bool:
        """Whether a member that answers is taken out at the end."""
        first = membership.going_first(self.before, self.plan)
        return bool({*membership.leaving_members(self.before, self.plan)} - {*first})

    @property
    def nodes_leave(self) -> bool:
        """Whether somebody is drained and taken out at the end."""
        first = membership.going_first(self.before, self.plan)
        return any(
            node.name not in first and {"master", "worker"} & {*node.roles}
            for node in self.found.of("leaving")
            if any(action.phase == "nodes" for action in node.actions)
        )

    @property
    def members_go_first(self) -> bool:
        """Whether a member is among those that are dead, or are recreated."""
        was = self.before.machines if self.before else {}
        first = membership.going_first(self.before, self.plan)
        return any("etcd" in was[name].roles for name in first if name in was)
