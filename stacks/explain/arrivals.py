"""Who comes and who goes, in words: nodes that join, are recreated, leave, or are given up."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster.plan import Node, Plan
from stacks.edits import membership
from stacks.edits.memory import Memory
from stacks.explain import front_doors
from stacks.explain.actions import Action, NodeChange

_FORGET = Action(phase="machine", text="forget the machine, no SSH is tried")


def new(plan: Plan, node: Node, *, founding: bool) -> NodeChange:
    machine = "adopt the machine" if node.ssh else f"make the machine{_spot(plan, node)}"
    actions = [Action(phase="machine", text=machine)]
    ready = "preflight, then packages, kernel settings"
    if node.in_kubernetes:
        ready += ", HAProxy, containerd, kubelet"
    elif node.is_load_balancer:
        ready = "preflight, then packages, HAProxy"
    actions.append(Action(phase="node", text=ready))
    if node.is_etcd:
        is_first = founding and node.name == plan.etcd[0].name
        join = "bootstrap the etcd cluster" if is_first else "join etcd as a learner, then vote"
        actions.append(Action(phase="etcd-member", text=join))
    if node.is_master:
        text = "become a master: apiserver, controller manager, scheduler"
        actions.append(Action(phase="master", text=text))
    elif node.in_kubernetes:
        actions.append(Action(phase="join", text="join as a worker"))
    if node.is_master and not node.is_etcd:
        actions.append(Action(phase="etcd-absent", text="no etcd of another life runs here"))
    actions += _doors(plan, node)
    return NodeChange(name=node.name, kind="new", roles=node.roles, actions=tuple(actions))


def _spot(plan: Plan, node: Node) -> str:
    return ", a spot one, which the cloud may take away" if plan.spec.pools[node.pool].spot else ""


def back(plan: Plan, node: Node) -> tuple[Action, ...]:
    """What is done on a node that was left out, and is there again."""
    told = "it was left out: all of it is told again, and what is right stays"
    actions = [Action(phase="node", text=told)]
    if not node.is_worker:
        actions.append(Action(phase="pki", text="keys and certificates are placed again"))
    if node.is_etcd:
        actions.append(Action(phase="etcd-member", text="what etcd missed is made so; it votes"))
    if node.is_master:
        actions.append(Action(phase="master", text="what the API server missed is made so"))
    elif node.in_kubernetes:
        text = "joins again if its identity has run out, else nothing"
        actions.append(Action(phase="join", text=text))
    if node.is_master and not node.is_etcd:
        actions.append(Action(phase="etcd-absent", text="no etcd runs here"))
    return (*actions, *_doors(plan, node))


def _doors(plan: Plan, node: Node) -> Iterator[Action]:
    """What it becomes for those who come from outside."""
    if node in plan.holders:
        yield front_doors.stands_by(plan.vip)
    elif plan.load_balancers and node.is_master:
        yield from front_doors.beside(plan)
    if node in plan.ingress:
        yield front_doors.ends_tls(plan.vip)


def rebuilt(plan: Plan, node: Node) -> NodeChange:
    """A node that is recreated under its name: like a new one, after the old one is out."""
    first = [
        Action(phase="first", text=f"{_out(node.roles)} (evicted before, if it still answers)")
    ]
    if node.is_load_balancer:
        first = [Action(phase="first", text="the others take over what it holds")]
    made = f"make a new machine{_spot(plan, node)}"
    machine = "wipe the machine and adopt it again" if node.ssh else made
    actions = new(plan, node, founding=False).actions[1:]
    return NodeChange(
        name=node.name,
        kind="rebuilt",
        roles=node.roles,
        actions=(*first, Action(phase="machine", text=machine), *actions),
    )


def leaving(before: Memory, plan: Plan) -> Iterator[NodeChange]:
    """Nodes that leave, and machines that were unavailable and are now forgotten or given back."""
    stay = {node.name for node in plan.nodes}
    away = {node.name: node for node in plan.away}
    absent = {node.name for node in before.plan.absent} if before.plan else set()
    known: dict[str, tuple[str, ...]] = {
        name: node.roles for name, node in away.items() if node.is_given_up
    }
    known |= {name: machine.roles for name, machine in before.machines.items()}
    for name, roles in sorted(known.items()):
        if name in stay:
            continue
        if name not in away:
            yield _leaves(plan, name, roles, _release(plan))
        elif away[name].state == "decommissioned":
            text = "stop everything of kube-ha; machine and disks stay"
            yield _leaves(plan, name, roles, Action(phase="decommission", text=text))
        elif name in membership.going_first(before, plan):
            release = _release(plan) if plan.made else _FORGET
            out = Action(phase="first", text=_out(roles))
            if "loadbalancer" in roles:
                out = front_doors.given_up_first(plan.vip if plan.holders else "")
            # Of a given one that was never there the same is kept: it could come back by that name.
            # Of one that was absent its keys alone are there, which a worker has none of.
            has_more = name not in absent or {*roles} != {"worker"}
            goes = membership.had_machine(before, name) if plan.made else has_more
            actions = (out, *(release,) * goes)
            yield NodeChange(name=name, kind="leaving", roles=roles, actions=actions)
    for name, machine in sorted(before.away.items()):
        if name in stay or name in away:
            continue
        if not membership.was_lost(before, name):
            yield NodeChange(
                name=name, kind="leaving", roles=machine.roles, actions=(_release(plan),)
            )
        elif not plan.made:
            yield NodeChange(name=name, kind="leaving", roles=machine.roles, actions=(_FORGET,))
    yield from only_stopped(before, plan)


def only_known(plan: Plan) -> Iterator[NodeChange]:
    """Given machines that are given up from a cluster's first day on."""
    for node in sorted(plan.away, key=lambda node: node.name):
        if node.is_given_up and not plan.made:
            yield NodeChange(name=node.name, kind="leaving", roles=node.roles, actions=(_FORGET,))


