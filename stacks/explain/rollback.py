"""Until when an edit can be taken back, and what stands in the way afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster.names import spoken
from stacks.cluster.plan import Plan
from stacks.config.pki import RotationSpec
from stacks.edits import membership
from stacks.edits.memory import Memory
from stacks.explain import rotation
from stacks.explain.changes import Changes
from stacks.releases import versions


def roll_back(before: Memory | None, plan: Plan, found: Changes) -> tuple[str, ...]:
    """What cannot be taken back, and from when on; nothing: an edit back is all it takes."""
    if before is None:
        return ()
    out = [*_versions(before, plan), *_members(before, plan, found)]
    if before.plan is None:
        return tuple(out)
    out += [*_rotations(before.plan, plan), *_outside(before.plan, plan)]
    if plan.spec.pki.admin_generation != before.plan.spec.pki.admin_generation:
        out.append("pki.adminGeneration only rises")
    return tuple(out)


def _versions(before: Memory, plan: Plan) -> Iterator[str]:
    was, now = before.kubernetes, plan.versions.kubernetes
    if versions.minor(was) != versions.minor(now):
        yield (
            f"Kubernetes until {plan.masters[0].name} has finished: from then on the older minor "
            "version is refused"
        )
    etcd = before.plan.versions.etcd if before.plan else plan.versions.etcd
    if versions.minor(etcd) != versions.minor(plan.versions.etcd):
        yield "etcd until all members run the new minor version: from then on the older is refused"


def _members(before: Memory, plan: Plan, found: Changes) -> Iterator[str]:
    away = {node.name for node in plan.away}
    first = membership.going_first(before, plan)
    lost = [name for name in first if name in away]
    if lost:
        yield f"{spoken(lost)} only with a raised generation, as a new machine"
    recreated = membership.rebuilt(before, plan)
    if recreated:
        yield f"{spoken(recreated)} until out of the cluster: the data of the old machine is lost"
    removed = [
        node.name
        for node in found.of("leaving")
        if node.name in before.machines and node.name not in first
    ]
    if removed:
        new = "a new node" if len(removed) == 1 else "new nodes"
        yield f"{spoken(removed)} until out of the cluster: from then on only as {new}"


def _rotations(then: Plan, plan: Plan) -> Iterator[str]:
    for subject, _, now in rotation.moved(then, plan):
        if not _has_way_back(subject, now):
            on = "go on to `issue`" if now.step == "trust" else "the former one is gone"
            yield f"no way back from step `{now.step}` of {rotation.NAMES[subject]}: {on}"


def _has_way_back(subject: str, now: RotationSpec) -> bool:
    return now.step == "issue" or (now.step == "drop" and subject in ("encryption", "seed"))


def _outside(then: Plan, plan: Plan) -> Iterator[str]:
    if plan.spec.os.packages and plan.spec.os.packages != then.spec.os.packages:
        yield "packages that were updated stay so"
    gone = sorted({one.name for one in then.addons} - {one.name for one in plan.addons})
    if gone:
        yield f"add-on {', '.join(gone)} until its objects are deleted: then they are recreated"
    if then.balancer not in ("none", plan.balancer):
        yield f"the {then.balancer} load balancer until it is deleted: then a new one is made"
