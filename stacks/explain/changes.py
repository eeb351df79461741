"""What an edit changes, node by node: the plan that was applied against the plan that is wanted.

Pure and complete: a node that is not named here is not touched. When it happens is waves.py's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stacks.cluster.plan import Node, Plan
from stacks.edits import memory
from stacks.edits.memory import Memory
from stacks.explain import again, arrivals, fence, front_doors, user_addons
from stacks.explain import rotation as explain_rotation
from stacks.explain.actions import Action, Kind, NodeChange
from stacks.phases import desired, system_addons
from stacks.phases.effects import (
    CERTIFICATES,
    CONTROL_PLANE,
    ETCD_CLIENT,
    KUBELET_PART,
    LOAD_BALANCER_CERTIFICATES,
    OF_VALUE,
    OF_VERSION,
    OS_LEFT,
    OTHER_MINOR,
    Restart,
)
from stacks.releases import versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    nodes: tuple[NodeChange, ...]  # new and changed ones as in the plan, then those that leave
    addons: tuple[tuple[str, str], ...]  # (name, what happens)
    keys: tuple[str, ...]  # what is done for a rotation once every master has made its step
    program: tuple[str, ...]  # what this version of the program does otherwise than the last
    unchanged: int  # nodes that nothing happens to
    comparable: bool  # False: the memory does not hold the config, only who was there

    def of(self, *kinds: Kind) -> tuple[NodeChange, ...]:
        return tuple(node for node in self.nodes if node.kind in kinds)


def changes(before: Memory | None, plan: Plan) -> Changes:
    """Everything that differs between the last success and the plan. None: all is new."""
    if before is None:
        new = tuple(arrivals.new(plan, node, founding=True) for node in plan.nodes)
        addons = tuple((name, "is made") for name in sorted(system_addons.addons(plan)))
        addons += user_addons.made(plan)
        return Changes(nodes=new, addons=addons, keys=(), program=(), unchanged=0, comparable=True)
    drift = _Drift.of(before)
    found: list[NodeChange] = []
    for node in plan.nodes:
        if node.name not in before.machines:
            found.append(arrivals.new(plan, node, founding=False))
        elif node.generation > before.machines[node.name].generation:
            found.append(arrivals.rebuilt(plan, node))
        elif before.plan is not None:
            actions = tuple(_of_existing(before.plan, plan, node, drift))
            if actions:
                found.append(_changed(node, actions))
    found += arrivals.leaving(before, plan)
    touched = sum(node.kind != "leaving" for node in found)
    return Changes(
        nodes=tuple(found),
        addons=_addons(before, plan, drift),
        keys=explain_rotation.finished(before.plan, plan) if before.plan else (),
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


def _of_existing(then: Plan, plan: Plan, node: Node, drift: _Drift) -> Iterator[Action]:
    old = then.node(node.name)
    found = [*_versions(then, plan, node), *_client(then, plan, node)]
    found += _values(then, old, plan, node, drift)
    found += _certificates(then, old, plan, node)
    said = {action.phase for action in found}
    for phase, text in again.of_node(then, old, plan, node).items():
        if phase not in said or again.other_login(then, old, plan, node):
            found.append(Action(phase=phase, text=text))
            said.add(phase)
    follows = again.follows(then, old, plan, node, said)
    yield from (*found, *(Action(phase=phase, text=again.text()) for phase in follows))
    if plan.in_lab and then.spec.converge != plan.spec.converge:
        yield Action(phase="machine", text="is made again where it has vanished")
    yield from _etcd_leaves(old, node)
    yield from _marks(old, node)


def _etcd_leaves(old: Node, node: Node) -> Iterator[Action]:
    """A master whose member moves to a machine of its own."""
    if old.is_etcd and not node.is_etcd:
        yield Action(phase="nodes", text="its etcd member is removed by those that stay")
        yield Action(phase="etcd-absent", text="its etcd is stopped")


def _versions(then: Plan, plan: Plan, node: Node) -> Iterator[Action]:
    names = ["etcd"] if node.is_etcd else []
    if node.in_kubernetes:
        names = ["kubernetes", "containerd", "runc", "cni_plugins", *names]
    for name in names:
        was, now = getattr(then.versions, name), getattr(plan.versions, name)
        if was != now:
            effect = OF_VERSION[name]
            phase = "etcd-member" if name == "etcd" else "node"
            if name == "kubernetes" and node.is_master:
                effect, phase = CONTROL_PLANE, "master"
            elif name == "kubernetes" and versions.minor(was) != versions.minor(now):
                stays = plan.spec.rollout.drain.when == "never"
                effect = OF_VERSION[name] if stays else OTHER_MINOR
            text = f"{effect.what} {was} -> {now}: {effect.then}"
            yield Action(phase=phase, text=text, restarts=effect.restarts)


def _client(then: Plan, plan: Plan, node: Node) -> Iterator[Action]:
    """A master whose etcd is elsewhere has etcd's client all the same."""
    was, now = then.versions.etcd, plan.versions.etcd
    if node.is_master and not node.is_etcd and was != now:
        yield Action(phase="node", text=f"{ETCD_CLIENT.what} {was} -> {now}: {ETCD_CLIENT.then}")


