"""etcd membership step by step: who votes and who is up, from one set of members to another.

The order is the one of every `up`: members that arrive join one at a time before anything leaves,
then those that leave go one at a time, dead ones first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of one member, and the cluster after it."""

    member: str
    action: Literal["joins", "leaves"]
    voters: tuple[str, ...]
    up: int  # how many of the voters answer

    @property
    def has_quorum(self) -> bool:
        return self.up >= quorum(len(self.voters))


def quorum(voters: int) -> int:
    """How many of so many voters must agree."""
    return voters // 2 + 1


def tolerated(voters: int) -> int:
    """How many of so many voters may be lost while writes go on."""
    return voters - quorum(voters) if voters else 0


def steps(before: Sequence[str], after: Sequence[str], *, lost: Collection[str] = ()) -> list[Step]:
    """Every step from the voters `before` to those `after`; `lost` ones answer nobody.

    A member that joins is a learner first, which changes no quorum, and becomes a voter when it has
    caught up: it counts as up.
    """
    voters = list(before)
    out = []
    for name in after:
        if name not in before:
            voters.append(name)
            out.append(_step(name, "joins", voters, lost))
    leaving = [name for name in before if name not in after]
    for name in sorted(leaving, key=lambda name: name not in lost):
        voters.remove(name)
        out.append(_step(name, "leaves", voters, lost))
    return out


def _step(
    member: str, action: Literal["joins", "leaves"], voters: Sequence[str], lost: Collection[str]
) -> Step:
    up = sum(name not in lost for name in voters)
    return Step(member=member, action=action, voters=tuple(voters), up=up)
