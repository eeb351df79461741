"""etcd membership step by step: who votes and who is up, from one set of members to another.

The order is the one of every `up`: dead members, and those that are recreated, go first; members
that arrive join one at a time; those that leave go last, one at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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
    absent: Collection[str] = (),
) -> list[Step]:
    """Every step from the voters `before` to those `after`.

    `lost` and `absent` ones answer nobody; of `rebuilt` ones that is not known, so it is not
    counted on. Absent ones stay members. A member that joins is a learner first, which changes no
    quorum, and becomes a voter when it has caught up: it counts as up.
    """
    going = {*lost, *rebuilt}
    down = {*going, *absent}
    out: list[Step] = []
    deciding = tuple(before)
    for member, action in _moves(before, after, going):
        up_before = sum(name not in down for name in deciding)
        if action == "joins":
            voters = (*deciding, member)
            down.discard(member)
        else:
            voters = tuple(name for name in deciding if name != member)
        up = sum(name not in down for name in voters)
        step = Step(
            member=member,
            action=action,
            deciding=deciding,
            up_before=up_before,
            voters=voters,
            up=up,
        )
        out.append(step)
        deciding = voters
    return out


def _moves(
    before: Sequence[str], after: Sequence[str], going: Collection[str]
) -> Iterator[tuple[str, Literal["joins", "leaves"]]]:
    yield from ((name, "leaves") for name in before if name in going)
    yield from ((name, "joins") for name in after if name not in before or name in going)
    yield from ((name, "leaves") for name in before if name not in after and name not in going)
