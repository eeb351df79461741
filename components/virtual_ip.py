"""The virtual IP: keepalived on the machines that can hold it, one after another."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pulumi import Resource, ResourceOptions
from pulumi_command import remote

from components.remote import Identity, Machine, after, attempt, converge
from stacks import front_door_values, phases
from stacks.files.vip_holders import vip_holders
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
    ready: Sequence[Resource],
) -> list[remote.Command]:
    """Resource `<cluster>-<node>-vip` of each machine that can hold it; none without a VIP.

    Before them `<cluster>-vip-holders` tells the cluster which load balancers may, so that others
    give it up; where there are any, masters have stopped standing by even before that.

    `settled` nodes exist already: they hear of new ones first, for one that gets no adverts takes
    the address. `out`: who leaves is no node any more, and gives it up by the cluster's word.
    `ready` is what must be there before anybody gives it up, so that nobody has it for a short time
    only.
    """
    master = machines[plan.masters[0].name]

    def make(
        name: str, machine: Machine, phase: str, values: Mapping[str, str], *waits: Resource
    ) -> remote.Command:
        wanted = phases.digest(
            phases.script_sum(phase), *(f"{key}={values[key]}" for key in sorted(values))
        )
        stamp = attempt(f"{name}-attempt", wanted=wanted, opts=ResourceOptions(parent=parent))
        opts = after(out, *waits, parent=parent)
        return converge(name, machine, phase, values, identity=identity, stamp=stamp, opts=opts)

    away = [
        make(
            f"{cluster}-{node.name}-vip",
            machines[node.name],
            "vip-away",
            front_door_values.of_others(plan),
            *ready,
        )
        for node in (plan.masters if plan.load_balancers else ())
    ]
    made: list[remote.Command] = []
    if plan.holders:
        values = {
            "NAME": "vip-holders",
            "MANIFEST": vip_holders(plan).rstrip("\n"),
            "GENERATION": str(plan.spec.converge.generation),
        }
        # After masters have stopped: where a way back to them broke off, load balancers that they
        # hear nothing of begin by that word alone.
        made.append(make(f"{cluster}-vip-holders", master, "addon", values, *ready, *away))
    for node in sorted(plan.holders, key=lambda node: node.name not in settled):
        values = front_door_values.of_holder(plan, node)
        machine = machines[node.name]
        made.append(make(f"{cluster}-{node.name}-vip", machine, "vip", values, *made[-1:]))
    return [*made, *away]
