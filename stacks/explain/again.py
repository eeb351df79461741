"""What runs again in an edit though no value of its own says why: on nodes, and for the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stacks.cluster import certificates, clouds
from stacks.cluster import rotation as cluster_rotation
from stacks.cluster.plan import Node, Plan
from stacks.explain import rotation
from stacks.phases import desired, nodes
from stacks.phases.effects import CONNECTION

_LOGIN = f"{CONNECTION.what}: {CONNECTION.then}"
_FETCHED = "places to fetch from: the next download is from there, nothing restarts"
_FOLLOWS = "phase master runs again, nothing else restarts"
_PATIENT = "runs again, as it waits longer or shorter for a reboot, nothing restarts"
_PLACED = "keys and certificates are placed again, nothing restarts"
_ALL_AGAIN = "converge.generation: every phase runs again, what is right stays"


def of_node(then: Plan, old: Node, plan: Plan, node: Node) -> dict[str, str]:
    """By phase of a node that stays: why its command runs again, where nothing else tells it."""
    phases = [*desired.of_phases(plan, node), *(["pki"] if _has_keys(node) else [])]
    out: dict[str, str] = {}
    if _converged(then, plan):
        out = dict.fromkeys(phases, _ALL_AGAIN)
    if other_login(then, old, plan, node):
        return dict.fromkeys(phases, _LOGIN)
    if _mirror(then) != _mirror(plan):
        if node.in_kubernetes:
            out.setdefault("node", _FETCHED)
        if node.is_etcd:
            out.setdefault("etcd-member", _FETCHED)
    was, now = _keys(then, old), _keys(plan, node)
    if any(was[what] != now[what] for what in {*was} & {*now}):
        out.setdefault("pki", _PLACED)
    if nodes.reboot_s(then) != nodes.reboot_s(plan):
        for phase in ("pki", "etcd-member", "master"):
            if phase in phases:
                out.setdefault(phase, _PATIENT)
    return out


def follows(then: Plan, old: Node, plan: Plan, node: Node, said: set[str]) -> Iterator[str]:
    """Phases that run because another one has something to do; `said`: those that have."""
    if node.is_master and "master" not in said:
        moved = cluster_rotation.words(then) != cluster_rotation.words(plan)
        if "node" in said or moved or renewed(then, old, plan, node):
            yield "master"


def text() -> str:
    """Of a phase that follows."""
    return _FOLLOWS


def other_login(then: Plan, old: Node, plan: Plan, node: Node) -> bool:
    """Every command of the machine runs again by another way of login."""
    return old.ssh != node.ssh or clouds.way_in(then.spec) != clouds.way_in(plan.spec)


def of_cluster(then: Plan, plan: Plan) -> str:
    """Why all that one master does for the cluster is done again; empty: for no such reason."""
    was, now = then.masters[0], plan.masters[0]
    if was.name != now.name:
        return f"is applied from {now.name} from now on, nothing restarts"
    if now.generation > was.generation or other_login(then, was, plan, now):
        return f"is applied again from {now.name}, nothing restarts"
    return "is applied again, nothing restarts" if _converged(then, plan) else ""


def _converged(then: Plan, plan: Plan) -> bool:
    return then.spec.converge != plan.spec.converge


def _has_keys(node: Node) -> bool:
    return node.is_etcd or node.is_master or node.is_load_balancer


def _mirror(plan: Plan) -> str | None:
    return plan.mirror.url if plan.mirror else None


def _keys(plan: Plan, node: Node) -> Mapping[str, object]:
    """What the files that are placed beside the leafs are made of."""
    found: dict[str, object] = {"holds": node in plan.holders}
    known = cluster_rotation.of(plan.spec)
    if node.is_etcd:
        backup = plan.spec.etcd.backup
        store = backup.object_store
        seed = cluster_rotation.signing(known["seed"]) if backup.encrypt else 1
        found["etcd"] = (
            cluster_rotation.generations(known["etcd"]),
            backup.encrypt,
            seed,
            (store.access_key, store.ca) if store else None,
        )
    if node.is_master:
        found["moved"] = cluster_rotation.words(plan)
    if node.is_load_balancer:
        found["packages"] = plan.spec.os.packages
    return found


def renewed(then: Plan, old: Node, plan: Plan, node: Node) -> list[str]:
    """Names of leafs that are made anew, without those of a role that the node did not have."""
    was = {leaf.name: leaf for leaf in certificates.of_node(then, old)}
    now = {leaf.name: leaf for leaf in certificates.of_node(plan, node) if leaf.name in was}
    return [
        name for name, leaf in now.items() if was[name] != leaf or signed_anew(then, plan, leaf)
    ]


def signed_anew(then: Plan, plan: Plan, leaf: certificates.Leaf) -> bool:
    """By another CA, or for another time."""
    if then.spec.pki.leaf_validity_hours != plan.spec.pki.leaf_validity_hours:
        return True
    return any(
        subject == leaf.ca and cluster_rotation.signing(was) != cluster_rotation.signing(now)
        for subject, was, now in rotation.moved(then, plan)
    )