def _values(then: Plan, old: Node, plan: Plan, node: Node, drift: _Drift) -> Iterator[Action]:
    was, now = desired.of_phases(then, old), desired.of_phases(plan, node)
    drifted = drift.values.get(node.pool, frozenset())
    for phase in now:
        if phase == "etcd-member" and phase not in was:
            yield Action(phase=phase, text="join etcd as a learner, then vote")
            continue
        if phase == "vip-peers" and phase not in was:
            yield front_doors.lets_hear(plan.vip)
            continue
        if phase == "vip-away" and phase not in was:
            yield front_doors.hands_over(plan.vip)
            continue
        if phase == "vip" and was.get(phase, {}).get("VIP") != now[phase]["VIP"]:
            yield front_doors.moved(was.get(phase), now[phase])
            continue
        if phase == "ingress" and phase not in was:
            yield front_doors.ends_tls(plan.vip)
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
            effect = OF_VALUE[phase, name]
            if name == "OS_PACKAGES" and not text:
                effect = OS_LEFT
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
    if "vip" in was and not {"vip", "vip-away"} & set(now):
        yield front_doors.given_up(was["vip"])
    if "vip-away" in was and not {"vip", "vip-away"} & set(now):
        yield front_doors.alone_again()
    if "ingress" in was and "ingress" not in now and "vip-away" not in now:
        yield Action(phase="node", text="the ingress tier stops: nobody serves ports 80 and 443")


def _control_plane(kubeadm: str) -> str:
    return kubeadm.partition("apiVersion: kubelet.config")[0]


def _certificates(then: Plan, old: Node, plan: Plan, node: Node) -> Iterator[Action]:
    if renewed := again.renewed(then, old, plan, node):
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
    if old.state != node.state and node.in_kubernetes:
        cordoned = "cordon for maintenance, its pods stay"
        words.append(cordoned if node.state == "maintenance" else "uncordon, maintenance is over")
    words += [f"- {word}" for word in was if word not in now]
    if words:
        yield Action(phase="nodes", text=", ".join(words))


_PODS = "its manifest changes: pods are replaced a few at a time"
# Of those that are no pods.
_OBJECTS = {
    "admission-policies": "what kubelets and flannel may write, nothing restarts",
    "lost-nodes": "what given up nodes write is refused as before, nothing restarts",
    "serving-certificates": "kubelets get certificates for these addresses, nothing restarts",
}


def _addons(before: Memory, plan: Plan, drift: _Drift) -> tuple[tuple[str, str], ...]:
    now = system_addons.addons(plan)
    was = system_addons.addons(before.plan) if before.plan else now
    drifted = drift.values.get("", frozenset())
    once_more = again.of_cluster(before.plan, plan) if before.plan else ""
    if not once_more and "addon" in drift.scripts:
        once_more = "is applied again, nothing restarts"
    out = []
    for name in sorted(now):
        if was.get(name) != now[name] or name in drifted:
            told = [*fence.words(before.plan, plan)] if name == "lost-nodes" and before.plan else []
            text = "; ".join([*told, "nothing restarts"]) if told else _OBJECTS.get(name, _PODS)
            out.append((name, text))
        elif once_more:
            out.append((name, once_more))
    if before.plan is None:
        return tuple(out)
    again_all = bool(once_more) or "manifests" in drift.scripts
    out += user_addons.changed(before.plan, plan, again=again_all)
    return tuple(out)
