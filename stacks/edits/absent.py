"""Absent nodes in an edit: what cannot be done, or not taken back, while one is unavailable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stacks.checks.refusals import Refusal
from stacks.cluster import artifacts, rotation
from stacks.cluster.plan import Node, Plan
from stacks.cluster.rotation import PATHS
from stacks.config.pki import Subject
from stacks.config.problems import Problem
from stacks.edits import quorum
from stacks.edits.memory import Memory
from stacks.phases import desired, effects
from stacks.phases.effects import Restart
from stacks.releases import versions

# Who else than masters and etcd members holds something of it.
_HELD_BY_ALL: tuple[Subject, ...] = ("kubernetes",)
_BACK = "bring it back first (take nodes.{0}.state out), or say that it is lost"


def of_new(before: Memory | None, plan: Plan) -> Iterator[Refusal]:
    """Only who was a member can be absent from it."""
    known = before.machines if before else {}
    for node in plan.absent:
        if node.name not in known:
            text = (
                f"{node.name} has not joined the cluster yet, so it cannot be absent; leave it out "
                "until its machine is there"
            )
            yield Refusal("absent", node.name, _path(node), text)


def refusals(before: Memory, plan: Plan) -> list[Refusal]:
    """What is dangerous, or impossible, while nodes of the cluster are absent."""
    out = [*of_new(before, plan), *_unknown_to_it(before, plan)]
    if plan.absent:
        out += [*_quorum(before, plan), *_api_servers(before, plan)]
        out += [*_rotations(before, plan), *_versions(before, plan)]
    return [*out, *_leaving(before, plan)]


def warnings_of(plan: Plan) -> tuple[Problem, ...]:
    """Who is absent by the config: it is seldom meant for long."""
    return tuple(
        Problem(
            _path(node),
            f"{node.name} is absent: no SSH is tried, and what changes for it is put off until its "
            "line is taken out" + (_COUNTED if node.is_etcd else ""),
        )
        for node in plan.absent
        if node.state == "absent"
    )


_COUNTED = "; its etcd member counts as down"


def _path(node: Node) -> str:
    return f"nodes.{node.name}.state"


def _unknown_to_it(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """Another incarnation, or another role, is made on the machine itself."""
    for node in plan.absent:
        old = before.machines.get(node.name)
        if old is None:
            continue
        if node.generation > old.generation:
            text = f"{node.name} is absent and would be recreated; take nodes.{node.name}.state out"
            path = f"nodes.{node.name}.generation"
            yield Refusal("absent", node.name, path, f"{text}, the others remove the old one")
        elif old.roles != node.roles:
            text = f"{node.name} would change its roles while it is absent"
            yield Refusal("absent", node.name, _path(node), f"{text}; {_BACK.format(node.name)}")


def _leaving(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """Who is to leave in order has to be there; a dead one is lost."""
    stay = {node.name for node in plan.nodes}
    given_up = {node.name for node in plan.away if node.is_given_up}
    for node in before.plan.absent if before.plan else ():
        if node.state == "absent" and node.name not in stay | given_up:
            text = (
                f"{node.name} was absent and would leave, which is done on its machine; say "
                f"nodes.{node.name}.state: lost where it is dead, or active and run up first"
            )
            yield Refusal("absent", node.name, _path(node), text)


def _quorum(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """Absent members leave a quorum, also while one of the others restarts."""
    there = [node for node in plan.etcd if not node.is_absent]
    away = [node for node in plan.etcd if node.is_absent]
    needed = quorum.quorum(len(plan.etcd))
    if not away:
        return
    names = ", ".join(node.name for node in away)
    if len(there) < needed:
        text = (
            f"with {names} absent {len(there)} of {len(plan.etcd)} etcd members are up, and "
            f"{needed} are needed; bring one back, or say that those are lost that are dead"
        )
        yield Refusal("quorum", away[0].name, _path(away[0]), text)
    elif len(there) - 1 < needed and (restarted := _restarted(before, plan, there, "etcd")):
        text = (
            f"this edit restarts etcd on {restarted[0]}, and with {names} absent too etcd would "
            f"have no quorum meanwhile ({len(there) - 1} of {len(plan.etcd)} up, {needed} needed)"
        )
        yield Refusal("quorum", away[0].name, _path(away[0]), f"{text}; {_BACK.format(names)}")


def _api_servers(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """The last one that is there restarts for nobody: clients of several masters expect another."""
    away = [node for node in plan.masters if node.is_absent]
    there = [node for node in plan.masters if not node.is_absent]
    if (
        away
        and len(there) == 1
        and (restarted := _restarted(before, plan, there, "kube-apiserver"))
    ):
        names = ", ".join(node.name for node in away)
        text = (
            f"this edit restarts the API server on {restarted[0]}, and with {names} absent no "
            "other one would answer meanwhile"
        )
        yield Refusal("absent", away[0].name, _path(away[0]), f"{text}; {_BACK.format(names)}")


def _restarted(before: Memory, plan: Plan, there: Sequence[Node], program: Restart) -> list[str]:
    """Nodes whose etcd or API server restarts in this edit."""
    then = before.plan
    if then is None:
        return []
    known = {node.name: node for node in then.nodes}
    version, file = ("etcd", "etcd") if program == "etcd" else ("kubernetes", "kubelet")
    every = getattr(then.versions, version) != getattr(plan.versions, version)
    return [
        node.name
        for node in there
        if node.name in known
        and (
            every
            or artifacts.fetched_again(then, plan, node, file)
            or _restarts(program, then, known[node.name], plan, node)
        )
    ]


def _restarts(program: Restart, then: Plan, old: Node, plan: Plan, node: Node) -> bool:
    reboots = plan.spec.os.reboot != "never"
    was = desired.of_phases(then, old)
    return any(
        (before := was[phase].get(name)) != text
        and effects.of_value(phase, name, before, text, reboots=reboots).restarts == program
        for phase, now in desired.of_phases(plan, node).items()
        if phase in was
        for name, text in now.items()
    )


def _rotations(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """Whoever misses a step refuses the others, or is refused by them."""
    then = rotation.of(before.plan.spec) if before.plan else {}
    for subject, now in rotation.of(plan.spec).items():
        holders = [n for n in plan.absent if subject in _HELD_BY_ALL or n.is_etcd or n.is_master]
        if holders and subject in then and then[subject] != now:
            name = holders[0].name
            text = f"{name} is absent, and would miss this step; {_BACK.format(name)}"
            yield Refusal("rotation", subject, PATHS[subject], text)


def _versions(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """A control plane of one minor version; kubelets that can be brought on in one step."""
    new, path = plan.versions.kubernetes, "cluster.kubernetes"
    other_minor = versions.minor(before.kubernetes) != versions.minor(new)
    then = before.plan.versions.etcd if before.plan else plan.versions.etcd
    for node in plan.absent:
        old = before.absent.get(node.name, before.kubernetes)
        behind = versions.minor(new)[1] - versions.minor(old)[1]
        way = _BACK.format(node.name)
        if node.is_master and other_minor:
            text = f"changes its minor version while {node.name}, a master, is absent; {way}"
            yield Refusal("absent", node.name, path, text)
        elif node.in_kubernetes and other_minor and behind > 1:
            text = f"would be {behind} minor versions ahead of absent {node.name} ({old}); {way}"
            yield Refusal("absent", node.name, path, text)
        if node.is_etcd and versions.minor(then) != versions.minor(plan.versions.etcd):
            text = f"changes its minor version while {node.name}, a member, is absent; {way}"
            yield Refusal("absent", node.name, "cluster.etcd", text)
