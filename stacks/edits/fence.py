"""Identities that stay given up: what the stack remembers of them, beside what the config says."""

from __future__ import annotations

import dataclasses

from stacks.cluster import fence, rotation
from stacks.cluster.plan import Fenced, Plan
from stacks.config.fields import GivenUp
from stacks.edits.memory import Memory


def kept(before: Memory | None, plan: Plan) -> Plan:
    """The plan with all that the stack remembers as given up."""
    if before is None or before.plan is None:
        return plan
    then = {one.name: one for one in before.plan.fenced}
    now = {one.name: _as_it_was(one, before) for one in plan.fenced}
    known = then | {name: _merged(then.get(name), one, before.plan) for name, one in now.items()}
    fenced = tuple(known[name] for name in sorted(known) if _matters(known[name], plan))
    return dataclasses.replace(plan, fenced=fenced)


def _as_it_was(now: Fenced, before: Memory) -> Fenced:
    """Of the incarnation that was there, also where the line that gives it up names no generation.

    Else the next one would be of the same number, and the machine that was given up would be it.
    """
    old = before.machines.get(now.name) or before.away.get(now.name)
    return (
        now
        if old is None
        else dataclasses.replace(now, generation=max(now.generation, old.generation))
    )


def _merged(then: Fenced | None, now: Fenced, before: Plan) -> Fenced:
    if then is None or then.generation < now.generation:
        # What counted before this edit may be there too.
        known = rotation.of(before.spec)
        keys = fence.in_turn(
            {key: max(held, *rotation.generations(known[key])) for key, held in now.keys}
        )
        return dataclasses.replace(now, keys=keys)
    state: GivenUp = "compromised" if "compromised" in (then.state, now.state) else "lost"
    keys = fence.in_turn({**dict(now.keys), **dict(then.keys)})
    return dataclasses.replace(then, state=state, keys=keys)


def _matters(one: Fenced, plan: Plan) -> bool:
    """Until a later incarnation is there and the CA of this one is not trusted any more."""
    back = any(node.name == one.name and node.generation > one.generation for node in plan.nodes)
    return not back or bool(fence.counting(one, plan))
