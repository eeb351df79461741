"""What an edit changes, node by node: the plan that was applied against the plan that is wanted.

Pure and complete: a node that is not named here is not touched. When it happens is waves.py's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stacks.cluster import artifacts, certificates
from stacks.cluster.plan import Node, Plan
from stacks.edits import membership, memory
from stacks.edits.memory import Memory
from stacks.explain import (
    arrivals,
    fence,
    firewall,
    front_doors,
    node_states,
    places,
    reasons,
    user_addons,
)
from stacks.explain import rotation as explain_rotation
from stacks.explain.actions import Action, Kind, NodeChange
from stacks.order.difference import LOGIN, Difference, Edit, edit, leafs
from stacks.phases import desired, system_addons
from stacks.phases.effects import (
    CERTIFICATES,
    CONTROL_PLANE,
    ETCD_CLIENT,
    LOAD_BALANCER_CERTIFICATES,
    OF_VALUE,
    OF_VERSION,
    OTHER_MINOR,
    Effect,
    Restart,
    beside_api_server,
    of_value,
)
from stacks.releases import versions

# What decides about a program, where it has another name in artifacts/lock.yaml.
_FILES = {"kubernetes": "kubelet", "cni_plugins": "cni-plugins"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    nodes: tuple[NodeChange, ...]  # new and changed ones as in the plan, then those that leave
    addons: tuple[tuple[str, str], ...]  # (name, what happens)
    keys: tuple[str, ...]  # what is done for a rotation once every master has made its step
    program: tuple[str, ...]  # what this version of the program does otherwise than the last
    put_off: tuple[tuple[str, str], ...]  # (absent node, what this edit would do on it)
    unchanged: int  # nodes that nothing happens to
    comparable: bool  # False: the memory does not hold the config, only who was there
    edit: Edit  # the steps that run

    def of(self, *kinds: Kind) -> tuple[NodeChange, ...]:
        return tuple(node for node in self.nodes if node.kind in kinds)


def changes(before: Memory | None, plan: Plan) -> Changes:
    """Everything that differs between the last success and the plan. None: all is new."""
    runs = edit(before, plan)
    there = places.parts(runs.differences)
    found = [
        kept for node in _nodes(before, plan, runs) if (kept := _done(node, there)) is not None
    ]
    then = before.plan if before else None
    touched = {node.name for node in found}
    return Changes(
        nodes=tuple(found),
        addons=_addons(before, plan, runs),
        keys=explain_rotation.finished(then, plan) if then else (),
        program=_program(before) if before else (),
        put_off=tuple(_put_off(before, plan)),
        unchanged=sum(node.name not in touched for node in plan.nodes),
        comparable=before is None or then is not None,
        edit=runs,
    )


def _nodes(before: Memory | None, plan: Plan, runs: Edit) -> Iterator[NodeChange]:
    """What can be said of each node."""
    if before is None:
        yield from (arrivals.new(plan, node, founding=True) for node in plan.nodes)
        yield from arrivals.only_stopped(None, plan)
        yield from arrivals.only_known(plan)
        return
    on_node: dict[str, list[Difference]] = {}
    for one in runs.differences:
        if one.mark != "-" and one.happens:
            on_node.setdefault(places.node(one.step), []).append(one)
    drifted = memory.other_values(before)
    for node in plan.nodes:
        if node.name not in before.machines:
            yield arrivals.new(plan, node, founding=False)
        elif node.generation > before.machines[node.name].generation:
            yield arrivals.rebuilt(plan, node)
        elif before.plan is not None:
            own = on_node.get(node.name, [])
            old = before.plan.node(node.name)
            if node.is_absent:
                actions = (*_reasons(own), *_marks(old, node))
            elif old.is_absent:
                machine = (one for one in own if one.step.kind == "machine")
                actions = (*_reasons(machine), *arrivals.back(plan, node), *_marks(old, node))
            else:
                actions = tuple(_of_existing(before.plan, plan, node, own, drifted))
            if actions:
                yield NodeChange(name=node.name, kind="changed", roles=node.roles, actions=actions)
    for node in plan.away:
        # Told as one that leaves only when it does so.
        if node.state == "decommissioned" and node.name not in before.machines:
            actions = tuple(_reasons(on_node.get(node.name, ())))
            if actions and membership.had_machine(before, node.name):
                yield NodeChange(name=node.name, kind="changed", roles=node.roles, actions=actions)
    yield from arrivals.leaving(before, plan)


def _put_off(before: Memory | None, plan: Plan) -> Iterator[tuple[str, str]]:
    """What an absent node misses by this edit alone; when it is back it is told everything."""
    if before is None or before.plan is None:
        return
    drifted = memory.other_values(before)
    for node in plan.absent:
        if node.name not in before.machines:
            continue
        missed = _of_existing(before.plan, plan, node, (), drifted)
        texts = [action.text for action in missed if action.phase != "nodes"]
        if texts:
            yield node.name, "; ".join(texts)


def _done(node: NodeChange, there: Collection[tuple[str, str]]) -> NodeChange | None:
    """The node with those actions that a step does; None without any."""
    own = tuple(
        action
        for action in node.actions
        if (action.phase, node.name) in there
        or (action.phase, "") in there
        or (node.kind == "leaving" and action.phase == "machine")
    )
    return replace(node, actions=own) if own else None


def _program(before: Memory) -> tuple[str, ...]:
    """What another version of this program makes of the same config."""
    out = []
    if scripts := memory.other_scripts(before):
        listed = ", ".join(sorted(scripts))
        out.append(f"other scripts for the phases {listed}: they run again, nothing restarts")
    for pool, names in sorted(memory.other_values(before).items()):
        listed = ", ".join(sorted(_what(name) for name in names))
        if names:
            where = f"on the machines of pool {pool}" if pool else "as add-ons"
            out.append(f"writes otherwise {where}: {listed}")
    return tuple(out)


def _what(drifted: str) -> str:
    phase, _, name = drifted.partition(" ")
    effect = OF_VALUE.get((phase, name))
    return effect.what if effect else drifted


def _of_existing(
    then: Plan,
    plan: Plan,
    node: Node,
    runs: Sequence[Difference],
    drifted: Mapping[str, Collection[str]],
) -> Iterator[Action]:
    old = then.node(node.name)
    found = [*_versions(then, plan, node), *_client(then, plan, node)]
    found += _values(then, old, plan, node, drifted.get(node.pool, ()))
    found += _certificates(then, old, plan, node)
    yield from found
    yield from _reasons(runs, {action.phase for action in found})
    yield from _etcd_leaves(old, node)
    yield from _marks(old, node)


def _reasons(runs: Iterable[Difference], said: Collection[str] = ()) -> Iterator[Action]:
    """Of steps that run for a reason of their own; `said`: phases of which more is told."""
    why: dict[str, str] = {}
    for one in runs:
        phase = places.phase(one.step)
        if phase not in said or LOGIN in one.by:
            why.setdefault(phase, reasons.of_node(one, phase))
    yield from (Action(phase=phase, text=text) for phase, text in why.items())


def _etcd_leaves(old: Node, node: Node) -> Iterator[Action]:
    """A master whose member moves to a machine of its own."""
    if old.is_etcd and not node.is_etcd:
        yield Action(phase="nodes", text="its etcd member is removed by the remaining nodes")
        yield Action(phase="etcd-absent", text="its etcd is stopped")


def _versions(then: Plan, plan: Plan, node: Node) -> Iterator[Action]:
    names = ["etcd"] if node.is_etcd else []
    if node.in_kubernetes:
        names = ["kubernetes", "containerd", "runc", "cni_plugins", *names]
    for name in names:
        was, now = getattr(then.versions, name), getattr(plan.versions, name)
        if was != now or artifacts.fetched_again(then, plan, node, _FILES.get(name, name)):
            effect = OF_VERSION[name]
            phase = "etcd-member" if name == "etcd" else "node"
            if name == "kubernetes" and node.is_master:
                effect, phase = CONTROL_PLANE, "master"
            elif name == "kubernetes" and versions.minor(was) != versions.minor(now):
                stays = plan.spec.rollout.drain.when == "never"
                effect = OF_VERSION[name] if stays else OTHER_MINOR
            effect = _on(then, node, effect)
            which, then_ = f"{was} -> {now}", effect.then
            if was == now:
                which, then_ = f"{now}, fetched again", then_.replace(" as the new version", "")
            text = f"{effect.what} {which}: {then_}"
            yield Action(phase=phase, text=text, restarts=effect.restarts)


def _on(then: Plan, node: Node, effect: Effect) -> Effect:
    """What it is on that node: nothing restarts that is not there."""
    there = {"etcd": node.is_etcd, "kube-apiserver": node.is_master}
    if effect.restarts and not there[effect.restarts]:
        return replace(effect, restarts=None)
    beside = node.is_master and len(then.masters) > 1
    return beside_api_server(effect) if beside else effect


def _client(then: Plan, plan: Plan, node: Node) -> Iterator[Action]:
    """A master whose etcd is elsewhere has etcd's client all the same."""
    was, now = then.versions.etcd, plan.versions.etcd
    if node.is_master and not node.is_etcd and was != now:
        yield Action(phase="node", text=f"{ETCD_CLIENT.what} {was} -> {now}: {ETCD_CLIENT.then}")


