"""A machine made ready for its roles.

Scripts, preflight, then packages, kernel, runtime, kubelet and the local API door.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulumi import Input, Output, Resource
from pulumi_command import remote

from components.ssh.commands import Identity, Machine, after, converge, copy_scripts
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Node, Plan
from stacks.phases import desired
from stacks.phases import node as node_phase

# What a machine must fulfil before it joins is not asked again.
_PREFLIGHT_ONCE = ("stdin",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripts:
    """The node scripts on a machine, for what the plan wants of it."""

    values: Mapping[str, Input[str]]  # of the node phase
    applied: Output[str]  # hash that the node announces once it is what the plan wants
    copied: remote.CopyToRemote


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Resources of one machine that its roles wait for."""

    ready: remote.Command
    applied: Output[str]


def announced(
    plan: Plan, node: Node, files: Mapping[str, File], ca_cert: Output[str]
) -> Output[str]:
    """What a node announces once it is what the plan wants: a hash."""
    return Output.all(**_values(plan, node, files, ca_cert)).apply(desired.applied)


def bring_scripts(
    name: str,
    plan: Plan,
    machine: Machine,
    files: Mapping[str, File],
    *,
    ca_cert: Output[str],
    parent: Resource,
    waits_for: Resource | None,
) -> Scripts:
    """Resource `<name>-scripts`; `waits_for` holds back changes of a node that exists."""
    values = _values(plan, machine.node, files, ca_cert)
    applied = Output.all(**values).apply(desired.applied)
    copied = copy_scripts(
        f"{name}-scripts",
        machine,
        wanted=applied,
        opts=after(machine.exists, waits_for, parent=parent),
    )
    return Scripts(values=values, applied=applied, copied=copied)


def prepare(
    name: str,
    machine: Machine,
    scripts: Scripts,
    preflight: Mapping[str, str],
    *,
    identity: Identity,
    anew: bool,
    parent: Resource,
    waits_for: Resource | None,
) -> Prepared:
    """Resources `<name>-preflight` and `<name>-node`.

    `anew`: the machine under this name is another one than at the last success, or was wiped.
    """
    passed = look(
        name, machine, scripts.copied, preflight, identity=identity, anew=anew, parent=parent
    )
    ready = converge(
        f"{name}-node",
        machine,
        "node",
        {**scripts.values, **of_cloud(machine), "APPLIED": scripts.applied},
        identity=identity,
        stamp=scripts.copied.id,
        opts=after(passed, waits_for, parent=parent),
    )
    return Prepared(ready=ready, applied=scripts.applied)


def of_cloud(machine: Machine) -> dict[str, Input[str]]:
    """What the cloud knows the machine by: no part of `applied`, which a pool's nodes share."""
    return {} if machine.provider_id is None else {"PROVIDER_ID": machine.provider_id}


def look(
    name: str,
    machine: Machine,
    scripts: Resource,
    preflight: Mapping[str, str],
    *,
    identity: Identity,
    anew: bool,
    parent: Resource,
) -> remote.Command:
    """Resource `<name>-preflight`: whether the machine is fit; deleting it makes it leave."""
    return converge(
        f"{name}-preflight",
        machine,
        "preflight",
        preflight,
        identity=identity,
        stamp=f"incarnation-{machine.node.generation}" if machine.node.generation > 1 else "",
        leave=True,
        opts=after(scripts, parent=parent, ignore=() if anew else _PREFLIGHT_ONCE),
    )


def _values(
    plan: Plan, node: Node, files: Mapping[str, File], ca_cert: Output[str]
) -> dict[str, Input[str]]:
    values: dict[str, Input[str]] = {**node_phase.whole(plan, node, files)}
    if "CA_CRT" in values:
        values["CA_CRT"] = ca_cert.apply(lambda pem: pem.rstrip("\n"))
    return values