def only_stopped(before: Memory | None, plan: Plan) -> Iterator[NodeChange]:
    """Decommissioned ones that were in no cluster at the last success. None: nothing was there."""
    for name, node in sorted({node.name: node for node in plan.away}.items()):
        had = before is not None and membership.had_machine(before, name)
        if node.state == "decommissioned" and not had:
            text = "the machine is reached, made where it is not there, and nothing runs on it"
            action = Action(phase="decommission", text=text)
            yield NodeChange(name=name, kind="leaving", roles=node.roles, actions=(action,))


def _out(roles: tuple[str, ...]) -> str:
    parts = ["its etcd member"] * ("etcd" in roles)
    parts += ["its Node"] * bool({"master", "worker"} & {*roles})
    verb = "are" if len(parts) > 1 else "is"
    return f"{' and '.join(parts)} {verb} removed by the remaining nodes"


def _release(plan: Plan) -> Action:
    if plan.made:
        text = "DELETE the machine and its disks"
    elif plan.spec.machines.on_release == "keep":
        text = "stop everything of kube-ha; files and data stay, put the host back to have it again"
    else:
        text = "WIPE what is ours, data too; the machine stays"
    return Action(phase="machine", text=text)


def _leaves(plan: Plan, name: str, roles: tuple[str, ...], last: Action) -> NodeChange:
    in_kubernetes = "master" in roles or "worker" in roles
    actions = []
    if in_kubernetes:
        text = (
            "evict its pods (PodDisruptionBudgets are respected; emptyDir and local volumes do not "
            "move along, pods without a controller end for good)"
        )
        actions.append(Action(phase="nodes", text=text))
    if "etcd" in roles:
        text = "leave etcd: removed by the remaining nodes, once they have a quorum without it"
        actions.append(Action(phase="nodes", text=text))
    if in_kubernetes:
        actions.append(Action(phase="nodes", text="delete its Node"))
    if "loadbalancer" in roles and plan.holders:
        actions.append(front_doors.told_to_go(plan.vip))
    return NodeChange(name=name, kind="leaving", roles=roles, actions=(*actions, last))
