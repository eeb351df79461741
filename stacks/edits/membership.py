"""Who may leave, come back or be recreated: rules of an edit that changes who is in a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from stacks.checks.refusals import Refusal
from stacks.cluster import fence as cluster_fence
from stacks.cluster.plan import Node, Plan
from stacks.config.problems import Problem
from stacks.edits import fence as edit_fence
from stacks.edits import memory, quorum
from stacks.edits.memory import Machine, Memory
from stacks.edits.quorum import Step

_ALL = "all.workers"  # no pool can have this name
_FEW = 4  # a pool of fewer machines may lose most of them in one edit


def refusals_of(before: Memory, plan: Plan) -> list[Refusal]:
    """Every reason of membership against the edit from the last success to the plan."""
    return [
        *_members(before, plan),
        *_masters(before, plan),
        *_generations(before, plan),
        *_together(before, plan),
        *_mass_removal(before, plan),
    ]


def _with_role(machines: Mapping[str, Machine], role: str) -> list[str]:
    return [name for name, machine in machines.items() if role in machine.roles]


def _members(before: Memory, plan: Plan) -> list[Refusal]:
    """etcd members join and leave one at a time: each step must leave a quorum."""
    old, new = _with_role(before.machines, "etcd"), [node.name for node in plan.etcd]
    first = going_first(before, plan)
    stay = [name for name in new if name not in first]
    # Members that arrive take over the data before those that leave go.
    out = [] if stay else _none_stays(before, old, stay, what="etcd member", kind="last-etcd")
    lost = [node.name for node in plan.away if node.is_given_up]
    absent = [node.name for node in plan.etcd if node.is_absent]
    for step in quorum.steps(old, new, lost=lost, rebuilt=first, absent=absent):
        if not step.has_quorum and not out:
            path = _pool_path(before, plan, step.member)
            out.append(Refusal("quorum", step.member, path, _no_quorum(step)))
    return out


def _no_quorum(step: Step) -> str:
    needed = quorum.quorum(len(step.deciding))
    text = (
        f"when {step.member} {step.action}, etcd would have no quorum: {step.up_before} of "
        f"{len(step.deciding)} members are up to decide it, {needed} are needed"
    )
    return (
        f"{text}; bring dead members back, recreate fewer per update, or, where they are gone for "
        'good, go on from one that has the data: `make restore FROM=node WITHOUT="dead ones"`'
    )


def _masters(before: Memory, plan: Plan) -> list[Refusal]:
    old, new = _with_role(before.machines, "master"), [node.name for node in plan.masters]
    first = going_first(before, plan)
    there = {node.name for node in plan.masters if not node.is_absent}
    stay = [name for name in new if name not in first and name in there]
    out = _none_stays(before, old, stay, what="master", kind="last-master")
    replaced = [name for name in new if name in first]
    balancers = {node.name for node in plan.load_balancers}
    for names in (replaced, [name for name in rebuilt(before, plan) if name in balancers]):
        if len(names) > 1:
            text = f"{listed(names)} would be recreated at once; raise one generation per update"
            out.append(Refusal("rebuild", names[0], f"nodes.{names[0]}.generation", text))
    return out


def going_first(before: Memory | None, plan: Plan) -> tuple[str, ...]:
    """Nodes that the remaining nodes take out before anything else: newly lost, or recreated."""
    if before is None:
        return ()
    lost = [n.name for n in plan.away if n.is_given_up and not was_lost(before, n.name)]
    return (*lost, *rebuilt(before, plan))


def taken_out_first(before: Memory | None, plan: Plan) -> list[Node]:
    """Of `going_first` those that are more than load balancers: a member of etcd or a Node goes.

    Or were: a machine that is recreated may have been something else.
    """
    known = {node.name: node for node in (*plan.nodes, *plan.away)}
    was = before.machines if before else {}
    return [
        known[name]
        for name in going_first(before, plan)
        if {*known[name].roles, *(was[name].roles if name in was else ())} != {"loadbalancer"}
    ]


def rebuilt(before: Memory | None, plan: Plan) -> tuple[str, ...]:
    """Nodes that are recreated under their name."""
    known = before.machines if before else {}
    return tuple(
        node.name
        for node in plan.nodes
        if (old := known.get(node.name)) and node.generation > old.generation
    )


def staying(before: Memory | None, plan: Plan) -> tuple[Node, ...]:
    """Nodes of the last success that this edit leaves in place; of a birth, all."""
    if before is None:
        return plan.nodes
    replaced = rebuilt(before, plan)
    return tuple(n for n in plan.nodes if n.name in before.machines and n.name not in replaced)


def returning(before: Memory | None, plan: Plan) -> frozenset[str]:
    """Names of nodes that were absent at the last success, and are not in this edit."""
    if before is None or before.plan is None:
        return frozenset()
    was = {node.name for node in before.plan.absent}
    return frozenset(n.name for n in plan.nodes if n.name in was and not n.is_absent)


def had_machine(before: Memory, name: str) -> bool:
    """Whether the stack had a machine of that name at its last success, in the cluster or not."""
    return name in before.machines or (name in before.away and not was_lost(before, name))


def kept_machines(before: Memory, plan: Plan) -> tuple[str, ...]:
    """Nodes whose machine is there and stays the one that it is, decommissioned ones too."""
    known = {**before.away, **before.machines}
    resting = (node for node in plan.away if node.state == "decommissioned")
    return tuple(
        node.name
        for node in (*plan.nodes, *resting)
        if had_machine(before, node.name) and node.generation <= known[node.name].generation
    )


def leaving_members(before: Memory | None, plan: Plan) -> dict[str, str]:
    """Addresses, by name, of living etcd members that this edit takes out at its end."""
    known = before.machines if before else {}
    lost = {node.name for node in plan.away if node.is_given_up}
    stay = {node.name for node in plan.etcd}
    return {
        name: machine.address
        for name, machine in known.items()
        if "etcd" in machine.roles and name not in stay | lost
    }


def was_lost(before: Memory, name: str) -> bool:
    """The last success said so already: its member and Node are gone."""
    return before.plan is not None and any(
        node.name == name and node.is_given_up for node in before.plan.away
    )


def _generations(before: Memory, plan: Plan) -> list[Refusal]:
    """A generation only rises, and a machine that was given up comes back as a new one."""
    given_up = {one.name: one for one in before.plan.fenced} if before.plan else {}
    out = []
    for node in plan.nodes:
        old = before.machines.get(node.name) or before.away.get(node.name)
        path = f"nodes.{node.name}.generation"
        was = given_up.get(node.name)
        held = cluster_fence.rotations(was, plan) if was and was.state == "compromised" else ()
        if was and held and node.name not in before.machines:
            text = (
                f"{node.name} was compromised, and what it held counts still; first bring "
                f"{' and '.join(held)} (docs/operate/compromised.md)"
            )
            out.append(Refusal("compromised", node.name, f"nodes.{node.name}.state", text))
        elif was and node.generation <= was.generation:
            text = (
                f"{node.name} was {was.state}, and its old identity is refused; set it to "
                f"{was.generation + 1}, so that the machine is wiped and joins as a new one"
            )
            out.append(Refusal("generation", node.name, path, text))
        elif old and node.generation < old.generation:
            text = f"{node.generation} is under {old.generation}, which was applied"
            out.append(Refusal("generation", node.name, path, f"{text}; set it back or raise it"))
    return [*out, *_of_decommissioned(before, plan)]


def _of_decommissioned(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """Machine and disks stay: another generation would replace them, or be none when it is back."""
    for node in plan.away:
        old = before.machines.get(node.name) or before.away.get(node.name)
        stays = node.state == "decommissioned" and had_machine(before, node.name)
        if old and stays and node.generation != old.generation:
            path = f"nodes.{node.name}.generation"
            text = (
                f"{node.name} is decommissioned, and its machine stays as it is; set it to "
                f"{old.generation}, and raise it when {node.name} comes back"
            )
            yield Refusal("generation", node.name, path, text)


def warnings_of(before: Memory | None, plan: Plan) -> tuple[Problem, ...]:
    """Who was compromised, and what it held that counts still."""
    fenced = {one.name: one for one in edit_fence.kept(before, plan).fenced}
    out = []
    for name, one in fenced.items():
        held = cluster_fence.rotations(one, plan) if one.state == "compromised" else ()
        if held:
            text = f"{name} was compromised, and what it held counts until you bring"
            out.append(Problem(f"nodes.{name}", f"{text} {' and '.join(held)}"))
    return tuple(out)


def _none_stays(
    before: Memory, old: Sequence[str], new: Sequence[str], *, what: str, kind: str
) -> list[Refusal]:
    if not old or set(old) & set(new):
        return []
    path = f"pools.{before.machines[old[0]].pool}"
    text = (
        f"no {what} of the running cluster would stay (leaving: {', '.join(sorted(old))}); add the "
        f"new ones and run up, then take the old ones out"
    )
    return [Refusal(kind, sorted(old)[0], path, text)]


def _pool_path(before: Memory, plan: Plan, name: str) -> str:
    machine = memory.machines(plan.nodes).get(name) or before.machines[name]
    return f"pools.{machine.pool}"


def _together(before: Memory, plan: Plan) -> list[Refusal]:
    """Masters and workers leave in two edits: each loses capacity that the other needs."""
    gone = (
        set(before.machines) - {node.name for node in plan.nodes} - set(going_first(before, plan))
    )
    masters = sorted(name for name in gone if "master" in before.machines[name].roles)
    workers = sorted(name for name in gone if before.machines[name].roles == ("worker",))
    if not masters or not workers:
        return []
    text = (
        f"{listed(masters)} and {listed(workers)} would leave together; put the lines of "
        f"{listed(masters)} back and run up, then take them out and run up again"
    )
    path = f"pools.{before.machines[masters[0]].pool}"
    return [Refusal("leave-together", "+".join(masters), path, text)]


def _mass_removal(before: Memory, plan: Plan) -> list[Refusal]:
    """A count with a digit too few; who is named in nodes is meant."""
    now = {node.name for node in plan.nodes} | set(plan.spec.nodes)
    pools: dict[str, list[str]] = {}
    for name, machine in before.machines.items():
        if machine.roles == ("worker",):
            pools.setdefault(machine.pool, []).append(name)
    out = []
    for pool, names in pools.items():
        gone = [name for name in names if name not in now]
        if len(names) >= _FEW and 2 * len(gone) > len(names):
            text = (
                f"{len(gone)} of {len(names)} machines of pool {pool} would leave "
                f"({listed(gone)}); take out at most {len(names) // 2} per update"
            )
            out.append(Refusal("mass-removal", pool, f"pools.{pool}", text))
    return out or _of_all_workers(before, plan, [*chain(*pools.values())], now)


def _of_all_workers(
    before: Memory, plan: Plan, workers: Sequence[str], now: Collection[str]
) -> list[Refusal]:
    """The same over all pools, and workers recreated: all go before one is back."""
    if len(workers) < _FEW:
        return []
    out = []
    gone = [name for name in workers if name not in now]
    if 2 * len(gone) > len(workers):
        text = f"{len(gone)} of all {len(workers)} workers would leave ({listed(gone)}); take out"
        way = f"at most {len(workers) // 2} per update"
        out.append(Refusal("mass-removal", _ALL, "pools", f"{text} {way}"))
    replaced = [name for name in rebuilt(before, plan) if name in workers]
    if 2 * len(replaced) > len(workers):
        text = (
            f"{len(replaced)} of all {len(workers)} workers would be recreated "
            f"({listed(replaced)}), and "
            f"leave before the first is back; raise at most {len(workers) // 2} per update"
        )
        out.append(Refusal("mass-rebuild", _ALL, "nodes", text))
    return out


def listed(names: Sequence[str]) -> str:
    """Up to five names, and how many more there are."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
