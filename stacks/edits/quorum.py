"""etcd membership step by step: who votes and who is up, from one set of members to another.

The order is the one of every `up`: dead members, and those that are made anew, go first; members
that arrive join one at a time; those that leave go last, one at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of one member, decided by the voters before it, and the cluster after it."""

    member: str
    action: Literal["joins", "leaves"]
    deciding: tuple[str, ...]  # voters before
    up_before: int  # how many of them answer
    voters: tuple[str, ...]  # after
    up: int  # how many of these answer

    @property
    def has_quorum(self) -> bool:
        """Enough voters answer to decide the step, and to go on after it."""
        return self.up_before >= quorum(len(self.deciding)) and self.up >= quorum(len(self.voters))


def quorum(voters: int) -> int:
    """How many of so many voters must agree."""
    return voters // 2 + 1


def steps(
    before: Sequence[str],
    after: Sequence[str],
    *,
    lost: Collection[str] = (),
    rebuilt: Collection[str] = (),
) -> list[Step]:
    """Every step from the voters `before` to those `after`.

    `lost` ones answer nobody; of `rebuilt` ones that is not known, so it is not counted on. A
    member that joins is a learner first, which changes no quorum, and becomes a voter when it has
    caught up: it counts as up.
    """
    down = {*lost, *rebuilt}
    voters = list(before)
    out: list[Step] = []

    def step(member: str, action: Literal["joins", "leaves"]) -> None:
        deciding = tuple(voters)
        up_before = sum(name not in down for name in voters)
        if action == "joins":
            voters.append(member)
            down.discard(member)
        else:
            voters.remove(member)
        up = sum(name not in down for name in voters)
        out.append(
            Step(
                member=member,
                action=action,
                deciding=deciding,
                up_before=up_before,
                voters=tuple(voters),
                up=up,
            )
        )

    for name in before:
        if name in down:
            step(name, "leaves")
    for name in after:
        if name not in voters:
            step(name, "joins")
    for name in before:
        if name not in after and name in voters:
            step(name, "leaves")
    return out
