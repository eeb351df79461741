"""Doors of the API and the cluster: its name, load balancers, the ingress tier, the virtual IP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from stacks.cluster import api_record, digests
from stacks.cluster.certificates import INGRESS
from stacks.cluster.plan import Node
from stacks.order import keys
from stacks.order.control_plane import prepared
from stacks.order.scene import Scene, attempted
from stacks.order.step import DOOR, From, Said, Source, Step, ca, of_part
from stacks.order.workers import last_master
from stacks.phases import balancer, front_doors

_ASKED = ".venv/bin/python -m operations.door # "


def named(scene: Scene) -> Iterator[Step]:
    """The record of the API's name moves to what serves, before others leave."""
    yield Step(name=DOOR, kind="door")
    if not has_record(scene):
        return
    stamp = Step(
        name=scene.own("api-name-attempt"), kind="attempt", parts=(api_record.mark(scene.plan),)
    )
    yield stamp
    serves = last_master(scene)
    if scene.plan.balancer != "none":
        asked = Step(
            name=scene.own("balancer-serves"),
            kind="local",
            after=(serves, DOOR),
            target=_ASKED,
            stamp=stamp.name,
        )
        if scene.plan.balancer == "external":
            said = balancer.from_here(scene.plan)
            yield replace(asked, text=_question(said, "at"))
        else:
            values = balancer.of_balancer(scene.plan)
            yield replace(
                asked, kind="phase", node=scene.master, phase="balancer", target="", values=values
            )
        serves = asked.name
    record = Step(name=scene.own("api-name"), kind="record", after=(serves, stamp.name))
    yield record
    yield Step(
        name=scene.own("api-name-known"),
        kind="local",
        after=(record.name,),
        target=f"sleep {api_record.TTL_S} # ",
        stamp=stamp.name,
    )


def has_record(scene: Scene) -> bool:
    """Whether the stack makes a record of the API's name."""
    return api_record.zone(scene.plan.spec) is not None


def _question(said: dict[str, object], key: str) -> From:
    return From((ca(), Source("door")), lambda pem, at: json.dumps({**said, "ca": pem, key: [*at]}))


def asked_from_here(scene: Scene, after: tuple[str, ...]) -> Iterator[Step]:
    """The API as clients outside find it, where the config wants it; it changes nothing."""
    said = balancer.of_door(scene.plan)
    if said is None:
        return
    text = _question(said, "addresses")
    if not balancer.is_known_here(scene.plan):
        text = From((ca(),), lambda pem: json.dumps({**said, "ca": pem, "addresses": []}))
    elif not has_record(scene):
        at = [*scene.plan.door_addresses]
        text = From((ca(),), lambda pem: json.dumps({**said, "ca": pem, "addresses": at}))
    yield Step(
        name=scene.own("door"),
        kind="local",
        parent=scene.own("acceptance"),
        after=after,
        target=_ASKED,
        stamp=scene.attempt,
        text=text,
    )


def load_balancers(scene: Scene) -> Iterator[Step]:
    """Those that exist change one after another; new ones are made ready at once."""
    turn = last_master(scene)
    for node in scene.plan.load_balancers:
        waits = node.name in scene.settled
        yield from prepared(scene, node, turn if waits else None)
        name = scene.of(node.name, "keys")
        placed = keys.placed(
            scene,
            name,
            node,
            keys.of_load_balancer(scene.plan, node),
            after=(scene.of(node.name, "node"),),
            # Not only keys: after a reboot this is what proves that the machine is back.
            os_packages=scene.plan.spec.os.packages or "",
        )
        yield from placed if waits else of_part("new machines", placed)
        if waits:
            turn = name


def ready(scene: Scene) -> dict[str, str]:
    """By load balancer, what proves it ready."""
    return {node.name: scene.of(node.name, "keys") for node in scene.plan.load_balancers}


def tls(scene: Scene) -> Iterator[Step]:
    """The ingress tier: certificates, then a HAProxy of its own, on one machine after another."""
    out, plan = scene.own("nodes"), scene.plan
    last: tuple[str, ...] = ()
    for node in plan.ingress:
        name, files = scene.of(node.name, "ingress"), keys.of_ingress(plan)
        own = [ready(scene)[node.name]] if node.name in ready(scene) else []
        for key in files:
            yield from keys.placed(
                scene,
                f"{name}-{key.file.name}",
                node,
                [key],
                after=(out, *own, *last),
                is_patient=False,
            )
        values: dict[str, Said] = {
            **front_doors.of_ingress(plan),
            "PEMS": " ".join(f"{key.file.name}.pem" for key in files),
            "CERTIFICATES": _shown(scene),
        }
        placed = (f"{name}-{key.file.name}" for key in files)
        step = Step(
            name=name,
            kind="phase",
            node=node,
            phase="ingress",
            after=(out, *last, *placed),
            values=values,
        )
        yield from attempted(step, tuple(values[key] for key in sorted(values)))
        last = (name,)


