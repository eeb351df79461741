"""The API as clients outside find it: looked for from the computer that runs the engine."""

from __future__ import annotations

import json

from pulumi import Output, ResourceOptions, Stash
from pulumi_command import local

from stacks.plan import Plan

_LIMIT_S = 60


def ask(plan: Plan, *, ca: Output[str], stamp: Stash, opts: ResourceOptions) -> list[local.Command]:
    """Resource `<cluster>-door`, where the config wants it; it changes nothing anywhere.

    `stamp` is that of the gate: every change of the plan is asked about, and so is a retry.
    """
    doors = plan.spec.front_doors
    if doors.verify != "here" and doors.dns == "none":
        return []
    said = {
        "door": plan.endpoint,
        "limit_s": _LIMIT_S,
        "ask": doors.verify == "here",
        "addresses": [] if doors.dns == "none" else list(plan.door_addresses),
    }
    return [
        local.Command(
            f"{plan.spec.cluster.name}-door",
            create=Output.concat(".venv/bin/python -m operations.door # ", stamp.output.apply(str)),
            stdin=ca.apply(lambda pem: json.dumps({**said, "ca": pem})),
            logging=local.Logging.NONE,
            add_previous_output_in_env=False,
            opts=opts,
        )
    ]
