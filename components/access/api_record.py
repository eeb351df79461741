"""The name of the API, by a record of the stack's: it moves to what serves, before others leave."""

from __future__ import annotations

import json

from pulumi import Output, Resource, ResourceOptions, Stash
from pulumi_command import local

from components.machines.api_door import ApiDoor
from components.ssh.commands import Identity, Machine, after, attempt, converge
from stacks.cluster import api_record
from stacks.cluster.plan import Plan
from stacks.phases import balancer


def lead(
    plan: Plan,
    door: ApiDoor,
    master: Machine,
    *,
    identity: Identity,
    ca: Output[str],
    last: Resource,
    parent: Resource,
) -> Resource:
    """Resources `<cluster>-api-name` and, around it, what proves and waits; the last is returned.

    Who leaves the cluster leaves after it. `last`: every master serves.
    """
    name, own = plan.spec.cluster.name, ResourceOptions(parent=parent)
    # A record that was changed by a try that failed is waited for, too, when it is changed back.
    stamp = attempt(f"{name}-api-name-attempt", wanted=api_record.mark(plan), opts=own)
    serves = last
    if plan.balancer != "none":
        waits = after(last, *door.parts, parent=parent)
        serves = (
            _asked_from_here(plan, door, ca, stamp, waits)
            if plan.balancer == "external"
            else _asked_from_master(plan, master, identity, stamp, waits)
        )
    record = door.record([serves, stamp])
    return local.Command(
        f"{name}-api-name-known",
        create=Output.concat(f"sleep {api_record.TTL_S} # ", stamp.output.apply(str)),
        logging=local.Logging.NONE,
        add_previous_output_in_env=False,
        opts=after(record, parent=parent),
    )


def _asked_from_here(
    plan: Plan, door: ApiDoor, ca: Output[str], stamp: Stash, opts: ResourceOptions
) -> Resource:
    """By every address of it, under the name that its clients will use."""
    said = balancer.from_here(plan)
    return local.Command(
        f"{plan.spec.cluster.name}-balancer-serves",
        create=Output.concat(".venv/bin/python -m operations.door # ", stamp.output.apply(str)),
        stdin=Output.all(ca=ca, at=Output.all(*door.addresses)).apply(
            lambda found: json.dumps({**said, **found})
        ),
        logging=local.Logging.NONE,
        add_previous_output_in_env=False,
        opts=opts,
    )


def _asked_from_master(
    plan: Plan, master: Machine, identity: Identity, stamp: Stash, opts: ResourceOptions
) -> Resource:
    return converge(
        f"{plan.spec.cluster.name}-balancer-serves",
        master,
        "balancer",
        balancer.of_balancer(plan),
        identity=identity,
        stamp=stamp,
        opts=opts,
    )
