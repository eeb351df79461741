"""The virtual IP: keepalived on the masters, one after another."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pulumi import Resource, ResourceOptions
from pulumi_command import remote

from components.remote import Identity, Machine, after, attempt, converge
from stacks import front_door_values, phases
from stacks.plan import Plan


def hold(
    cluster: str,
    plan: Plan,
    machines: Mapping[str, Machine],
    *,
    settled: Collection[str],
    identity: Identity,
    parent: Resource,
    out: Resource,
) -> list[remote.Command]:
    """Resource `<cluster>-<master>-vip` of each master that can hold it; none without a VIP.

    `settled` nodes exist already: they hear of new ones first, for one that gets no adverts takes
    the address. `out`: who leaves is no node any more, and gives it up by the cluster's word.
    """
    holders = sorted(plan.holders, key=lambda node: node.name not in settled)
    made: list[remote.Command] = []
    for node in holders:
        name, values = f"{cluster}-{node.name}-vip", front_door_values.of_holder(plan, node)
        wanted = phases.digest(
            phases.script_sum("vip"), *(f"{key}={values[key]}" for key in sorted(values))
        )
        stamp = attempt(f"{name}-attempt", wanted=wanted, opts=ResourceOptions(parent=parent))
        made.append(
            converge(
                name,
                machines[node.name],
                "vip",
                values,
                identity=identity,
                stamp=stamp,
                opts=after(out, *made[-1:], parent=parent),
            )
        )
    return made
