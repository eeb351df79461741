"""A machine made ready for its roles.

Scripts, preflight, then packages, kernel, runtime, kubelet and the local API door.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulumi import Input, Output, Resource
from pulumi_command import remote

from components.remote import Identity, Machine, after, converge, copy_scripts
from stacks import desired, phases
from stacks.artifacts import File
from stacks.plan import Node, Plan

# What a machine must fulfil before it joins is not asked again.
_PREFLIGHT_ONCE = ("stdin",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Resources of one machine that its roles wait for."""

    ready: remote.Command
    applied: Output[str]  # hash that the node announces once it is what the plan wants


def prepare(
    name: str,
    plan: Plan,
    machine: Machine,
    files: Mapping[str, File],
    *,
    identity: Identity,
    ca_cert: Output[str],
    parent: Resource,
    waits_for: Resource | None,
) -> Prepared:
    """Resources `<name>-scripts`, `-preflight` and `-node`.

    `waits_for` holds back changes of a node that exists.
    """
    node = machine.node
    values = _values(plan, node, files, ca_cert)
    applied = Output.all(**values).apply(
        lambda known: phases.digest(
            phases.script_sum("node"), *(known[key] for key in sorted(known))
        )
    )
    scripts = copy_scripts(
        f"{name}-scripts",
        machine,
        wanted=applied,
        opts=after(machine.exists, waits_for, parent=parent),
    )
    preflight = converge(
        f"{name}-preflight",
        machine,
        "preflight",
        desired.preflight(plan, node, files),
        identity=identity,
        leave=True,
        opts=after(scripts, parent=parent, ignore=_PREFLIGHT_ONCE),
    )
    ready = converge(
        f"{name}-node",
        machine,
        "node",
        {**values, "APPLIED": applied},
        identity=identity,
        stamp=scripts.id,
        opts=after(preflight, waits_for, parent=parent),
    )
    return Prepared(ready=ready, applied=applied)


def _values(
    plan: Plan, node: Node, files: Mapping[str, File], ca_cert: Output[str]
) -> dict[str, Input[str]]:
    values: dict[str, Input[str]] = {**desired.of_node(plan, node)}
    if node.in_kubernetes:
        values["ARTEFACTS"] = desired.artefacts(files, desired.downloads(node))
        values["CA_CRT"] = ca_cert.apply(lambda pem: pem.rstrip("\n"))
    return values
