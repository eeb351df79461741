"""What happens to one node, in words: what every part of the plan in words is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stacks.effects import Restart

Kind = Literal["new", "rebuilt", "changed", "leaving"]


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
