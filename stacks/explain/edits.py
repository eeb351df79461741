"""What an edit is, in a line or a few: verb, versions, nodes, and settings by their config path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields

from stacks.cluster import outside
from stacks.cluster.names import spoken
from stacks.cluster.plan import Node, Plan
from stacks.edits import membership
from stacks.edits.memory import Memory
from stacks.explain import formats, node_states, rotation, settings
from stacks.explain.changes import Changes
from stacks.releases import versions
from stacks.releases.versions import Versions

_NAMES = {"kubernetes": "Kubernetes", "cni_plugins": "CNI plugins"}
_SHOWN = ("etcd", "containerd")  # beside Kubernetes, whose version brings the others


def edits(before: Memory | None, plan: Plan, found: Changes) -> tuple[str, ...]:
    """Each thing that the user has changed, the weightiest first."""
    if before is None:
        name, version = plan.spec.cluster.name, plan.versions.kubernetes
        return (f"Create cluster {name}: Kubernetes {version}, {formats.size(plan)}",)
    members = (*_members(before, plan, found),)
    if before.plan is None:
        was, now = before.kubernetes, plan.versions.kubernetes
        changed = () if was == now else (_step("Kubernetes", was, now),)
        return (*changed, *members, "Apply the config, of which the one last applied is not known")
    then = before.plan
    out = (
        *_versions(then.versions, plan.versions),
        *members,
        *_states(then, plan),
        *_marks(then, plan),
        *_rotations(then, plan),
        *_addons(then, plan),
        *_files(then, plan),
        *_words(then, plan),
        *settings.changed(then.spec, plan.spec),
    )
    if not out and found.program:
        return ("Apply what this version of the program does differently",)
    if not out and (found.nodes or found.addons):
        return ("Apply changed files that the config names",)
    return out


def _files(then: Plan, plan: Plan) -> Iterator[str]:
    """Files of the same name in which something else is, and secrets that are none."""
    known = dict(then.outside)
    for name, total in plan.outside:
        if known.get(name, total) == total:
            continue
        if name == outside.SECRET_NAME:
            yield "Change the secret of the object store's key"
        elif value := outside.value_of(name):
            yield f"Change value {value} of addonSecrets"
        else:
            yield f"Change the content of {name}"


def _step(what: str, was: str, now: str) -> str:
    verb = "Upgrade" if versions.number(was) < versions.number(now) else "Downgrade"
    return f"{verb} {what} {was} -> {now}"


def _versions(was: Versions, now: Versions) -> Iterator[str]:
    """Kubernetes with what it brings, else each by itself."""
    moved = {
        item.name: (getattr(was, item.name), getattr(now, item.name))
        for item in fields(Versions)
        if getattr(was, item.name) not in (getattr(now, item.name), "unknown")
    }
    if "kubernetes" in moved:
        beside = [
            f"{name} {moved[name][0]} -> {moved[name][1]}" for name in _SHOWN if name in moved
        ]
        step = _step("Kubernetes", *moved["kubernetes"])
        yield f"{step} ({', '.join(beside)})" if beside else step
        return
    for name, (old, new) in moved.items():
        what = _NAMES.get(name, name)
        try:
            yield _step(what, old, new)
        except ValueError:  # of an image it may be a tag that is not a number
            yield f"Change {what} {old} -> {new}"


def _members(before: Memory, plan: Plan, found: Changes) -> Iterator[str]:
    away = {node.name: node for node in plan.away}
    lost = [
        node for node in found.of("leaving") if node.name in membership.going_first(before, plan)
    ]
    new = list(found.of("new"))
    for node in lost:
        heir = next((one for one in new if one.roles == node.roles), None)
        state = away[node.name].state
        if heir is None:
            yield f"Remove {state} {node.name}"
        else:
            new.remove(heir)
            yield f"Replace {state} {node.name} with {heir.name}"
    yield from _counted("Add", [(_role(node.roles), node.name) for node in new])
    yield from _counted("Replace", [(_role(n.roles), n.name) for n in found.of("rebuilt")])
    others = [node for node in found.of("leaving") if node not in lost]
    stopped = [node for node in others if node.name in away and not away[node.name].is_given_up]
    released = [n for n in others if n not in stopped and n.name not in before.machines]
    removed = [node for node in others if node not in stopped and node not in released]
    yield from _counted("Decommission", [(_role(n.roles), n.name) for n in stopped])
    yield from _counted("Remove", [(_role(node.roles), node.name) for node in removed])
    yield from _counted("Release", [(_role(node.roles), node.name) for node in released])


def _counted(verb: str, nodes: Sequence[tuple[str, str]]) -> Iterator[str]:
    """`Add 1 worker (worker-3)`, `Add 3 workers (worker-3 to worker-5)`."""
    for role, number in Counter(role for role, _ in nodes).items():
        names = spoken(name for of, name in nodes if of == role)
        yield f"{verb} {number} {role}{'' if number == 1 else 's'} ({names})"


def _role(roles: Sequence[str]) -> str:
    for role, name in (("master", "master"), ("worker", "worker"), ("etcd", "etcd member")):
        if role in roles:
            return name
    return "load balancer"


def _states(then: Plan, plan: Plan) -> Iterator[str]:
    was = {node.name: node for node in then.nodes}
    stay = [(was[node.name], node) for node in plan.nodes if node.name in was]
    moved = [now.name for old, now in stay if old.roles != now.roles]
    if moved:
        yield f"Change roles of {spoken(moved)}"
    for state, what in (("maintenance", "maintenance"), ("absent", "absence")):
        begins = [now.name for old, now in stay if old.state != now.state == state]
        if begins:
            yield f"Begin {what} of {spoken(begins)}"
        ends = [now.name for old, now in stay if now.state != old.state == state]
        if ends:
            yield f"End {what} of {spoken(ends)}"
    pods = [now.name for old, now in stay if node_states.stay_in_maintenance(old, now)]
    if pods:
        yield f"Change maintenance of {spoken(pods)}"
    out = [now.name for old, now in stay if now.is_silent and not old.is_silent]
    if out:
        yield f"Leave {spoken(out)} out, which does not answer"
    again = [now.name for old, now in stay if old.is_silent and not now.is_absent]
    if again:
        yield f"Bring {spoken(again)} to what was missed"


def _marks(then: Plan, plan: Plan) -> Iterator[str]:
    was = {node.name: node for node in then.nodes}
    stay = [(was[node.name], node) for node in plan.nodes if node.name in was]
    for what, changed in (
        ("pool", [now.name for old, now in stay if old.pool != now.pool]),
        ("zone", [now.name for old, now in stay if old.zone != now.zone]),
        ("labels", [n.name for old, n in stay if old.labels != n.labels and old.zone == n.zone]),
        ("taints", [now.name for old, now in stay if old.taints != now.taints]),
        ("SSH access", [n.name for old, n in stay if _is_reached_otherwise(then, plan, old, n)]),
    ):
        if changed:
            yield f"Change {what} of {spoken(changed)}"


def _is_reached_otherwise(then: Plan, plan: Plan, old: Node, now: Node) -> bool:
    """By settings of its own; those of all machines are told as settings."""
    return old.ssh != now.ssh and then.spec.machines.ssh == plan.spec.machines.ssh


def _rotations(then: Plan, plan: Plan) -> Iterator[str]:
    for subject, _, now in rotation.moved(then, plan):
        yield f"Rotate {rotation.NAMES[subject]}: generation {now.generation}, step {now.step}"


def _words(then: Plan, plan: Plan) -> Iterator[str]:
    """Values that stand for something to do."""
    was, packages = then.spec.os.packages, plan.spec.os.packages
    if packages and packages != was:
        yield f"Update packages of the operating system ({packages})"
    elif packages != was:
        yield "Update packages of the operating system no more"
    if then.spec.converge != plan.spec.converge:
        yield f"Run every phase again (converge.generation {plan.spec.converge.generation})"


def _addons(then: Plan, plan: Plan) -> Iterator[str]:
    was, now = ({one.name: one for one in of.addons} for of in (then, plan))
    said = then.spec.addons, plan.spec.addons

    def other(name: str) -> bool:
        old, new = (
            (of[name].secrets, of[name].reconcile) if name in of else ({}, False) for of in said
        )
        return was[name] != now[name] or old != new

    for verb, names in (
        ("Add", sorted(now.keys() - was.keys())),
        ("Change", sorted(name for name in was.keys() & now.keys() if other(name))),
        ("Remove", sorted(was.keys() - now.keys())),
    ):
        if names:
            yield f"{verb} add-on{'s' if len(names) > 1 else ''} {', '.join(names)}"
