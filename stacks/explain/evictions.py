"""Whose pods are evicted by an edit, and why."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster import rollout
from stacks.cluster.names import spoken
from stacks.cluster.plan import Plan
from stacks.config.rollout import DrainSpec
from stacks.edits import membership
from stacks.edits.memory import Memory
from stacks.explain.changes import Changes
from stacks.order.difference import LOGIN, PATIENCE, STAMP
from stacks.releases import versions

# What runs the node phase again though the node has applied all of it (update.sh, know_whole).
_NOTHING_NEW = {LOGIN, PATIENCE, STAMP}
USUAL = DrainSpec()  # of a Node on which nothing else is said


def notices(before: Memory, plan: Plan, found: Changes) -> Iterator[str]:
    """What pods notice of nodes that are updated, leave, or are replaced."""
    limits: dict[int, list[str]] = {}
    for name, limit in updated(before, plan, found):
        limits.setdefault(limit, []).append(name)
    for limit, drained in sorted(limits.items()):
        yield (
            f"evicted from {spoken(drained)}, as PodDisruptionBudgets allow, within {limit} s a "
            "node"
        )
    was = {node.name: node.drain for node in before.plan.nodes} if before.plan else {}
    emptied = [node.name for node in plan.nodes if node.drain and not was.get(node.name)]
    if emptied:
        yield f"evicted from {spoken(emptied)}, for maintenance, as PodDisruptionBudgets allow"
    lost = membership.going_first(before, plan)
    leaving = [
        node.name
        for node in found.of("leaving")
        if node.name in before.machines
        and node.name not in lost
        and {"master", "worker"} & {*node.roles}
    ]
    if leaving:
        yield f"evicted from {spoken(leaving)}, which {_leave(leaving)} the cluster"
    roles = {name: before.machines[name].roles for name in lost if name in before.machines}
    dead = [n.name for n in found.of("leaving") if {"master", "worker"} & {*roles.get(n.name, ())}]
    if dead:
        yield f"deleted with {spoken(dead)}, without an eviction"
    replaced = [n.name for n in found.of("rebuilt") if {"master", "worker"} & {*n.roles}]
    if replaced:
        yield f"evicted from {spoken(replaced)} before the replacement, where it still answers"
    then = before.plan
    if then is not None:
        was_there, there = ({*_that_run_workload(one)} for one in (then, plan))
        if was_there and not was_there & there:
            yield "all workload ends: no worker remains"


def _that_run_workload(plan: Plan) -> Iterator[tuple[str, int]]:
    return ((node.name, node.generation) for node in plan.nodes if "worker" in node.roles)


def _leave(names: list[str]) -> str:
    return "leaves" if len(names) == 1 else "leave"


def updated(before: Memory, plan: Plan, found: Changes) -> Iterator[tuple[str, int]]:
    """Nodes that are drained for an update, as update.sh decides on each of them; within how long.

    Gate 0 of the waves tells workers what rollout.drain says; masters it tells nothing.
    """
    then, drain = before.plan, plan.spec.rollout.drain
    if then is None:
        return
    packages = bool(plan.spec.os.packages) and plan.spec.os.packages != then.spec.os.packages
    kubelet = _other_minor(then.versions.kubernetes, plan.versions.kubernetes)
    containerd = _other_minor(then.versions.containerd, plan.versions.containerd)
    of_master = packages or kubelet
    of_worker = drain.when != "never" and (of_master or containerd or drain.when == "always")
    kept = {*_held(plan), *(node.name for node in found.of("new", "rebuilt"))}
    for one in found.edit.differences:
        node = one.step.node
        if one.step.phase != "node" or one.mark != "~" or node is None or node.name in kept:
            continue
        if not one.by - _NOTHING_NEW and not packages:
            continue
        if node.is_master and of_master:
            yield node.name, USUAL.timeout_s
        elif node.is_worker and of_worker:
            yield node.name, drain.timeout_s


def _held(plan: Plan) -> set[str]:
    """Workers of waves that this update does not begin."""
    last = plan.spec.rollout.hold_after
    if last is None:
        return set()
    waves = rollout.node_waves(plan)
    return {name for wave in waves if wave.number > last for name in wave.nodes}


def _other_minor(was: str, now: str) -> bool:
    return versions.minor(was) != versions.minor(now)
