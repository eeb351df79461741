"""Identities of machines that were given up, and what makes them worthless.

A kubelet's certificate cannot be called back: who has it is that node, until it has expired or its
CA is trusted no more. So whoever was lost or compromised stays fenced, also when the config says
nothing of it any more: the stack's memory carries it on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from stacks.cluster import rotation
from stacks.cluster.plan import Fenced, Node, Plan
from stacks.config.fields import GIVEN_UP, GivenUp
from stacks.config.pki import Subject
from stacks.config.spec import Spec


def given_up(spec: Spec, away: Iterable[Node]) -> tuple[Fenced, ...]:
    """Those that the config itself says, as if it happened now."""
    found = sorted(away, key=lambda node: node.name)
    return tuple(_now(spec, node) for node in found if node.state in GIVEN_UP)


def _now(spec: Spec, node: Node) -> Fenced:
    known = rotation.of(spec)
    state: GivenUp = "compromised" if node.state == "compromised" else "lost"
    held = _held(spec, node) if state == "compromised" else ("kubernetes",)
    keys = in_turn({subject: rotation.signing(known[subject]) for subject in held})
    return Fenced(name=node.name, generation=node.generation, state=state, keys=keys)


def _held(spec: Spec, node: Node) -> tuple[Subject, ...]:
    """What is on a machine of these roles, or is signed by it."""
    held: list[Subject] = []
    if node.in_kubernetes or node.is_load_balancer:
        held.append("kubernetes")
    if node.in_kubernetes:
        held.append("service-account")  # tokens of its pods
    if node.is_master:
        held.append("front-proxy")
    if node.is_master or node.is_etcd:
        held.append("etcd")
    if node.is_master and spec.control_plane.encrypt_secrets:
        held.append("encryption")
    if node.is_etcd and spec.etcd.backup.encrypt:
        held.append("seed")  # the key of snapshots
    return tuple(held)


def in_turn(keys: Mapping[Subject, int]) -> tuple[tuple[Subject, int], ...]:
    """In one order, however they were put together: what is remembered compares as equal."""
    return tuple((subject, keys[subject]) for subject in get_args(Subject) if subject in keys)


def counting(one: Fenced, plan: Plan) -> tuple[tuple[Subject, int], ...]:
    """What of it counts still, with the generation that has to go."""
    known = rotation.of(plan.spec)
    return tuple(
        (subject, held)
        for subject, held in one.keys
        if min(rotation.generations(known[subject])) <= held
    )


def rotations(one: Fenced, plan: Plan) -> tuple[str, ...]:
    """Steps of rotations that make worthless what it held: `pki.rotation.etcd to {...}`."""
    return tuple(
        f"{rotation.PATHS[subject]} to {{generation: {held + 1}, step: drop}}"
        for subject, held in counting(one, plan)
    )


def _is_known(one: Fenced, plan: Plan) -> bool:
    """Whether API servers take its certificate."""
    return any(subject == "kubernetes" for subject, _ in counting(one, plan))


def shut_out(plan: Plan) -> tuple[Fenced, ...]:
    """Whose name stands for nobody now: everything by that name is refused."""
    here = {node.name for node in plan.nodes}
    return tuple(one for one in plan.fenced if one.name not in here and _is_known(one, plan))


def replaced(plan: Plan) -> tuple[tuple[Fenced, Node], ...]:
    """Whose name stands for a later incarnation."""
    here = {node.name: node for node in plan.nodes}
    return tuple(
        (one, here[one.name]) for one in plan.fenced if one.name in here and _is_known(one, plan)
    )


def known_anew(plan: Plan) -> tuple[tuple[Fenced, Node], ...]:
    """Of these, those whose certificates the cluster itself gives: workers.

    A master makes its kubelet's certificate by the CA's key, which one that was given up has too.
    """
    return tuple((one, node) for one, node in replaced(plan) if node.is_worker)


def as_memory(plan: Plan) -> dict[str, object]:
    """Plain JSON values, read back by `of_memory`."""
    return {
        one.name: {"generation": one.generation, "state": one.state, "keys": dict(one.keys)}
        for one in plan.fenced
    }


def of_memory(found: Mapping[str, object]) -> tuple[Fenced, ...]:
    """What `as_memory` wrote. Raises ValueError when it is something else."""
    return tuple(_of_memory(str(name), value) for name, value in sorted(found.items()))


def _of_memory(name: str, value: object) -> Fenced:
    held = value if isinstance(value, Mapping) else {}
    keys, state = held.get("keys"), held.get("state")
    if not isinstance(keys, Mapping) or state not in GIVEN_UP:
        msg = f"fenced node {name!r}"
        raise ValueError(msg)
    return Fenced(
        name=name,
        generation=_whole(held.get("generation")),
        state="compromised" if state == "compromised" else "lost",
        keys=in_turn(
            {subject: _whole(keys[subject]) for subject in get_args(Subject) if subject in keys}
        ),
    )


def _whole(value: object) -> int:
    # The engine gives every number back as a float.
    if not isinstance(value, int | float):
        msg = f"no number: {value!r}"
        raise ValueError(msg)
    return int(value)


def until(one: Fenced) -> str:
    """How long the old certificate is one."""
    held = dict(one.keys)["kubernetes"]
    path = rotation.PATHS["kubernetes"]
    return f"until {path} has dropped generation {held}"
