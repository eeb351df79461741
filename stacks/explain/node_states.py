"""Words for a node whose state changes: maintenance, with what becomes of its pods, and absence."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster.plan import Node

_ENDS = {
    "maintenance": "uncordon, maintenance is over",
    "absent": "counts as there again",
}


def words(old: Node, node: Node) -> Iterator[str]:
    """What the list of nodes does about it, in its order."""
    if not node.in_kubernetes:
        return
    if node.state == "maintenance":
        if old.state != "maintenance":
            pods = "evict its pods" if node.drain else "its pods stay"
            yield f"cordon for maintenance, {pods}"
        elif node.drain != old.drain:
            yield "evict its pods" if node.drain else "its pods are no longer evicted"
    elif node.state != old.state:
        yield "counts as down, nothing is changed on it" if node.is_absent else _ENDS[old.state]
    if node.keep_pods_s != old.keep_pods_s:
        limit = f"for {node.keep_pods_s} s" if node.keep_pods_s else "as long as they tolerate it"
        yield f"its pods stay {limit} while it is unresponsive"


def stay_in_maintenance(old: Node, node: Node) -> bool:
    """Whether only what becomes of its pods differs."""
    return old.state == node.state and (old.drain, old.keep_pods_s) != (
        node.drain,
        node.keep_pods_s,
    )
