"""What the stack remembers of its last success.

Read before anything is registered, stored only by the next success.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pulumi
from pulumi.runtime.sync_await import _sync_await
from pulumi_command import remote

OUTPUT = "applied"


def read() -> dict[str, object] | None:
    """The memory of this stack, None before its first success.

    Takes the stack's own previous outputs.
    """
    name = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
    details = _sync_await(pulumi.StackReference(name).get_output_details(OUTPUT))
    value = details.value if details.value is not None else details.secret_value
    if not isinstance(value, str):
        return None
    memory: dict[str, object] = json.loads(value)
    return memory


def remember(
    memory: Mapping[str, object],
    gate: remote.Command,
    before: Mapping[str, object] | None,
) -> pulumi.Output[str | None]:
    """The memory to export: this one when the gate has passed, else the one of `before`.

    A plain value would be stored by a failed update too. It is secret as the gate's output is,
    though it holds no secrets: the engine would print the whole of it after every update.
    """
    text = json.dumps(memory, sort_keys=True)
    if pulumi.runtime.is_dry_run():
        return gate.stdout.apply(lambda _: text)

    async def passed() -> str | None:
        if await gate.stdout.is_known():
            return text
        # With --continue-on-error the program comes to its end after a failure too. What is not
        # known is stored all the same, and the stack would take its cluster for one to be born.
        return json.dumps(before, sort_keys=True) if before else None

    return pulumi.Output.secret(pulumi.Output.from_input(passed()))
