"""CAs and keys that an edit makes or drops, in words."""

from __future__ import annotations

from collections.abc import Iterable

from stacks.cluster import certificates, rotation
from stacks.cluster.plan import Plan
from stacks.config.pki import Subject
from stacks.order.difference import Difference, leafs

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


def made(then: Plan, plan: Plan) -> tuple[str, ...]:
    """What comes to be in the state before any machine has it."""
    was, now = _held(then), _held(plan)
    words = [
        f"new {_WHAT[subject]}, generation {number}"
        for subject, number in now
        if (subject, number) not in was
    ]
    return (*words, *_renewal(then, plan), *_of_outputs(then, plan))


def _renewal(then: Plan, plan: Plan) -> tuple[str, ...]:
    was, now = (one.spec.pki.leaf_renewal_hours for one in (then, plan))
    if was == now:
        return ()
    old, new = ({text for _, text in leafs(one, certificates.table(one))} for one in (then, plan))
    if not old & new:  # all are new ones, which have it from the start
        return ()
    text = f"leafs are renewed by the first update within {now} hours of their end ({was} before)"
    return (f"{text}; that is noted with each of them in the state",)


def settled(then: Plan | None, plan: Plan, finished: tuple[str, ...]) -> tuple[str, ...]:
    """What is done once every master has made the step."""
    if then is None:
        return finished
    was, now = _held(then), _held(plan)
    gone = [
        f"{_WHAT[subject]}, generation {number}: forgotten"
        for subject, number in was
        if (subject, number) not in now
    ]
    return (*finished, *gone)


def again(running: Iterable[Difference]) -> tuple[str, ...]:
    """Of a command that has nothing new to write."""
    text = "CAs and keys that count are written down again, nothing changes"
    return (text,) if [*running] else ()


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
    """Leafs that are on no node."""
    was, now = (
        {leaf.name: text for leaf, text in leafs(one, certificates.table(one)) if leaf.path is None}
        for one in (then, plan)
    )
    out = []
    for name in sorted({*was, *now} - {certificates.INGRESS}):
        if name not in now:
            out.append(f"certificate {name} is taken back from the outputs")
        elif was.get(name) != now[name]:
            out.append(f"new certificate {name} in the outputs")
    return out
