"""The list of nodes, what happens on machines once they are out of it, and the gate."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster import digests
from stacks.cluster.plan import Node
from stacks.order import doors, workers
from stacks.order.control_plane import looked
from stacks.order.scene import Scene, machine
from stacks.order.step import Step
from stacks.phases import gate, nodes, preflight, scripts


def listed(scene: Scene) -> Step:
    """Who is wanted in the cluster. It depends on no worker: it asks the cluster."""
    plan = scene.plan
    # The token too: only one phase runs on a machine, and the list waits for those that join by it.
    # The last member: one on its own machine may come after masters. Whoever leaves does so once
    # the API's name points to others.
    named = (scene.own("api-name-known"),) if doors.has_record(scene) else ()
    # Who leaves the control plane is in no HAProxy any more.
    balanced = [name for node, name in doors.ready(scene).items() if node in scene.settled]
    return Step(
        name=scene.own("nodes"),
        kind="phase",
        node=scene.master,
        phase="nodes",
        parent=scene.own("acceptance"),
        after=(
            *(workers.last_master(scene), *named, scene.own("join-token"), workers.opened(scene)),
            scene.of(scene.last_member.name, "etcd"),
            *workers.applied(scene),
            *(scene.own(f"addon-{addon.name}") for addon in plan.addons),
            *balanced[-1:],
        ),
        values={**nodes.of_nodes(plan), "WANTED": scene.wanted},
        stamp=scene.attempt,
    )


def away(scene: Scene) -> Iterator[Step]:
    """What happens on machines once they are out of the list of nodes."""
    out = scene.own("nodes")
    for node in scene.plan.away:
        if node.is_given_up and not scene.plan.made:
            yield Step(
                name=scene.of(node.name, "preflight"),
                kind="forget",
                node=scene.master,
                after=(machine(scene.master),),
            )
        elif node.state == "decommissioned":
            yield from _decommissioned(scene, node, out)
    for node in scene.plan.masters:
        if not node.is_etcd:
            yield Step(
                name=scene.of(node.name, "etcd-absent"),
                kind="phase",
                node=node,
                phase="etcd-absent",
                after=(out,),
            )


def _decommissioned(scene: Scene, node: Node, out: str) -> Iterator[Step]:
    """Everything of kube-ha is stopped, machine and disks stay.

    Its scripts and its preflight, by which it can leave for good one day, are kept.
    """
    copied = scene.of(node.name, "scripts")
    yield Step(name=machine(node), kind="machine", node=node)
    yield Step(
        name=copied,
        kind="scripts",
        node=node,
        after=(machine(node),),
        parts=(digests.digest("decommission", scripts.script_sum("decommission")),),
    )
    kept = looked(scene, node, preflight.preflight(scene.plan, node, scene.files[node.arch]))
    yield kept
    yield Step(
        name=scene.of(node.name, "decommission"),
        kind="phase",
        node=node,
        phase="decommission",
        after=(kept.name, out),
        stamp=copied,
    )


def proved(scene: Scene, between: tuple[str, ...]) -> Iterator[Step]:
    """What proves that the cluster works: only then this config is remembered."""
    after = (scene.own("nodes"), *between)
    asked = tuple(doors.asked_from_here(scene, after))
    yield from asked
    yield Step(
        name=scene.own("gate"),
        kind="phase",
        node=scene.master,
        phase="gate",
        parent=scene.own("acceptance"),
        after=(*after, *(step.name for step in asked)),
        values={**gate.of_gate(scene.plan), "APPLIED": scene.wanted},
        stamp=scene.attempt,
    )
