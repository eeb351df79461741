"""Whose pods are evicted by an edit, and why."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster import rollout
from stacks.cluster.names import spoken
from stacks.cluster.plan import Plan
from stacks.edits import membership
from stacks.edits.memory import Memory
from stacks.explain.changes import Changes
from stacks.releases import versions


def notices(before: Memory, plan: Plan, found: Changes) -> Iterator[str]:
    """What pods notice of nodes that are updated, leave, or are replaced."""
    drained = _updated(before, plan, found)
    if drained:
        limit = plan.spec.rollout.drain.timeout_s
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
        workers = {(node.name, node.generation) for node in then.workers}
        if workers and not workers & {(node.name, node.generation) for node in plan.workers}:
            yield "all workload ends: no worker remains"


def _leave(names: list[str]) -> str:
    return "leaves" if len(names) == 1 else "leave"


def _updated(before: Memory, plan: Plan, found: Changes) -> list[str]:
    """Nodes that are drained for an update, as update.sh decides on each of them."""
    then, when = before.plan, plan.spec.rollout.drain.when
    if then is None or when == "never":
        return []
    packages = bool(plan.spec.os.packages) and plan.spec.os.packages != then.spec.os.packages
    kubelet = _other_minor(then.versions.kubernetes, plan.versions.kubernetes)
    of_master = packages or kubelet
    containerd = _other_minor(then.versions.containerd, plan.versions.containerd)
    of_worker = of_master or containerd or when == "always"
    held = _held(plan)
    return [
        node.name
        for node in found.of("changed")
        if ("master" in node.roles and of_master)
        or (
            "worker" in node.roles
            and "master" not in node.roles
            and of_worker
            and node.name not in held
            and any(action.phase == "node" for action in node.actions)
        )
    ]


def _held(plan: Plan) -> set[str]:
    """Workers of waves that this update does not begin."""
    last = plan.spec.rollout.hold_after
    if last is None:
        return set()
    waves = rollout.node_waves(plan)
    return {name for wave in waves if wave.number > last for name in wave.nodes}


def _other_minor(was: str, now: str) -> bool:
    return versions.minor(was) != versions.minor(now)