def _values(
    then: Plan, old: Node, plan: Plan, node: Node, drifted: Collection[str]
) -> Iterator[Action]:
    was, now = desired.of_phases(then, old), desired.of_phases(plan, node)
    for phase in now:
        if phase == "etcd-member" and phase not in was:
            yield Action(phase=phase, text="join etcd as a learner, then vote")
            continue
        if begun := front_doors.begun(phase, was.get(phase), now[phase], plan.vip):
            yield begun
            continue
        if phase == "vip" and was[phase].get("RESTING") != now[phase].get("RESTING"):
            yield front_doors.rests(plan.vip, now="RESTING" in now[phase])
        said: dict[str, list[str]] = {}
        restarts: dict[str, Restart | None] = {}
        for name, text in now[phase].items():
            before = was.get(phase, {}).get(name)
            if before == text and f"{phase} {name}" not in drifted:
                continue
            if name in ("KUBERNETES", "RESTING"):  # told already
                continue
            reboots = plan.spec.os.reboot != "never"
            effect = _on(then, node, of_value(phase, name, before, text, reboots=reboots))
            said.setdefault(effect.then, []).append(effect.what)
            restarts[effect.then] = restarts.get(effect.then) or effect.restarts
        for effect_text, things in said.items():
            listed = " and ".join(dict.fromkeys(things))
            yield Action(
                phase=phase, text=f"{listed}: {effect_text}", restarts=restarts[effect_text]
            )
    yield from front_doors.ended(was, now)
    yield from firewall.ended(was, now)


