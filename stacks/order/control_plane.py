"""Leafs, snapshot, who is taken out first; then etcd members and masters, each in its turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stacks.cluster import digests, rotation
from stacks.cluster.certificates import APPROVER_FILE, of_node
from stacks.cluster.plan import Node
from stacks.edits import membership, snapshots
from stacks.order import keys
from stacks.order.scene import Scene, attempt, attempted, machine
from stacks.order.step import From, Said, Source, Step, of_part
from stacks.phases import etcd_member, gate, preflight, retire, scripts
from stacks.phases.master import of_master


def leafs(scene: Scene) -> Iterator[Step]:
    """Before others change, on all that exist: what reads them does so while it runs."""
    # Who is silent, and is back within the hour, needs the token of that hour once more: the list
    # of nodes has deleted it meanwhile.
    silent = sorted(node.name for node in scene.plan.nodes if node.is_silent)
    without = (f"without {' '.join(silent)}",) if silent else ()
    parts = (scripts.script_sum("gate"), gate.plan_digest(scene.plan), *without)
    # Reverting a change that was interrupted must take out whoever has joined by it, and prove the
    # cluster again: it has to be stored before anybody joins or leaves.
    yield attempt(scene.own("acceptance"), "nodes", parts, parent=scene.own("acceptance"))
    yield from _of_those_there(scene)


def _of_those_there(scene: Scene) -> Iterator[Step]:
    for node in scene.plan.nodes:
        if node.name in scene.settled:
            yield from member_keys(scene, node)
            yield from master_keys(scene, node)


def saved(scene: Scene) -> Iterator[Step]:
    """A snapshot where one is due, on an etcd machine that stays, by members that are there now."""
    placed = tuple(step.name for step in _of_those_there(scene) if step.kind == "phase")
    edit = (scene.previous, scene.plan)
    node = scene.machine_of(scene.saver.name)
    yield Step(
        name=scene.own("snapshot"),
        kind="phase",
        node=node,
        phase="snapshot",
        after=(scene.of(node.name, "scripts"), scene.attempt, *placed),
        values={**snapshots.values(*edit, node), **scene.once},
        ignores="" if snapshots.reasons(*edit) else "any",
    )


def taken_out(scene: Scene) -> Iterator[Step]:
    """Who is dead, and who is recreated.

    Every change of a living cluster waits for it. While nobody goes, nothing about it changes.
    """
    previous, plan, node = scene.previous, scene.plan, scene.survivor
    known = {one.name: one for one in (*plan.nodes, *plan.away)}
    going = [known[name] for name in membership.going_first(previous, plan)]
    names = {one.name for one in membership.staying(previous, plan)}
    then = (previous and previous.plan) or plan
    yield Step(
        name=scene.own("retire"),
        kind="phase",
        node=node,
        phase="retire",
        after=(scene.of(node.name, "scripts"), scene.own("snapshot")),
        values={
            **retire.of_retire(plan, node, going=going, then=then, staying=names),
            **scene.once,
        },
        # What it was told the last time is kept, and the very same node may be lost again one day.
        stamp=scene.attempt,
        ignores="" if going else "any",
    )


def brought(scene: Scene, node: Node, turn: str | None) -> Step:
    """Node scripts, for what the plan wants of the machine."""
    after: tuple[str, ...] = (turn,) if turn else ()
    if node.name in scene.settled and (node.is_etcd or node.is_master):
        after = (scene.attempt,)
    elif node.name in (scene.survivor.name, scene.saver.name):
        after = ()
    return Step(
        name=scene.of(node.name, "scripts"),
        kind="scripts",
        part=scene.part_of(node),
        node=node,
        after=(machine(node), *after),
        parts=(scene.applied(node),),
    )


def prepared(scene: Scene, node: Node, turn: str | None) -> Iterator[Step]:
    """Preflight, then packages, kernel, runtime, kubelet and the local door of the API."""
    copied = scene.of(node.name, "scripts")
    told = preflight.preflight(scene.plan, node, scene.files[node.arch], settled=scene.settled)
    yield brought(scene, node, turn)
    passed = looked(scene, node, told)
    yield passed
    values: dict[str, Said] = {**scene.told[node.name]}
    if "CA_CRT" in values:
        values["CA_CRT"] = scene.ca_text
    yield Step(
        name=scene.of(node.name, "node"),
        kind="phase",
        part=scene.part_of(node),
        node=node,
        phase="node",
        after=(passed.name, *((turn,) if turn else ())),
        values={**values, **_of_cloud(node, scene), "APPLIED": scene.applied(node)},
        stamp=copied,
    )


def looked(scene: Scene, node: Node, told: dict[str, str]) -> Step:
    """Whether the machine is fit; deleting it makes it leave."""
    return Step(
        name=scene.of(node.name, "preflight"),
        kind="phase",
        part=scene.part_of(node),
        node=node,
        phase="preflight",
        after=(scene.of(node.name, "scripts"),),
        values=told,
        word=f"incarnation-{node.generation}" if node.generation > 1 else "",
        leaves=True,
        # What a machine must fulfil before it joins is asked of one that joins, whatever it was.
        ignores="stdin" if node.name in scene.settled or node in scene.plan.away else "",
    )


def _of_cloud(node: Node, scene: Scene) -> dict[str, Said]:
    """What the cloud knows the machine by: no part of what it announces, which a pool shares."""
    if not scene.has_ids:
        return {}
    return {"PROVIDER_ID": From((Source("provider id", node.name),), str)}


def members_and_masters(scene: Scene) -> Iterator[Step]:
    """A cluster that is born overlaps them; one that lives changes one machine at a time, whole."""
    if scene.previous is None:
        yield from _born(scene)
        return
    turn: tuple[str, ...] = (scene.own("retire"),)
    ready: list[str] = []
    for node in scene.turns:
        yield from prepared(scene, node, turn[-1] if node.name in scene.settled else None)
        own = scene.of(node.name, "node")
        turn = (*turn[-1:], own)
        if node.is_etcd:
            ready.append(own)
            yield from _member(scene, node, (own, *turn), tuple(ready))
            turn = (scene.of(node.name, "etcd"),)
        if node.is_master:
            yield from _master(scene, node, turn)
            turn = (scene.of(node.name, "master"),)


def _born(scene: Scene) -> Iterator[Step]:
    plan = scene.plan
    for node in plan.nodes:
        if node.is_etcd or node.is_master:
            yield from prepared(scene, node, None)
    ready = tuple(scene.of(node.name, "node") for node in plan.etcd)
    last: tuple[str, ...] = ()
    for node in plan.etcd:
        after = (scene.of(node.name, "node"), *last)
        yield from of_part("members", _member(scene, node, after, ready))
        last = (scene.of(node.name, "etcd"),)
    every = tuple(scene.of(node.name, "etcd") for node in plan.etcd)
    last = ()
    for node in plan.masters:
        own = (scene.of(node.name, "etcd"),) if plan.etcd_stacked else every
        yield from of_part("masters", _master(scene, node, (*own, *last)))
        last = (scene.of(node.name, "master"),)


def member_keys(scene: Scene, node: Node) -> tuple[Step, ...]:
    """Of a member that exists they wait for no turn: etcd reads a leaf at every handshake."""
    if not node.is_etcd:
        return ()
    name = scene.of(node.name, "etcd")
    return keys.placed(
        scene,
        f"{name}-keys",
        node,
        keys.of_member(scene.plan, node),
        after=(_takes(scene, node),),
        parent=name,
        keys=etcd_member.secret_keys(scene.plan),
    )


def master_keys(scene: Scene, node: Node) -> tuple[Step, ...]:
    """Leafs of a master, which its API server reads while it runs."""
    if not node.is_master:
        return ()
    files = keys.of_master(scene.plan, node)
    return _of_master_keys(scene, node, "keys", files, _takes(scene, node))


def _of_master_keys(
    scene: Scene, node: Node, what: str, files: list[keys.Key], ready: str
) -> tuple[Step, ...]:
    name = scene.of(node.name, "master")
    moved = rotation.words(scene.plan)
    return keys.placed(
        scene, f"{name}-{what}", node, files, after=(ready,), parent=name, keys=moved
    )


def _takes(scene: Scene, node: Node) -> str:
    """After what leafs can be placed on a machine."""
    return scene.of(node.name, "scripts" if node.name in scene.settled else "node")


def _member(
    scene: Scene, node: Node, after: tuple[str, ...], others: tuple[str, ...]
) -> Iterator[Step]:
    """Joined as a learner and promoted; the first one may found the cluster, once in its life."""
    name, plan = scene.of(node.name, "etcd"), scene.plan
    if node.name not in scene.settled:
        yield from member_keys(scene, node)
    values = etcd_member.whole(plan, node, scene.files[node.arch])
    step = Step(
        name=name,
        kind="phase",
        node=node,
        phase="etcd-member",
        parent=name,
        after=(f"{name}-keys", *after),
        values={**values, "BOOTSTRAP": "0"},
        is_patient=True,
    )
    if node.name == plan.etcd[0].name:
        founding = etcd_member.founding(
            values,
            leaving=membership.leaving_members(scene.previous, plan),
            now_s=scene.now_s,
            newborn=scene.previous is None,
        )
        found = replace(
            step,
            name=f"{name}-found",
            after=(f"{name}-keys", *others, *after),
            values=founding,
            ignores="any",
        )
        yield found
        step = step.then(found.name)
    yield from attempted(step, tuple(values.values()))


def _master(scene: Scene, node: Node, after: tuple[str, ...]) -> Iterator[Step]:
    """No master is special: the same kubeadm init makes each of them."""
    name, ready = scene.of(node.name, "master"), scene.of(node.name, "node")
    if node.name not in scene.settled:
        yield from master_keys(scene, node)
    # Apart from the leafs: together they are more than one stdin may hold. And some of them are
    # read at a start only, so they come when the machine's turn does.
    shared = keys.of_control_plane(scene.plan)
    yield from _of_master_keys(scene, node, "shared-keys", shared, ready)
    values: dict[str, Said] = {
        **of_master(scene.plan, node),
        **_certificates(scene, node),
        "APPLIED": scene.applied(node),
        **_of_cloud(node, scene),
    }
    step = Step(
        name=name,
        kind="phase",
        node=node,
        phase="master",
        parent=name,
        after=(f"{name}-shared-keys", f"{name}-keys", ready, *after),
        values=values,
        is_patient=True,
    )
    yield from attempted(step, tuple(values[key] for key in sorted(values)))


def _certificates(scene: Scene, node: Node) -> dict[str, Said]:
    moved = rotation.words(scene.plan)
    leafs = {leaf.path: Source("leaf cert", leaf.name) for leaf in of_node(scene.plan, node)}
    # Apart: what the approver shows is not a reason to renew the kubeconfigs.
    approver = leafs.pop(APPROVER_FILE)
    extra = [moved] if moved else []
    return {
        "CERTIFICATES": From(tuple(leafs.values()), lambda *certs: digests.digest(*certs, *extra)),
        # Not used by the script: the approver starts again when it is another one.
        "APPROVER_CERTIFICATE": From((approver,), digests.digest),
    }
