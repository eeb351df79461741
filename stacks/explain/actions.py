"""What happens to one node, in words: what every part of the change plan is made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from stacks.phases.effects import Restart

Kind = Literal["new", "rebuilt", "changed", "leaving"]
Order = Literal["in parallel", "one by one", "once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing that happens on or to a node, in words, and what clients could notice of it."""

    # The phase that does it. "first" and "nodes" are done from a master, before and after all else;
    # "machine" beside the node.
    phase: str
    text: str
    restarts: Restart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    name: str
    kind: Kind
    roles: tuple[str, ...]
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """What happens between two checks."""

    title: str
    order: Order
    nodes: tuple[NodeChange, ...]  # each with the actions of this wave only, in their order
    lines: tuple[str, ...] = ()  # what belongs to no node
    checked: str
    abort: str


def only(nodes: Iterable[NodeChange], phases: Collection[str]) -> tuple[NodeChange, ...]:
    """The nodes that have actions of these phases, with these actions only."""
    found: dict[int, tuple[NodeChange, list[Action]]] = {}
    for place, node in enumerate(nodes):
        for action in node.actions:
            if action.phase in phases:
                found.setdefault(place, (node, []))[1].append(action)
    return tuple(replace(node, actions=tuple(actions)) for node, actions in found.values())
