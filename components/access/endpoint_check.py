"""The API as clients outside find it: looked for from the computer that runs the engine."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pulumi import Input, Output, ResourceOptions, Stash
from pulumi_command import local

from components.machines.api_door import ApiDoor
from stacks.cluster.plan import Plan
from stacks.phases import balancer


def ask(
    plan: Plan,
    door: ApiDoor | None,
    *,
    ca: Output[str],
    stamp: Stash,
    opts: ResourceOptions,
) -> list[local.Command]:
    """Resource `<cluster>-door`, where the config wants it; it changes nothing anywhere.

    `stamp` is that of the gate: every change of the plan is asked about, and so is a retry.
    """
    said = balancer.of_door(plan)
    if said is None:
        return []
    known_here = balancer.is_known_here(plan)
    addresses: Sequence[Input[str]] = door.addresses if door else plan.door_addresses
    return [
        local.Command(
            f"{plan.spec.cluster.name}-door",
            create=Output.concat(".venv/bin/python -m operations.door # ", stamp.output.apply(str)),
            stdin=Output.all(ca=ca, addresses=Output.all(*(addresses if known_here else ()))).apply(
                lambda found: json.dumps({**said, **found})
            ),
            logging=local.Logging.NONE,
            add_previous_output_in_env=False,
            opts=opts,
        )
    ]
