"""Identities that were given up, in words: what changes for whom."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster import fence
from stacks.cluster.plan import Plan


def words(then: Plan, plan: Plan) -> Iterator[str]:
    """What changes for whom, as the plan tells it."""
    was_out, out = {one.name for one in fence.shut_out(then)}, fence.shut_out(plan)
    was_new = {one.name for one, _ in fence.replaced(then)}
    known = {one.name for one, _ in fence.known_anew(plan)}
    for one in out:
        if one.name not in was_out:
            yield f"{one.name} is refused whatever it writes, {fence.until(one)}"
    for one, node in fence.replaced(plan):
        if one.name not in was_new and one.name in known:
            yield (
                f"{one.name} writes as incarnation {node.generation} alone: a certificate of the "
                f"one before is refused, {fence.until(one)}"
            )
        elif one.name not in was_new:
            yield (
                f"{one.name} may write again, as incarnation {node.generation}; so may whoever has "
                f"a certificate of the one before, {fence.until(one)}"
            )
    over = (was_out | was_new) - {
        one.name for one in (*out, *(one for one, _ in fence.replaced(plan)))
    }
    if over:
        yield f"no fence any more for {', '.join(sorted(over))}: the CA that knew them is gone"
