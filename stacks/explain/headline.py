"""What a reviewer reads first: what changes, on how many nodes, who notices, the way back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stacks.cluster.plan import Plan
from stacks.edits.memory import Memory
from stacks.explain.changes import Changes
from stacks.explain.disruption import Disruption, disruption
from stacks.explain.edits import edits
from stacks.explain.rollback import roll_back


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Nodes, by what happens to them."""

    add: int
    change: int
    replace: int
    remove: int
    unchanged: int | None  # None: not known

    @property
    def words(self) -> str:
        """`1 to add, 4 to change, 0 to replace, 1 to remove, 3 unchanged`."""
        known = "the rest not known" if self.unchanged is None else f"{self.unchanged} unchanged"
        return (
            f"{self.add} to add, {self.change} to change, {self.replace} to replace, "
            f"{self.remove} to remove, {known}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    edits: tuple[str, ...]
    nodes: Counts
    disruption: tuple[Disruption, ...]
    no_way_back: tuple[str, ...]  # what cannot be taken back, and from when on
    way_back: str


def headline(before: Memory | None, plan: Plan, found: Changes) -> Headline:
    """That of one edit."""
    limits = roll_back(before, plan, found)
    back = "at any time: edit back, then run up again"
    if before is None:
        protected = "" if plan.local else "pulumi state unprotect --all, then "
        back = f"at any time: {protected}pulumi destroy"
    elif before.plan is None:
        back = "not known"
    return Headline(
        edits=edits(before, plan, found),
        nodes=Counts(
            add=len(found.of("new")),
            change=len(found.of("changed")),
            replace=len(found.of("rebuilt")),
            remove=len(found.of("leaving")),
            unchanged=found.unchanged if found.comparable else None,
        ),
        disruption=disruption(before, plan, found),
        no_way_back=limits,
        way_back="; ".join(limits) or back,
    )


def audiences(found: tuple[Disruption, ...]) -> Iterator[tuple[str, str]]:
    """(audience, what it notices) a line; those that notice nothing share the last one."""
    for one in found:
        if one.notices:
            yield one.audience, "; ".join(one.notices)
    spared = [one for one in found if not one.notices]
    if spared:
        why = "; ".join(dict.fromkeys(one.why_none for one in spared))
        names = ", ".join(one.audience for one in spared) if len(spared) < len(found) else ""
        yield names, f"none ({why})"
