"""Until when an edit can be taken back, and what stands in the way afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster.names import spoken
from stacks.cluster.plan import Plan
from stacks.config.pki import RotationSpec
from stacks.edits import membership, memory, transition
from stacks.edits.memory import Memory
from stacks.explain import rotation
from stacks.explain.changes import Changes
from stacks.releases import versions

# Refusals of an edit back that a sentence of its own says already.
_TOLD = ("version", "rotation", "generation", "compromised")


def roll_back(before: Memory | None, plan: Plan, found: Changes) -> tuple[str, ...]:
    """What cannot be taken back, and from when on; nothing: an edit back is all it takes."""
    if before is None:
        return ()
    out = [*_versions(before, plan, found), *_members(before, plan, found)]
    if before.plan is None:
        return tuple(out)
    out += [*_rotations(before.plan, plan), *_outside(before.plan, plan, found)]
    if plan.spec.pki.admin_generation != before.plan.spec.pki.admin_generation:
        out.append("pki.adminGeneration only rises")
    return (*out, *_refused(before, before.plan, plan))


def _refused(before: Memory, then: Plan, plan: Plan) -> Iterator[str]:
    """What would be said to the edit back after a success: more than one may be needed."""
    after = memory.read(memory.of(plan, before))
    for one in transition.refused(after, then):
        if one.kind not in _TOLD:
            why = one.text.partition(";")[0]
            yield f"an edit back in one step is refused afterwards: {why}"


def _runs(found: Changes, phase: str) -> list[str]:
    """Nodes on which a phase runs, in the order of the steps."""
    return [
        one.step.node.name
        for one in found.edit.differences
        if one.step.phase == phase and one.mark != "-" and one.step.node
    ]


def _versions(before: Memory, plan: Plan, found: Changes) -> Iterator[str]:
    """Once the first master has published a minor version, and all members have reached one."""
    was, now = before.kubernetes, plan.versions.kubernetes
    masters, members = _runs(found, "master"), _runs(found, "etcd-member")
    if masters and versions.minor(was) != versions.minor(now):
        yield (
            f"Kubernetes until {masters[0]} has finished: from then on the older minor version is "
            "refused"
        )
    etcd = before.plan.versions.etcd if before.plan else plan.versions.etcd
    if members and versions.minor(etcd) != versions.minor(plan.versions.etcd):
        who = "all members run" if len(plan.etcd) > 1 else f"{members[0]} runs"
        yield f"etcd until {who} the new minor version: from then on the older is refused"


def _members(before: Memory, plan: Plan, found: Changes) -> Iterator[str]:
    away = {node.name: node for node in plan.away}
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
    kept = [name for name in removed if name in away]
    yield from _until_out(kept, "")
    wiped = plan.made or plan.spec.machines.on_release != "keep"
    yield from _until_out(
        [name for name in removed if name not in away],
        ", and what is on it is lost after the gate" if wiped else "",
    )


def _until_out(names: list[str], data: str) -> Iterator[str]:
    if names:
        new = "a new node" if len(names) == 1 else "new nodes"
        lost = data if len(names) == 1 else data.replace("on it", "on them")
        yield f"{spoken(names)} until out of the cluster: from then on only as {new}{lost}"


def _rotations(then: Plan, plan: Plan) -> Iterator[str]:
    for subject, _, now in rotation.moved(then, plan):
        if not _has_way_back(subject, now):
            on = "go on to `issue`" if now.step == "trust" else "the former one is gone"
            yield f"no way back from step `{now.step}` of {rotation.NAMES[subject]}: {on}"


def _has_way_back(subject: str, now: RotationSpec) -> bool:
    return now.step == "issue" or (now.step == "drop" and subject in ("encryption", "seed"))


def _outside(then: Plan, plan: Plan, found: Changes) -> Iterator[str]:
    word = plan.spec.os.packages
    if word and word != then.spec.os.packages and _runs(found, "node"):
        yield "packages that were updated stay so"
    gone = sorted({one.name for one in then.addons} - {one.name for one in plan.addons})
    if gone:
        yield f"add-on {', '.join(gone)} until its objects are deleted: then they are recreated"
    if then.balancer not in ("none", plan.balancer):
        yield f"the {then.balancer} load balancer until it is deleted: then a new one is made"
    if then.has_ingress_balancer and not plan.has_ingress_balancer:
        yield "the load balancer for ingress until it is deleted: another one has another address"
