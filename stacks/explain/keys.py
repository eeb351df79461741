"""CAs and keys that an edit makes or drops, in words."""

from __future__ import annotations

from collections.abc import Iterable

from stacks.cluster import certificates, rotation
from stacks.cluster.plan import Plan
from stacks.config.pki import Subject
from stacks.edits.memory import Memory
from stacks.explain import again

_WHAT: dict[Subject, str] = {
    "kubernetes": "CA of the cluster",
    "etcd": "CA of etcd",
    "front-proxy": "CA of extension API servers",
    "service-account": "key of service accounts",
    "seed": "seed of derived keys",
}


def born() -> tuple[str, ...]:
    """Of a cluster that is made."""
    return ("CAs, keys and certificates are made, and kept in the stack's state",)


def made(before: Memory, plan: Plan) -> tuple[str, ...]:
    """What comes to be in the state before any machine has it."""
    then = before.plan
    if then is None:
        return ()
    was, now = _held(then), _held(plan)
    words = [
        f"new {_WHAT[subject]}, generation {number}"
        for subject, number in now
        if (subject, number) not in was
    ]
    return (*words, *_of_outputs(then, plan))


def settled(before: Memory, plan: Plan, finished: tuple[str, ...]) -> tuple[str, ...]:
    """What is done once every master has made the step."""
    then = before.plan
    if then is None:
        return finished
    was, now = _held(then), _held(plan)
    gone = [
        f"{_WHAT[subject]}, generation {number}: forgotten"
        for subject, number in was
        if (subject, number) not in now
    ]
    if finished or gone:
        return (*finished, *gone)
    if rotation.words(plan) and _asked(then) != _asked(plan):
        return ("CAs and keys that count are written down again, nothing changes",)
    return ()


def _asked(plan: Plan) -> object:
    """What the command is told that no master's phase tells."""
    return (
        rotation.words(plan),
        [node.address for node in plan.etcd] if not plan.etcd_stacked else [],
        rotation.encrypts(plan),
        plan.spec.converge.generation,
    )


def _held(plan: Plan) -> list[tuple[Subject, int]]:
    """Generations that are in the state; of seeds all that there ever were."""
    known = rotation.of(plan.spec)
    out: list[tuple[Subject, int]] = []
    for subject in _WHAT:
        numbers: Iterable[int] = rotation.generations(known[subject])
        if subject == "seed":
            numbers = range(1, known[subject].generation + 1)
        out += [(subject, number) for number in sorted(numbers)]
    return out


def _of_outputs(then: Plan, plan: Plan) -> list[str]:
    """Leafs that lie on no node."""
    was = {leaf.name: leaf for leaf in certificates.table(then) if leaf.path is None}
    now = {leaf.name: leaf for leaf in certificates.table(plan) if leaf.path is None}
    out = []
    for name in sorted({*was, *now} - {certificates.INGRESS}):
        leaf = now.get(name)
        if leaf is None:
            out.append(f"certificate {name} is taken back from the outputs")
        elif was.get(name) != leaf or again.signed_anew(then, plan, leaf):
            out.append(f"new certificate {name} in the outputs")
    return out
