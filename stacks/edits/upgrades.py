"""Which versions a running cluster may go to, and the way where it may not.

What the makers say: Kubernetes and etcd take every minor version, and neither reads what a newer
minor version has written. A change that never succeeded is not in the memory: taking it back is no
change here, and the machines refuse it where it is too late (components/scripts/).
"""

from __future__ import annotations

from collections.abc import Iterator

from stacks.checks.refusals import Refusal
from stacks.cluster.plan import Plan
from stacks.edits import membership
from stacks.edits.membership import listed
from stacks.edits.memory import Memory
from stacks.releases import versions

# By minor version of etcd: the least patch of the one before that it can follow, by etcd's own
# upgrade guides (etcd.io/docs/v3.7/upgrades/upgrade_3_7, etcd.io/blog/2025/zombie_members_upgrade).
_ETCD_FLOORS = {(3, 6): "3.5.26", (3, 7): "3.6.11"}
_OVER = "or make a new stack with {!r} and move the workload over"


def refusals(before: Memory, plan: Plan) -> list[Refusal]:
    """What is wrong with going from the versions of `before` to those of the plan."""
    return [*_kubernetes(before, plan), *_etcd(before, plan), *_beside(before, plan)]


def _kubernetes(before: Memory, plan: Plan) -> Iterator[Refusal]:
    old, new = before.kubernetes, plan.versions.kubernetes
    path = "cluster.kubernetes"
    if versions.minor(new) < versions.minor(old):
        text = (
            f"{new} is an older minor version than {old}, and it cannot read all that {old} wrote "
            f"to etcd; set it back to {old!r}, {_OVER.format(new)}"
        )
        yield Refusal("version", new, path, text)
    elif _skipped(old, new):
        text = f"from {old} to {new} skips {_skipped(old, new)} minor version(s), and Kubernetes"
        yield Refusal("version", new, path, f"{text} takes each; {_next(old)}")


def _next(old: str) -> str:
    """The way on from a Kubernetes version, one minor version up."""
    major, number = versions.minor(old)
    steps = [known for known in versions.known() if versions.minor(known) == (major, number + 1)]
    if steps:
        return f"set it to {steps[0]!r} and run up, then go on"
    return (
        f"set it back to {old!r}, and take the step to {major}.{number + 1} with a version of this "
        "program that has it"
    )


def _etcd(before: Memory, plan: Plan) -> Iterator[Refusal]:
    if before.plan is None:
        return
    old, new = before.plan.versions.etcd, plan.versions.etcd
    path = "cluster.etcd"
    floor = _ETCD_FLOORS.get(versions.minor(new))
    if versions.minor(new) < versions.minor(old):
        text = (
            f"{new} is an older minor version than {old}, and etcd does not go back with its data"
        )
        way = f"set it to {old!r}, {_OVER.format(new)}"
        yield Refusal("version", f"etcd-{new}", path, f"{text}; {way}")
    elif _skipped(old, new):
        text = f"from etcd {old} to {new} skips {_skipped(old, new)} minor version(s), and etcd"
        way = f"takes each; set it to one between, or to {old!r}"
        yield Refusal("version", f"etcd-{new}", path, f"{text} {way}")
    elif floor and versions.minor(new) > versions.minor(old) and _less(old, floor):
        text = f"from etcd {old} to {new}: members of {floor} at least can become it"
        way = f"set it to {floor!r} or a later patch and run up, then go on"
        yield Refusal("version", f"etcd-{new}", path, f"{text}; {way}")


def _less(one: str, other: str) -> bool:
    return versions.number(one) < versions.number(other)


def _skipped(old: str, new: str) -> int:
    """Minor versions between two; another major version is taken for one that skips."""
    was, now = versions.minor(old), versions.minor(new)
    if was[0] != now[0]:
        return 1
    return max(now[1] - was[1] - 1, 0)


def _beside(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """Nobody of the control plane comes or goes while its versions change."""
    old, new = before.kubernetes, plan.versions.kubernetes
    changed = _changed(before, plan)
    if changed is None:
        return
    path, subject, minor = changed
    leaving = sorted(set(before.machines) - {node.name for node in plan.nodes})
    if leaving and old != new:
        text = f"changes while {listed(leaving)} would leave; take these out first and run up"
        yield Refusal("leave-and-upgrade", subject, path, text)
    replaced = membership.rebuilt(before, plan)
    coming = sorted(
        node.name
        for node in (*plan.masters, *(n for n in plan.etcd if not n.is_master))
        if node.name not in before.machines or node.name in replaced
    )
    if coming and minor:
        text = f"changes its minor version while {listed(coming)} would join; do one, then the"
        yield Refusal("leave-and-upgrade", subject, path, f"{text} other")


def _changed(before: Memory, plan: Plan) -> tuple[str, str, bool] | None:
    """Config path, version, and whether it is another minor one; None: both stay."""
    old, new = before.kubernetes, plan.versions.kubernetes
    if old != new:
        return "cluster.kubernetes", new, versions.minor(old) != versions.minor(new)
    etcd = before.plan.versions.etcd if before.plan else plan.versions.etcd
    if etcd != plan.versions.etcd:
        is_minor = versions.minor(etcd) != versions.minor(plan.versions.etcd)
        return "cluster.etcd", f"etcd-{plan.versions.etcd}", is_minor
    return None
