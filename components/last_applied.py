"""What the stack remembers of its last success.

Read before anything is registered, stored only by the next success.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
from pulumi.runtime.sync_await import _sync_await

OUTPUT = "applied"
SSH = "ssh"  # how machines are reached, by node


@dataclass(frozen=True, slots=True)
class Last:
    """Of a stack's own previous outputs: its memory, None before the first success, and doors."""

    memory: dict[str, object] | None
    # (host, port) of SSH servers by node, where no bastion stands before them.
    doors: Mapping[str, tuple[str, int]] = field(default_factory=dict)


def read(output: str = OUTPUT) -> Last:
    """What this stack gave out the last time; its memory is the output of that name."""
    name = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
    reference = pulumi.StackReference(name)
    # Beside a memory of another name the outputs are those of somebody else's program.
    text, ways = _value(reference, output), _value(reference, SSH) if output == OUTPUT else None
    memory: dict[str, object] | None = json.loads(text) if isinstance(text, str) else None
    known = ways if isinstance(ways, Mapping) else {}
    return Last(
        memory,
        {
            str(node): (str(way["host"]), int(way.get("port") or 22))
            for node, way in known.items()
            if not way.get("bastion")
        },
    )


def _value(reference: pulumi.StackReference, output: str) -> object:
    details = _sync_await(reference.get_output_details(output))
    return details.value if details.value is not None else details.secret_value


def remember(
    memory: pulumi.Input[Mapping[str, object]],
    proved: pulumi.Output[bool],
    before: Mapping[str, object] | None,
) -> pulumi.Output[str | None]:
    """The memory to export: this one when the gate of this very plan has passed, else `before`.

    A plain value would be stored by a failed update too. It is secret as the gate's output is,
    though it holds no secrets: the engine would print the whole of it after every update.
    """
    text = pulumi.Output.from_input(memory).apply(lambda known: json.dumps(known, sort_keys=True))
    if pulumi.runtime.is_dry_run():
        return pulumi.Output.secret(pulumi.Output.all(proved, text).apply(lambda both: both[1]))

    async def passed() -> str | None:
        # What an update leaves out (--target, --exclude, refresh --run-program) gives back what
        # it was: its output is known, and says nothing about this plan.
        if await proved.is_known() and await proved.future() and await text.is_known():
            return await text.future()
        # With --continue-on-error the program comes to its end after a failure too. What is not
        # known is stored all the same, and the stack would take its cluster for one to be born.
        return json.dumps(before, sort_keys=True) if before else None

    return pulumi.Output.secret(pulumi.Output.from_input(passed()))
