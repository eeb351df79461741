"""What an edit changes, node by node: the plan that was applied against the plan that is wanted.

Pure and complete: a node that is not named here is not touched. When it happens is waves.py's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from stacks import certificates, desired, membership, memory
from stacks.effects import CERTIFICATES, CONNECTION, KUBELET_PART, OF_VALUE, OF_VERSION, Restart
from stacks.memory import Memory
from stacks.plan import Node, Plan

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    nodes: tuple[NodeChange, ...]  # new and changed ones as in the plan, then those that leave
    addons: tuple[tuple[str, str], ...]  # (name, what happens)
    program: tuple[str, ...]  # what this version of the program does otherwise than the last
    unchanged: int  # nodes that nothing happens to
    comparable: bool  # False: the memory does not hold the config, only who was there

    def of(self, *kinds: Kind) -> tuple[NodeChange, ...]:
        return tuple(node for node in self.nodes if node.kind in kinds)


def changes(before: Memory | None, plan: Plan) -> Changes:
    """Everything that differs between the last success and the plan. None: all is new."""
    if before is None:
        new = tuple(_new(plan, node, founding=True) for node in plan.nodes)
        addons = tuple((name, "is made") for name in sorted(desired.addons(plan)))
        return Changes(nodes=new, addons=addons, program=(), unchanged=0, comparable=True)
    drift = _Drift.of(before)
    found: list[NodeChange] = []
    for node in plan.nodes:
        if node.name not in before.machines:
            found.append(_new(plan, node, founding=False))
        elif node.generation > before.machines[node.name].generation:
            found.append(_rebuilt(plan, node))
        elif before.plan is not None:
            actions = tuple(_of_existing(before.plan, plan, node, drift))
            if actions:
                found.append(_changed(node, actions))
    found += _leaving(before, plan)
    touched = sum(node.kind != "leaving" for node in found)
    return Changes(
        nodes=tuple(found),
        addons=_addons(before, plan, drift),
        program=drift.words(),
        unchanged=len(plan.nodes) - touched,
        comparable=before.plan is not None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drift:
    """What another version of this program makes of the same config."""

    scripts: frozenset[str]  # phases whose script is another one
    values: Mapping[str, frozenset[str]]  # by pool, or "": "phase NAME" that is rendered otherwise

    @staticmethod
    def of(before: Memory) -> _Drift:
        now = memory.scripts()
        scripts = {phase for phase, total in before.scripts.items() if now.get(phase) != total}
        again = memory.rendered(before.plan) if before.plan else {}
        values = {
            pool: frozenset(name for name, total in sums.items() if again[pool].get(name) != total)
            for pool, sums in before.rendered.items()
            if pool in again
        }
        return _Drift(scripts=frozenset(scripts), values=values)

    def words(self) -> tuple[str, ...]:
        out = []
        if self.scripts:
            listed = ", ".join(sorted(self.scripts))
            out.append(f"other scripts for the phases {listed}: they run again, nothing restarts")
        for pool, names in sorted(self.values.items()):
            listed = ", ".join(sorted(_what(name) for name in names))
            if names:
                where = f"on the machines of pool {pool}" if pool else "as add-ons"
                out.append(f"writes otherwise {where}: {listed}")
        return tuple(out)


def _what(drifted: str) -> str:
    phase, _, name = drifted.partition(" ")
    effect = OF_VALUE.get((phase, name))
    return effect.what if effect else drifted


def _changed(node: Node, actions: tuple[Action, ...]) -> NodeChange:
    return NodeChange(name=node.name, kind="changed", roles=node.roles, actions=actions)


def _new(plan: Plan, node: Node, *, founding: bool) -> NodeChange:
    machine = "adopt the machine" if node.ssh else "make the machine"
    actions = [Action(phase="machine", text=machine)]
    ready = "preflight, then packages, kernel settings"
    if node.in_kubernetes:
        ready += ", HAProxy, containerd, kubelet"
    actions.append(Action(phase="node", text=ready))
    if node.is_etcd:
        founds = founding and node.name == plan.etcd[0].name
        join = "found the etcd cluster" if founds else "join etcd as a learner, then vote"
        actions.append(Action(phase="etcd-member", text=join))
    if node.is_master:
        text = "become a master: apiserver, controller manager, scheduler"
        actions.append(Action(phase="master", text=text))
    elif node.in_kubernetes:
        actions.append(Action(phase="join", text="join as a worker"))
    return NodeChange(name=node.name, kind="new", roles=node.roles, actions=tuple(actions))


def _rebuilt(plan: Plan, node: Node) -> NodeChange:
    """A node that is made anew under its name: like a new one, after the old one is out."""
    first = Action(phase="first", text=f"{_OUT} (evicted before, if it still answers)")
    machine = "wipe the machine and adopt it again" if node.ssh else "make a new machine"
    actions = _new(plan, node, founding=False).actions[1:]
    return NodeChange(
        name=node.name,
        kind="rebuilt",
        roles=node.roles,
        actions=(first, Action(phase="machine", text=machine), *actions),
    )


def _leaving(before: Memory, plan: Plan) -> Iterator[NodeChange]:
    """Nodes that leave, and machines that were away and are now forgotten or given back."""
    stay = {node.name for node in plan.nodes}
    away = {node.name: node for node in plan.away}
    known: dict[str, tuple[str, ...]] = {
        name: node.roles for name, node in away.items() if node.state == "lost"
    }
    known |= {name: machine.roles for name, machine in before.machines.items()}
    for name, roles in sorted(known.items()):
        if name in stay:
            continue
        if name not in away:
            yield _leaves(name, roles, _release(plan))
        elif away[name].state == "decommissioned":
            text = "stop everything of ours; machine and disks stay"
            yield _leaves(name, roles, Action(phase="decommission", text=text))
        elif name in membership.going_first(before, plan):
            release = "delete the machine" if plan.in_lab else "forget the machine, no SSH is tried"
            actions = (Action(phase="first", text=_OUT), Action(phase="machine", text=release))
            yield NodeChange(name=name, kind="leaving", roles=roles, actions=actions)
    for name, machine in sorted(before.away.items()):
        if name not in stay and name not in away and not membership.was_lost(before, name):
            yield NodeChange(
                name=name, kind="leaving", roles=machine.roles, actions=(_release(plan),)
            )


_OUT = "its etcd member and its Node are removed by those that stay"


def _release(plan: Plan) -> Action:
    text = "delete the machine" if plan.in_lab else "wipe what is ours; the machine stays"
    return Action(phase="machine", text=text)


def _leaves(name: str, roles: tuple[str, ...], last: Action) -> NodeChange:
    in_kubernetes = "master" in roles or "worker" in roles
    actions = []
    if in_kubernetes:
        text = "evict its pods (PodDisruptionBudgets are respected)"
        actions.append(Action(phase="nodes", text=text))
    if "etcd" in roles:
        text = "leave etcd: removed by those that stay, once they have a quorum without it"
        actions.append(Action(phase="nodes", text=text))
    if in_kubernetes:
        actions.append(Action(phase="nodes", text="delete its Node"))
    return NodeChange(name=name, kind="leaving", roles=roles, actions=(*actions, last))


def _of_existing(then: Plan, plan: Plan, node: Node, drift: _Drift) -> Iterator[Action]:
    old = then.node(node.name)
    if old.ssh != node.ssh:
        yield Action(phase="node", text=f"{CONNECTION.what}: {CONNECTION.then}")
    yield from _versions(then, plan, node)
    yield from _values(then, old, plan, node, drift)
    yield from _certificates(then, old, plan, node)
    if old.is_etcd and not node.is_etcd:
        yield Action(phase="nodes", text="its etcd member is removed, then its etcd is stopped")
    yield from _marks(old, node)


def _versions(then: Plan, plan: Plan, node: Node) -> Iterator[Action]:
    names = ["etcd"] if node.is_etcd else []
    if node.in_kubernetes:
        names = ["kubernetes", "containerd", "runc", "cni_plugins", *names]
    for name in names:
        was, now = getattr(then.versions, name), getattr(plan.versions, name)
        if was != now:
            effect = OF_VERSION[name]
            text = f"{effect.what} {was} -> {now}: {effect.then}"
            phase = "etcd-member" if name == "etcd" else "node"
            yield Action(phase=phase, text=text, restarts=effect.restarts)


def _values(then: Plan, old: Node, plan: Plan, node: Node, drift: _Drift) -> Iterator[Action]:
    was, now = desired.of_phases(then, old), desired.of_phases(plan, node)
    drifted = drift.values.get(node.pool, frozenset())
    for phase in now:
        if phase == "etcd-member" and phase not in was:
            yield Action(phase=phase, text="join etcd as a learner, then vote")
            continue
        said: dict[str, list[str]] = {}
        restarts: dict[str, Restart | None] = {}
        for name, text in now[phase].items():
            before = was.get(phase, {}).get(name)
            if before == text and f"{phase} {name}" not in drifted:
                continue
            effect = OF_VALUE[phase, name]
            if (
                name == "KUBEADM_CONFIG"
                and before
                and _control_plane(before) == _control_plane(text)
            ):
                effect = KUBELET_PART
            said.setdefault(effect.then, []).append(effect.what)
            restarts[effect.then] = restarts.get(effect.then) or effect.restarts
        for effect_text, things in said.items():
            listed = " and ".join(dict.fromkeys(things))
            yield Action(
                phase=phase, text=f"{listed}: {effect_text}", restarts=restarts[effect_text]
            )
        if not said and phase in drift.scripts:
            yield Action(phase=phase, text=f"phase {phase} runs again, nothing restarts")


def _control_plane(kubeadm: str) -> str:
    return kubeadm.partition("apiVersion: kubelet.config")[0]


def _certificates(then: Plan, old: Node, plan: Plan, node: Node) -> Iterator[Action]:
    was = {leaf.name: leaf for leaf in certificates.of_node(then, old)}
    now = {leaf.name: leaf for leaf in certificates.of_node(plan, node)}
    if then.spec.pki.leaf_validity_hours != plan.spec.pki.leaf_validity_hours:
        renewed = list(now)
    else:
        renewed = [name for name, leaf in now.items() if was.get(name) != leaf]
    if renewed:
        listed = ", ".join(name.removeprefix(f"{node.name}-") for name in renewed)
        text = f"new {CERTIFICATES.what} {listed}: {CERTIFICATES.then}"
        yield Action(phase="pki", text=text)


def _marks(old: Node, node: Node) -> Iterator[Action]:
    """Labels and taints, which the list of nodes sets from a master."""
    was = [f"label {key}={value}" for key, value in old.labels]
    was += [f"taint {taint.key}={taint.value}:{taint.effect}" for taint in old.taints]
    now = [f"label {key}={value}" for key, value in node.labels]
    now += [f"taint {taint.key}={taint.value}:{taint.effect}" for taint in node.taints]
    words = [f"+ {word}" for word in now if word not in was]
    if old.state != node.state:
        cordoned = "cordon for maintenance, its pods stay"
        words.append(cordoned if node.state == "maintenance" else "uncordon, maintenance is over")
    words += [f"- {word}" for word in was if word not in now]
    if words:
        yield Action(phase="nodes", text=", ".join(words))


def _addons(before: Memory, plan: Plan, drift: _Drift) -> tuple[tuple[str, str], ...]:
    now = desired.addons(plan)
    was = desired.addons(before.plan) if before.plan else now
    drifted = drift.values.get("", frozenset())
    again = plan.spec.converge != (before.plan or plan).spec.converge
    out = []
    for name in sorted(now):
        if was.get(name) != now[name] or name in drifted:
            out.append((name, "its manifest changes: pods are replaced a few at a time"))
        elif again or "addon" in drift.scripts:
            out.append((name, "is applied again, nothing restarts"))
    return tuple(out)