def _certificates(then: Plan, old: Node, plan: Plan, node: Node) -> Iterator[Action]:
    was = {leaf.name: text for leaf, text in leafs(then, certificates.of_node(then, old))}
    now = {leaf.name: text for leaf, text in leafs(plan, certificates.of_node(plan, node))}
    if renewed := [name for name in now if name in was and was[name] != now[name]]:
        listed = ", ".join(name.removeprefix(f"{node.name}-") for name in renewed)
        effect = LOAD_BALANCER_CERTIFICATES if node.is_load_balancer else CERTIFICATES
        text = f"new {effect.what} {listed}: {effect.then}"
        yield Action(phase="pki", text=text)


def _marks(old: Node, node: Node) -> Iterator[Action]:
    """Labels and taints, which the list of nodes sets from a master."""
    was = [f"label {key}={value}" for key, value in old.labels]
    was += [f"taint {taint.key}={taint.value}:{taint.effect}" for taint in old.taints]
    now = [f"label {key}={value}" for key, value in node.labels]
    now += [f"taint {taint.key}={taint.value}:{taint.effect}" for taint in node.taints]
    words = [f"+ {word}" for word in now if word not in was]
    words += node_states.words(old, node)
    words += [f"- {word}" for word in was if word not in now]
    if words:
        yield Action(phase="nodes", text=", ".join(words))


_PODS = "its manifest changes: pods are replaced a few at a time"
_NO_PODS = "its objects change, nothing restarts"
# Of those that are not pods.
_OBJECTS = {
    "admin-generation": "only the output kubeconfig of this generation may do everything: take it "
    "again; nothing restarts",
    "admission-policies": "what kubelets and the pod network may write, nothing restarts",
    "lost-nodes": "what given up nodes write is refused as before, nothing restarts",
    "serving-certificates": "kubelets get certificates for these addresses, nothing restarts",
}


_ROOM = "its roll-out does without absent nodes, or again with them; no pod is replaced"


def _without_room(manifest: str) -> str:
    """But for how many pods may be missing while it rolls."""
    return re.sub(r"maxUnavailable: \S+", "", manifest)


def _objects(name: str, manifest: str) -> str:
    return _OBJECTS.get(name) or (_PODS if "\n      containers:" in manifest else _NO_PODS)


def _addons(before: Memory | None, plan: Plan, runs: Edit) -> tuple[tuple[str, str], ...]:
    if before is None:
        made = tuple((name, "is made") for name in sorted(system_addons.addons(plan)))
        return made + user_addons.made(plan)
    if before.plan is None:
        return ()
    cluster = plan.spec.cluster.name
    running = {
        one.step.name.removeprefix(f"{cluster}-addon-"): one
        for one in runs.differences
        if one.step.phase in ("addon", "manifests")
    }
    out = []
    was = system_addons.addons(before.plan)
    drifted = memory.other_values(before).get("", frozenset())
    for name, manifest in sorted(system_addons.addons(plan).items()):
        if name in running and (was.get(name) != manifest or name in drifted):
            told = [*fence.words(before.plan, plan)] if name == "lost-nodes" else []
            text = "; ".join([*told, "nothing restarts"]) if told else _objects(name, manifest)
            if name in was and _without_room(was[name]) == _without_room(manifest):
                text = _ROOM if name not in drifted else text
            out.append((name, text))
        elif name in running:
            out.append((name, reasons.of_cluster(running[name])))
    return (*out, *user_addons.changed(before.plan, plan, again=running))