def _shown(scene: Scene) -> Said:
    """Hash of the certificates, which are public."""
    wanted = scene.plan.spec.front_doors.ingress
    own = [Source("leaf cert", INGRESS)] if wanted and wanted.hosts else []
    given = wanted.certificates if wanted else ()
    listed = (Source("given chain", str(number)) for number, _ in enumerate(given, start=1))
    return From((*own, *listed), digests.digest)


def virtual_ip(scene: Scene) -> Iterator[Step]:
    """Who holds it, and in which order others come to; nothing without one."""
    plan = scene.plan
    made_ready = tuple(ready(scene).values())
    first = (*made_ready, *(scene.of(node.name, "ingress") for node in plan.ingress))
    if plan.load_balancers:
        yield from _by_load_balancers(scene, first)
        return
    if not plan.holders:
        return
    then = scene.previous.plan if scene.previous else None
    if then is not None and any(node.is_load_balancer for node in then.holders):
        # Whoever is to have it is standby before the others stop, and hears them: nobody has it for
        # a second only, and an update that ends on the way leaves it where it is.
        yield from _stand_by(scene, first)
        yield from _tell(scene, tuple(scene.of(node.name, "vip") for node in plan.holders))
    else:
        # Load balancers of an edit that is taken back are told before masters forget them.
        yield from _tell(scene, first)
        yield from _stand_by(scene, (scene.own("vip-holders"),))


def _by_load_balancers(scene: Scene, first: tuple[str, ...]) -> Iterator[Step]:
    """Masters let them hear who has it, and stop once all of them are standby."""
    plan = scene.plan
    values = front_doors.of_others(plan)
    last = (scene.of(_in_turn(scene)[-1].name, "vip"),) if plan.holders else first
    stopped: list[Step] = []
    for node in plan.masters:
        step = _phase(scene, scene.of(node.name, "vip"), node, "vip-away", values, last)
        stamp, stamped = _with_stamp(step, values)
        yield stamp
        stopped.append(stamped)
    if plan.holders:
        peers = front_doors.of_peers(plan)
        for node in plan.masters:
            # By the stamp of what stops it: what is tried again, or undone, begins here.
            step = _phase(scene, scene.of(node.name, "vip-peers"), node, "vip-peers", peers, first)
            yield replace(step, stamp=f"{scene.of(node.name, 'vip')}-attempt")
        heard = (scene.of(node.name, "vip-peers") for node in plan.masters)
        yield from _tell(scene, (*first, *heard))
        yield from _stand_by(scene, (scene.own("vip-holders"),))
    yield from stopped


def _in_turn(scene: Scene) -> list[Node]:
    """Who exists hears of new ones first, for one that gets no adverts takes the address."""
    return sorted(scene.plan.holders, key=lambda node: node.name not in scene.settled)


def _stand_by(scene: Scene, first: tuple[str, ...]) -> Iterator[Step]:
    last = first
    for node in _in_turn(scene):
        values = front_doors.of_holder(scene.plan, node)
        step = _phase(scene, scene.of(node.name, "vip"), node, "vip", values, last)
        yield from _with_stamp(step, values)
        last = (step.name,)


def _tell(scene: Scene, first: tuple[str, ...]) -> Iterator[Step]:
    values = front_doors.of_told(scene.plan)
    step = _phase(scene, scene.own("vip-holders"), scene.master, "addon", values, first)
    yield from _with_stamp(step, values)


def _with_stamp(step: Step, values: dict[str, str]) -> tuple[Step, Step]:
    return attempted(step, tuple(f"{key}={values[key]}" for key in sorted(values)))


def _phase(
    scene: Scene,
    name: str,
    node: Node,
    phase: str,
    values: dict[str, str],
    after: Sequence[str],
) -> Step:
    # Who leaves is not a node any more, and gives the address up by the cluster's word.
    waits = (scene.own("nodes"), *after)
    return Step(name=name, kind="phase", node=node, phase=phase, after=waits, values=values)
