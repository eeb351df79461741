"""The API's DNS record in an edit: what happens to it, and who loses the API by that."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster import api_record, clouds
from stacks.cluster.plan import Plan
from stacks.config.problems import Problem
from stacks.edits.memory import Memory


def changed(before: Memory | None, plan: Plan) -> Iterator[str]:
    """In words, what happens to the record before anybody leaves."""
    then, said = before.plan if before else None, api_record.zone(plan.spec)
    if said is None or (before is not None and then is None):
        return
    now = f"{api_record.name(plan.spec)} -> {api_record.words(plan)}"
    old = api_record.zone(then.spec) if then else None
    if then is None or old is None:
        yield f"record {now}"
    elif (was := f"{api_record.name(then.spec)} -> {api_record.words(then)}") != now:
        yield f"record {now}, no longer {was}"
    elif old != said:
        yield f"record {now}, in zone {said.id or said.domain}, before {old.id or old.domain}"


def deleted(before: Memory | None, plan: Plan) -> Iterator[str]:
    """In words, a record that is taken away at the end."""
    then = before.plan if before else None
    old, new = api_record.zone(then.spec) if then else None, api_record.zone(plan.spec)
    if then is None or old is None:
        return
    same_zone = new is not None and (old.id, old.domain) == (new.id, new.domain)
    if not same_zone or api_record.name(then.spec) != api_record.name(plan.spec):
        yield f"record {api_record.name(then.spec)} in zone {old.id or old.domain} is deleted"


def warnings_of(before: Memory | None, plan: Plan) -> list[Problem]:
    """A name that an edit takes from those who use it, or from those outside of the network."""
    then, out = before.plan if before else None, []
    if (
        then
        and api_record.zone(then.spec)
        and api_record.zone(plan.spec)
        and _outer(then)
        and not _outer(plan)
    ):
        text = f"{api_record.name(plan.spec)} will point to {api_record.words(plan)}"
        text = f"{text}: clients outside of the network lose the API"
        out.append(Problem(f"{clouds.path(plan.spec)}.apiLoadBalancer", text))
    path = "frontDoors.dns" if api_record.zone(plan.spec) is None else "frontDoors.zone"
    text = "at the end, and who goes by it loses the API until there is another one of that name"
    return [*out, *(Problem(path, f"{gone} {text}") for gone in deleted(before, plan))]


def _outer(plan: Plan) -> bool:
    """Whether it points to public addresses."""
    return plan.balancer == "external" or api_record.lead(plan) == "public"
