"""What etcd's membership looked like over time, from the lines of tests/e2e/harness/clients/members.sh."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

# Each change waits until those who stay have a quorum, so two are a quarter of a second apart at least. Lists that are
# further apart may well have several changes between them.
_NEXT_MS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    id: str
    name: str  # "-": not started yet
    votes: bool
    answers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One moment. Without members: nobody with a quorum has answered."""

    start_ms: int  # of the epoch: the list of members was asked for
    end_ms: int  # and was there
    members: tuple[Member, ...]

    @property
    def voters(self) -> list[Member]:
        return [member for member in self.members if member.votes]

    @property
    def has_quorum(self) -> bool:
        """Enough of those that vote answer, one by one."""
        up = sum(member.answers for member in self.voters)
        return up >= len(self.voters) // 2 + 1

    def __str__(self) -> str:
        words = (
            f"{one.name}{'' if one.votes else ' (learner)'}{'' if one.answers else ' (silent)'}"
            for one in self.members
        )
        return f"at {self.start_ms}: {', '.join(words) or 'no answer'}"


def looks(lines: Iterable[str]) -> list[Look]:
    """Lines in their order; one that was cut off is left out."""
    out = []
    for line in lines:
        words = line.split()
        members = [word.split(",") for word in words[2:]]
        if len(words) < 2 or any(len(member) != 4 for member in members):
            continue
        out.append(
            Look(
                start_ms=int(words[0]),
                end_ms=int(words[1]),
                members=tuple(
                    Member(id=id_, name=name, votes=role == "voter", answers=said == "answers")
                    for id_, name, role, said in members
                ),
            )
        )
    return out


def problems(found: Sequence[Look]) -> list[str]:
    """Where membership was not as safe as it has to be at all times."""
    good = [look for look in found if look.members]
    out = [
        f"two learners {look}"
        for look in good
        if sum(not member.votes for member in look.members) > 1
    ]
    out += [
        f"several votes changed between {earlier} and {later}"
        for earlier, later in itertools.pairwise(good)
        if len(_changed(earlier, later)) > 1 and later.end_ms - earlier.start_ms <= _NEXT_MS
    ]
    return [*out, *_without_quorum(good)]


def _changed(earlier: Look, later: Look) -> set[str]:
    """Ids that got a vote, or have none any more. Learners count for no quorum: one may give way to another."""
    return {member.id for member in earlier.voters} ^ {member.id for member in later.voters}


def _without_quorum(found: Sequence[Look]) -> Iterator[str]:
    """Twice in a row: a busy computer may make one look too late for an answer."""
    for earlier, later in itertools.pairwise(found):
        if not earlier.has_quorum and not later.has_quorum:
            yield f"fewer voters up than a quorum: {earlier}, then {later}"
