"""Programs that HAProxy of a node connects to etcd: whose way ends, and who is refused."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster import rotation as cluster_rotation
from stacks.cluster.names import spoken
from stacks.cluster.plan import Plan
from stacks.explain import rotation


def notices(then: Plan, plan: Plan) -> Iterator[str]:
    """What programs notice that go by frontDoors.etcd."""
    was, now = then.spec.front_doors.etcd, plan.spec.front_doors.etcd
    if was is None:
        return
    led = {node.name for node in then.nodes if node.pool in was.pools}
    still = {node.name for node in plan.nodes if now and node.pool in now.pools}
    same = now is not None and now.port == was.port
    stay = {node.name for node in plan.nodes if not node.is_absent}
    closed = sorted(led & stay - (still if same else set()))
    if closed:
        yield f"programs on {spoken(closed)} lose the way to etcd at 127.0.0.1:{was.port}"
    if now is not None:
        yield from _certificates(then, plan)


def _certificates(then: Plan, plan: Plan) -> Iterator[str]:
    for subject, was, now in rotation.moved(then, plan):
        if subject != "etcd":
            continue
        if cluster_rotation.signing(was) < cluster_rotation.signing(now):
            yield "the output etcdClient from before step `trust` does not know etcd's CA of now"
        elif now.step == "drop":
            yield "the output etcdClient from before step `issue` is refused from now on"
