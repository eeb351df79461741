"""What the stack remembers of its last success.

Read before anything of a cluster is registered, stored only by the next success.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from google.protobuf import struct_pb2
from pulumi.runtime import rpc, settings
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.sync_await import _sync_await

from components.ssh.hop import Hop

OUTPUT = "applied"
SSH = "ssh"  # how machines are reached, by node


@dataclass(frozen=True, slots=True)
class Last:
    """Of a stack's own previous outputs: its memory, None before the first success, and doors."""

    memory: dict[str, object] | None
    # (host, port) of SSH servers by node, where no bastion stands before them.
    doors: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    # The same of those behind the stack's bastion, and that one.
    behind: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    jump: Hop | None = None


def read(output: str = OUTPUT) -> Last:
    """What this stack gave out the last time; its memory is the output of that name."""
    reference = pulumi.StackReference(_own_name())
    # Beside a memory of another name the outputs are those of somebody else's program.
    text, ways = _value(reference, output), _value(reference, SSH) if output == OUTPUT else None
    memory: dict[str, object] | None = json.loads(text) if isinstance(text, str) else None
    known = ways if isinstance(ways, Mapping) else {}
    return Last(memory, _doors(known), *_behind(known))


def _doors(ways: Mapping[str, Any], *, behind: bool = False) -> dict[str, tuple[str, int]]:
    return {
        str(node): (str(way["host"]), int(way.get("port") or 22))
        for node, way in ways.items()
        if bool(way.get("bastion")) == behind
    }


def _behind(ways: Mapping[str, Any]) -> tuple[Mapping[str, tuple[str, int]], Hop | None]:
    """Machines that are reached by one bastion with a key; with an agent nobody can be asked."""
    jumps = [jump for way in ways.values() if (jump := way.get("bastion"))]
    if not jumps or not jumps[0].get("privateKey") or not jumps[0].get("hostKey"):
        return {}, None
    said = jumps[0]
    jump = Hop(
        address=str(said["host"]),
        port=int(said.get("port") or 22),
        user=str(said["user"]),
        key=str(said["privateKey"]),
        host_key=str(said["hostKey"]),
    )
    return _doors(ways, behind=True), jump


def of_component(component: pulumi.ComponentResource, name: str) -> Last:
    """What a component of a provider gave out the last time, as its own output `applied`.

    A provider's process gives no outputs to the stack, so the state itself is asked. The engine has
    none to show before a stack's first update, and ends when it is asked then: a stamp that keeps
    its first value tells whether the component was in a state before. Raises RunError where it was
    there under another name.
    """
    new = uuid.uuid4().hex[:12]
    own = pulumi.ResourceOptions(parent=component, ignore_changes=["input"])
    stamp = pulumi.Stash(f"{name}-first-seen", input=new, opts=own)
    # Unknown where an update of a few targets leaves it out, and no state has it.
    if _sync_await(stamp.output.future()) in (new, None):
        return Last(None)
    resources = _state()
    urn = str(_sync_await(component.urn.future()))
    if urn not in resources:
        raise pulumi.RunError(
            f"{name}: the state has this component under another name or parent, so what it last "
            "applied is not known. Give it back the name and the parent that it had."
        )
    outputs = rpc.deserialize_properties(resources[urn].struct_value.fields["outputs"].struct_value)
    text = rpc.unwrap_rpc_secret(outputs.get(OUTPUT))
    return Last(json.loads(text) if isinstance(text, str) else None)


def _state() -> Mapping[str, struct_pb2.Value]:
    """Type and outputs, secrets too, of every resource that the state of this stack has, by URN.

    By the monitor itself: the SDK would make objects of the whole state, for the sake of one text.
    """
    request = resource_pb2.ResourceInvokeRequest(tok="pulumi:pulumi:readStackResourceOutputs")
    request.args["stackName"] = _own_name()
    monitor = settings.get_monitor()
    if monitor is None:
        raise pulumi.RunError("what was last applied can be read only where the engine runs this")
    given = getattr(monitor.Invoke(request), "return")
    found: Mapping[str, struct_pb2.Value] = given.fields["outputs"].struct_value.fields
    return found


def _own_name() -> str:
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


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
