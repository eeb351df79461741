"""What phase `retire` is told: who is taken out before anything else happens."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stacks.cluster.plan import Node, Plan
from stacks.phases import nodes


def of_retire(
    plan: Plan, node: Node, *, going: Sequence[Node], then: Plan, staying: Collection[str]
) -> dict[str, str]:
    """Values of the retire phase on `node`; none while nobody goes.

    `then` is what was: etcd may be about to move, and is asked where it was. `staying` are names of
    nodes that this edit leaves in place. Load balancers go too: they are not Nodes, and give up the
    virtual IP.
    """
    if not going:
        return {}
    return {
        "INCARNATIONS": " ".join(f"{one.name}={one.generation}:{one.state}" for one in going),
        "GOING_MEMBERS": nodes.members(one for one in going if one.is_etcd),
        "MEMBERS": nodes.members(plan.etcd),
        "ADDRESS": node.address,
        "ETCD_ENDPOINTS": nodes.etcd_endpoints(then, [n for n in then.etcd if n.name in staying]),
    }
