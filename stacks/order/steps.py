"""The life of a cluster on one screen: what an up makes so, in which order.

A cluster that is being born overlaps etcd members with masters. One that lives changes one machine
at a time, whole; new machines are made ready at once; existing workers come after the masters, in
waves. Load balancers change beside the workers, and get the virtual IP at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from stacks.order import control_plane, doors, end, workers
from stacks.order.scene import Scene, machine
from stacks.order.step import Group, Step


def steps(scene: Scene) -> tuple[Step, ...]:
    """Every step, each behind all that it waits for, else as they are told below.

    Raises ValueError for two of one name, KeyError for one that waits for what is no step.
    """
    found: dict[str, Step] = {}
    for step in _steps(scene):
        if step.name in found:
            raise ValueError(f"two steps are called {step.name}")
        found[step.name] = step
    ordered: dict[str, Step] = {}

    def take(step: Step) -> None:
        for name in (*step.after, *([step.stamp] if step.stamp else ())):
            if name not in ordered:
                take(found[name])
        ordered.setdefault(step.name, step)

    for step in found.values():
        take(step)
    return tuple(ordered.values())


def _steps(scene: Scene) -> Iterator[Step]:
    yield from _machines(scene, anew=False)
    yield from control_plane.first(scene)
    yield from _machines(scene, anew=True)
    yield from control_plane.members_and_masters(scene)
    yield from workers.settled_keys(scene)
    yield from doors.named(scene)
    yield from workers.addons(scene)
    yield from workers.waves(scene)
    yield from workers.joined(scene)
    yield from workers.user_addons(scene)
    yield from doors.load_balancers(scene)
    yield end.listed(scene)
    out = [*end.away(scene)]
    tls = [*doors.tls(scene)]
    vip = [*doors.virtual_ip(scene)]
    yield from (*out, *tls, *vip)
    yield from end.proved(scene, _ends(out, tls, vip))


def groups(scene: Scene) -> tuple[Group, ...]:
    """Components that are parents of steps."""
    plan = scene.plan
    return (
        Group("Acceptance", scene.own("acceptance")),
        *(Group("EtcdMember", scene.of(node.name, "etcd")) for node in plan.etcd),
        *(Group("Master", scene.of(node.name, "master")) for node in plan.masters),
        Group("Addons", scene.own("addons")),
        Group("Rollout", scene.cluster),
        *(Group("WorkerPool", scene.own(pool)) for pool in sorted({n.pool for n in plan.workers})),
    )


def _machines(scene: Scene, *, anew: bool) -> Iterator[Step]:
    for node in scene.plan.nodes:
        if (node.name in scene.anew) is anew:
            after = (scene.own("retire"),) if anew else ()
            yield Step(name=machine(node), kind="machine", node=node, after=after)


def _ends(out: list[Step], tls: list[Step], vip: list[Step]) -> tuple[str, ...]:
    """What of it the gate waits for by itself."""
    return (
        *(step.name for step in out if step.phase in ("decommission", "etcd-absent")),
        *(step.name for step in tls if step.phase == "ingress"),
        *(step.name for step in vip if step.kind == "phase"),
    )
