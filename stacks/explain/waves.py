"""When each change happens: the order of stacks/order/steps.py in words, wave by wave.

A wave says what is checked before the next begins and what an abort in it leaves, so a reviewer
knows the worst case of every moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from stacks.cluster import api_record as cluster_api_record
from stacks.cluster.plan import Plan
from stacks.edits import api_record as edit_api_record
from stacks.edits import membership, snapshots
from stacks.edits.memory import Memory
from stacks.explain import cloud, front_doors, keys, rollout
from stacks.explain.actions import NodeChange, Wave, only
from stacks.explain.changes import Changes
from stacks.phases import gate
from stacks.render import join

_PREPARE = ("machine", "node")
_CHANGED = ("node", "etcd-member", "master")  # leafs come before all turns
_NEW = ("pki", "etcd-member", "master")

_PREFLIGHT = "preflight lists all that is wrong with a machine before anything is changed on it"
_MEMBER = (
    "a member restarts only where the others have a quorum without it; after it, it votes and is "
    "healthy"
)
_MASTER = (
    "an API server stops only while another is ready; after it, its /readyz, and the API through "
    "the node's own HAProxy"
)


def waves(before: Memory | None, plan: Plan, found: Changes) -> tuple[Wave, ...]:
    """The waves of an up, first to last; none when nothing is to be done."""
    if not (found.nodes or found.addons or found.program or _is_other(before, plan)):
        return rollout.settings(before, plan)
    parts = _of_birth(plan, found) if before is None else _of_life(before, plan, found)
    return tuple(wave for wave in parts if wave.nodes or wave.lines)


def _is_other(before: Memory | None, plan: Plan) -> bool:
    """Whether the list of nodes and the gate run: for every change of what is wanted."""
    if before is None or before.plan is None:
        return True
    return gate.plan_digest(before.plan) != gate.plan_digest(plan)


def _of_birth(plan: Plan, found: Changes) -> Iterator[Wave]:
    yield _cloud("cloud", cloud.made(plan))
    yield Wave(
        title="machines",
        order="side by side",
        nodes=only(found.nodes, _PREPARE),
        lines=keys.born(),
        checked=_PREFLIGHT,
        abort="machines that nobody uses; the next up goes on",
    )
    yield Wave(
        title="etcd members",
        order="one by one",
        nodes=only(_in_turn(plan, found.nodes), ["etcd-member"]),
        checked="each member votes and is healthy before the next",
        abort="fewer members; the next up goes on, and founds no second cluster",
    )
    yield Wave(
        title="masters, each as soon as its etcd member is there",
        order="one by one",
        nodes=only(_in_turn(plan, found.nodes), ["master"]),
        checked="/readyz of each API server, and the API through the node's own HAProxy",
        abort="fewer masters; those that are made serve",
    )
    yield Wave(
        title="add-ons and workers, as soon as the first master serves",
        order="side by side",
        nodes=only(found.nodes, ["join"]),
        lines=(
            *(f"add-on {name} {what}" for name, what in found.addons),
            f"join-token {_token(0)}"
            if not plan.workers
            else f"join-token {_token(len(plan.workers))}",
        ),
        checked="every node is Ready and has announced what it applied",
        abort="fewer workers; the next up joins them with a new token",
    )
    yield _record(None, plan)
    yield from _list_of_nodes(found)
    yield _stopped(found)
    yield _ingress(found)
    yield _vip(None, plan, found)
    yield _gate(plan)


def _of_life(before: Memory, plan: Plan, found: Changes) -> Iterator[Wave]:
    controllers = {node.name for node in (*plan.etcd, *plan.masters)}
    new, changed = found.of("new", "rebuilt"), found.of("changed")
    joining = [node for node in new if {*node.roles} == {"worker"}]
    yield _cloud("cloud", _of_cloud(before, plan, gone=False))
    yield Wave(
        title="machines of this computer",
        order="side by side",
        nodes=only(changed, ["machine"]),
        checked="each is there",
        abort="nothing has changed",
    )
    yield Wave(
        title="new leafs, on all masters and members that exist",
        order="side by side",
        nodes=only([node for node in changed if node.name in controllers], ["pki"]),
        lines=keys.made(before, plan),
        checked="what reads them does so while it runs: nothing restarts, nobody waits for a turn",
        abort="old leafs or new ones, each of them good",
    )
    yield _snapshot(before, plan)
    yield Wave(
        title="lost nodes and those made anew, taken out by those that stay",
        order="one by one",
        nodes=only(found.of("rebuilt", "leaving"), ["first"]),
        checked="before an etcd member is removed, those that stay have a quorum of their own",
        abort="fewer dead members; nobody else is touched",
    )
    yield Wave(
        title="new machines",
        order="side by side",
        nodes=only(new, _PREPARE),
        checked=_PREFLIGHT,
        abort="machines that nobody uses; the next up goes on",
    )
    yield from _control_plane(plan, found, controllers)
    yield Wave(
        title="CAs and keys, once every master has made the step",
        order="once",
        nodes=(),
        lines=keys.settled(before, plan, found.keys),
        checked="each namespace holds the CAs of this step; no Secret lies under another key than "
        "the one that encrypts",
        abort="old and new are known to all nodes; the next up goes on",
    )
    yield Wave(
        title="add-ons",
        order="side by side",
        nodes=(),
        lines=tuple(f"{name} {what}" for name, what in found.addons),
        checked="applied by the API server; that their pods run is asked by the gate",
        abort="old or new manifests, each whole",
    )
    yield Wave(
        title="workers that join",
        order="side by side",
        nodes=only(joining, ["join"]),
        lines=(_token(len(joining)),) if joining else (),
        checked="every node is Ready and has announced what it applied",
        abort="fewer workers; the next up joins them with a new token",
    )
    yield Wave(
        title="load balancers",
        order="one by one",
        nodes=only([node for node in changed if "loadbalancer" in node.roles], ("node", "pki")),
        checked="HAProxy takes its configuration; after a reboot the machine is back before the "
        "next is touched",
        abort="some with the old configuration; all of them serve",
    )
    yield from rollout.waves(
        before, plan, [node for node in changed if node.name not in controllers]
    )
    yield _record(before, plan)
    yield from _list_of_nodes(found)
    yield _stopped(found)
    yield _ingress(found)
    yield _vip(before, plan, found)
    yield _gate(plan)
    yield Wave(
        title="machines that have left, after the gate",
        order="side by side",
        nodes=only(found.of("leaving"), ["machine"]),
        checked="no process and no data of ours is left",
        abort="machines that no longer belong to the cluster; the next up goes on",
    )
    yield _cloud("what leaves the cloud, after the gate", _of_cloud(before, plan, gone=True))
    yield Wave(
        title="name of the API that is given up, after the gate",
        order="once",
        nodes=(),
        lines=tuple(edit_api_record.deleted(before, plan)),
        checked="its record is gone",
        abort="the record is still there; the next up goes on",
    )


def _cloud(title: str, lines: tuple[str, ...]) -> Wave:
    return Wave(
        title=title,
        order="once",
        nodes=(),
        lines=lines,
        checked="the provider says that it is done",
        abort="some of it done; the next up goes on",
    )


def _of_cloud(before: Memory, plan: Plan, *, gone: bool) -> tuple[str, ...]:
    """What is around machines that stay."""
    if before.plan is None:
        return ()
    anew = membership.rebuilt(before, plan)
    kept = [node.name for node in membership.staying(before, plan) if node.name not in anew]
    return (cloud.deleted if gone else cloud.changed)(before.plan, plan, kept)


def _snapshot(before: Memory, plan: Plan) -> Wave:
    due, saver = snapshots.reasons(before, plan), snapshots.place(before, plan)
    return Wave(
        title="etcd snapshot",
        order="once",
        nodes=(),
        lines=(f"kept on {saver.name}, because these change: {', '.join(due)}",)
        if due and saver
        else (),
        checked="it is whole, of this cluster, and holds all that a quorum had",
        abort="nothing that serves has been touched",
    )


def _control_plane(plan: Plan, found: Changes, controllers: Collection[str]) -> Iterator[Wave]:
    nodes: list[NodeChange] = []
    for node in _in_turn(plan, found.of("new", "rebuilt", "changed")):
        if node.name in controllers:
            phases = _CHANGED if node.kind == "changed" else _NEW
            nodes += only([node], phases)
    has_member = any(action.phase == "etcd-member" for node in nodes for action in node.actions)
    has_master = any(
        action.phase == "master" and (action.restarts or node.kind != "changed")
        for node in nodes
        for action in node.actions
    )
    checks = [text for text, said in ((_MEMBER, has_member), (_MASTER, has_master)) if said]
    yield Wave(
        title="etcd members and masters, each whole before the next",
        order="one by one",
        nodes=tuple(nodes),
        checked="; ".join(checks) or "each node's services are active",
        abort="the one in hand old or new, the others untouched and serving",
    )


def _record(before: Memory | None, plan: Plan) -> Wave:
    serves = "the load balancer answers" if plan.balancer != "none" else "every master serves"
    return Wave(
        title="name of the API",
        order="once",
        nodes=(),
        lines=tuple(edit_api_record.changed(before, plan)),
        checked=f"{serves} before the record leads there; then {cluster_api_record.TTL_S} s, for "
        "as long resolvers keep the old one",
        abort="the record as it was or as it is to be; whom both lead to serves",
    )


def _token(joining: int) -> str:
    if not joining:
        return "none is made: no worker joins"
    minutes = join.token_life_s(joining) // 60
    return f"a token to join by is made known to the cluster, and ends after {minutes} minutes"


def _stopped(found: Changes) -> Wave:
    return Wave(
        title="what runs no longer, on machines that stay",
        order="side by side",
        nodes=only(found.nodes, ["decommission", "etcd-absent"]),
        checked="no process of ours is left",
        abort="a machine that runs on without being in the cluster; the next up stops it",
    )


def _list_of_nodes(found: Changes) -> Iterator[Wave]:
    yield Wave(
        title="list of nodes: labels, taints, and those that leave",
        order="one by one",
        nodes=(
            *only(found.of("changed"), ["nodes"]),
            *only(found.of("leaving"), ["nodes"]),
        ),
        lines=("compared with the config, from a master",),
        checked="every wanted node is Ready and as wanted before one leaves; before an etcd member "
        "leaves, those that stay have a quorum of their own",
        abort="a node cordoned or gone; those that stay are untouched",
    )


def _vip(before: Memory | None, plan: Plan, found: Changes) -> Wave:
    """Who holds it already learns of new ones first: a holder that nobody tells of would be two."""
    leaving = only(found.of("leaving"), ["vip-holders"])
    peers = only(found.nodes, ["vip-peers"])
    away = only(found.nodes, ["vip-away"])
    holders = [node for node in found.nodes if node.kind == "changed"]
    holders += [node for node in found.nodes if node.kind in ("new", "rebuilt")]
    return Wave(
        title="virtual IP",
        order="one by one",
        nodes=(*leaving, *peers, *only(holders, ["vip"]), *away),
        lines=front_doors.holders(before, plan),
        checked="keepalived takes its configuration, its HAProxy listens at the address, and no "
        "machine has it that the others do not hear",
        abort="the address where it is; fewer machines that can take it, or more",
    )


def _ingress(found: Changes) -> Wave:
    return Wave(
        title="ingress tier",
        order="one by one",
        nodes=only(found.nodes, ["ingress"]),
        checked="HAProxy takes its configuration and its certificates before they replace others",
        abort="some machines with the old list or certificates; open connections stay",
    )


def _gate(plan: Plan) -> Wave:
    network = plan.spec.network.plugin != "none"
    doors = f"; the API at {plan.vip}" if plan.vip else ""
    what = f"API, controllers, add-ons{doors}" + (
        "; a pod on every node reaches pods, Service, NodePort and DNS" if network else ""
    )
    return Wave(
        title="acceptance gate",
        order="once",
        nodes=(),
        lines=(what,),
        checked="only now the stack remembers this config as applied",
        abort="everything done, not yet remembered; the next up asks again",
    )


def _in_turn(plan: Plan, nodes: Iterable[NodeChange]) -> list[NodeChange]:
    """Control plane nodes in rollout order: members first, then masters without one."""
    known = {node.name: node for node in nodes}
    order = (*plan.etcd, *(node for node in plan.masters if not node.is_etcd))
    return [known[node.name] for node in order if node.name in known]
