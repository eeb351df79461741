"""The life of a cluster on one screen: what an update makes so, in which order.

A cluster that is being born overlaps etcd members with masters. One that lives changes one machine
at a time, whole; new machines are made ready at once; existing workers come after the masters, in
waves. Load balancers change beside the workers, and get the virtual IP at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stacks.order import control_plane, doors, end, workers
from stacks.order.scene import Scene, machine
from stacks.order.step import Group, Step, of_part


def steps(scene: Scene) -> tuple[Step, ...]:
    """Every step, each behind all that it waits for, else as they are told below.

    Raises ValueError for two of one name, KeyError for one that waits for what is not a step.
    """
    found: dict[str, Step] = {}
    for step in _steps(scene):
        if step.name in found:
            raise ValueError(f"two steps are called {step.name}")
        found[step.name] = step
    found = _without_absent(found)
    ordered: dict[str, Step] = {}

    def take(step: Step) -> None:
        for name in (*step.after, *([step.stamp] if step.stamp else ())):
            if name not in ordered:
                take(found[name])
        ordered.setdefault(step.name, step)

    for step in found.values():
        take(step)
    return tuple(ordered.values())


def _without_absent(found: dict[str, Step]) -> dict[str, Step]:
    """Nothing runs on an absent machine. Who waits for a step there waits for what that waited for.

    Two are kept as they are: the machine, and the command by which it can leave one day. Deleting
    any other runs nothing, and the machine is told all of it again when it is back.
    """
    gone = {name for name, step in found.items() if _is_on_absent(step)}
    gone |= {found[name].stamp for name in gone} - {
        step.stamp for name, step in found.items() if name not in gone
    }

    def waits(names: tuple[str, ...]) -> Iterator[str]:
        for name in names:
            yield from waits(found[name].after) if name in gone else (name,)

    return {
        name: replace(
            step,
            after=tuple(dict.fromkeys(waits(step.after))),
            ignores="all" if step.leaves and step.node and step.node.is_absent else step.ignores,
        )
        for name, step in found.items()
        if name not in gone
    }


def _is_on_absent(step: Step) -> bool:
    is_kept = step.kind == "machine" or step.leaves
    return step.node is not None and step.node.is_absent and not is_kept


def _steps(scene: Scene) -> Iterator[Step]:
    yield from of_part("machines", _machines(scene, recreated=False))
    yield from of_part("leafs", control_plane.leafs(scene))
    yield from of_part("snapshot", control_plane.saved(scene))
    yield from of_part("retire", control_plane.taken_out(scene))
    yield from of_part("new machines", _machines(scene, recreated=True))
    yield from of_part("control plane", control_plane.members_and_masters(scene))
    yield from of_part("settled keys", workers.settled_keys(scene))
    yield from of_part("API name", doors.named(scene))
    yield from of_part("add-ons", workers.addons(scene))
    yield from of_part("workers", workers.waves(scene))
    yield from of_part("joining", workers.joined(scene))
    yield from of_part("user add-ons", workers.user_addons(scene))
    yield from of_part("load balancers", doors.load_balancers(scene))
    yield from of_part("nodes", [end.listed(scene)])
    out = [*of_part("stopped", end.away(scene))]
    tls = [*of_part("ingress", doors.tls(scene))]
    vip = [*of_part("virtual IP", doors.virtual_ip(scene))]
    yield from (*out, *tls, *vip)
    yield from of_part("gate", end.proved(scene, _ends(out, tls, vip)))


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


def _machines(scene: Scene, *, recreated: bool) -> Iterator[Step]:
    for node in scene.plan.nodes:
        if (node.name in scene.recreated) is recreated:
            after = (scene.own("retire"),) if recreated else ()
            yield Step(
                name=machine(node),
                kind="machine",
                part=scene.part_of(node),
                node=node,
                after=after,
            )


def _ends(out: list[Step], tls: list[Step], vip: list[Step]) -> tuple[str, ...]:
    """What of it the gate waits for by itself."""
    return (
        *(step.name for step in out if step.phase in ("decommission", "etcd-absent")),
        *(step.name for step in tls if step.phase == "ingress"),
        *(step.name for step in vip if step.kind == "phase"),
    )
