"""The firewall of machines: opened to what comes before anything changes, closed to what has gone.

Both phases are told the same rules. The first lets them in beside those that are loaded, whatever
they are, so an update that was cut off leaves nobody outside. The second leaves those alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stacks.cluster.plan import Node
from stacks.order.scene import Scene, attempt
from stacks.order.step import Step
from stacks.phases import firewall

_LANES = 10  # machines at a time; nothing waits for more steps than that


def opened(scene: Scene) -> Iterator[Step]:
    """Machines that exist know those that come before any of them is dialled by one."""
    if not firewall.is_wanted(scene.plan):
        return
    for node in scene.plan.nodes:
        known = firewall.of_firewall(scene.plan, node)
        yield attempt(_name(scene, node), "firewall", tuple(known[key] for key in sorted(known)))
    for lane in _lanes(_there(scene)):
        last: tuple[str, ...] = ()
        for node in lane:
            yield _opening(scene, node, last)
            last = (scene.of(node.name, "firewall-open"),)
    for node in scene.plan.nodes:
        if node.name not in scene.settled:
            # There is nothing to open on it yet; the step is there from the first day on.
            yield replace(_opening(scene, node, ()), part="new machines")


def _opening(scene: Scene, node: Node, after: tuple[str, ...]) -> Step:
    return Step(
        name=scene.of(node.name, "firewall-open"),
        kind="phase",
        node=node,
        phase="firewall-open",
        after=(scene.of(node.name, "scripts"), *after),
        values={**firewall.of_opening(scene.plan, node)},
        stamp=f"{_name(scene, node)}-attempt",
    )


def all_opened(scene: Scene) -> tuple[str, ...]:
    """After what machines that exist let new ones in."""
    if not firewall.is_wanted(scene.plan):
        return ()
    return tuple(scene.of(lane[-1].name, "firewall-open") for lane in _lanes(_there(scene)))


def closed(scene: Scene, after: tuple[str, ...]) -> Iterator[Step]:
    """The acting master alone first: what keeps this computer out is seen there, once."""
    if not firewall.is_wanted(scene.plan):
        return
    first, rest = scene.master, [one for one in scene.plan.nodes if one is not scene.master]
    waits = (scene.own("nodes"), *after)
    yield _closing(scene, first, waits)
    for lane in _lanes(rest):
        last = _name(scene, first)
        for node in lane:
            yield _closing(scene, node, (scene.of(node.name, "node"), last))
            last = _name(scene, node)


def _closing(scene: Scene, node: Node, after: tuple[str, ...]) -> Step:
    name = _name(scene, node)
    return Step(
        name=name,
        kind="phase",
        node=node,
        phase="firewall",
        after=(scene.of(node.name, "firewall-open"), *after),
        values={**firewall.of_firewall(scene.plan, node)},
        stamp=f"{name}-attempt",
    )


def all_closed(scene: Scene) -> tuple[str, ...]:
    """What of it the gate waits for by itself."""
    if not firewall.is_wanted(scene.plan):
        return ()
    rest = [node for node in scene.plan.nodes if node is not scene.master]
    last = [lane[-1] for lane in _lanes(rest)] or [scene.master]
    return tuple(_name(scene, node) for node in last)


def _there(scene: Scene) -> list[Node]:
    return [node for node in scene.plan.nodes if node.name in scene.settled]


def _lanes(nodes: Sequence[Node]) -> list[Sequence[Node]]:
    return [nodes[number::_LANES] for number in range(min(_LANES, len(nodes)))]


def _name(scene: Scene, node: Node) -> str:
    return scene.of(node.name, "firewall")
