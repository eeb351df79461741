"""Where each key of the cluster stands in its rotation: which generations count, which one signs.

A rotation takes three steps, each an up of its own: `trust` (the new one is known everywhere),
`issue` (it signs, or encrypts), `drop` (the old one is gone). Whatever the order in which nodes
change, one that has made the step and one that has not understand each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from stacks.problems import Problem
from stacks.refusals import Refusal
from stacks.settings import RotationSpec, Step

if TYPE_CHECKING:
    from stacks.memory import Memory
    from stacks.plan import Plan
    from stacks.spec import Spec

Subject = Literal["kubernetes", "etcd", "front-proxy", "service-account", "encryption"]

PATHS: Mapping[Subject, str] = {
    "kubernetes": "pki.rotation.kubernetes",
    "etcd": "pki.rotation.etcd",
    "front-proxy": "pki.rotation.frontProxy",
    "service-account": "pki.rotation.serviceAccount",
    "encryption": "controlPlane.encryptionKey",
}
_STEPS: tuple[Step, ...] = ("trust", "issue", "drop")
# What skipping to a step would do.
_TOO_EARLY = {
    "trust": "the generation before is not in use on every node",
    "issue": "nodes that do not know the new one would refuse what it made",
    "drop": "what the old one made is still in use",
}


def of(spec: Spec) -> dict[Subject, RotationSpec]:
    """Every rotation by what it is about."""
    pki = spec.pki.rotation
    return {
        "kubernetes": pki.kubernetes,
        "etcd": pki.etcd,
        "front-proxy": pki.front_proxy,
        "service-account": pki.service_account,
        "encryption": spec.control_plane.encryption_key,
    }


def generations(rotation: RotationSpec) -> tuple[int, ...]:
    """Those that count now, one or two; the one that signs or encrypts comes first."""
    newest = rotation.generation
    if rotation.step == "trust" and newest > 1:
        return newest - 1, newest
    if rotation.step == "issue" and newest > 1:
        return newest, newest - 1
    return (newest,)


def signing(rotation: RotationSpec) -> int:
    """The generation that signs or encrypts."""
    return generations(rotation)[0]


def listed(rotation: RotationSpec) -> str:
    """`2,1`: the generations that count, the one that signs or encrypts first."""
    return ",".join(map(str, generations(rotation)))


def has_begun(rotation: RotationSpec) -> bool:
    """Whether there ever was another one than that of the cluster's first day."""
    return rotation.generation > 1


def words(plan: Plan) -> str:
    """`etcd=1,2 kubernetes=2`: generations that count of what ever was rotated; empty at first."""
    return " ".join(
        f"{subject}={listed(rotation)}"
        for subject, rotation in of(plan.spec).items()
        if has_begun(rotation)
    )


def annotation(plan: Plan) -> dict[str, str]:
    """Of pod templates: pods restart to read the CAs of the API again, and to have new tokens."""
    found = of(plan.spec)
    said = {
        subject: listed(found[subject])
        for subject in ("kubernetes", "service-account")
        if has_begun(found[subject])
    }
    text = " ".join(f"{subject}={known}" for subject, known in said.items())
    return {"kube-ha/keys": text} if text else {}


def encrypts(plan: Plan) -> str:
    """Name of the key that Secrets are written with."""
    return f"key-{signing(plan.spec.control_plane.encryption_key)}"


def problems(spec: Spec) -> list[Problem]:
    """Steps that no cluster can be in."""
    out = []
    for subject, rotation in of(spec).items():
        if rotation.generation == 1 and rotation.step != "drop":
            text = f"{rotation.step!r} of generation 1, which is there from birth"
            out.append(Problem(f"{PATHS[subject]}.step", f"{text}; set generation: 2"))
    if not spec.control_plane.encrypt_secrets and has_begun(spec.control_plane.encryption_key):
        text = "does nothing while controlPlane.encryptSecrets is false"
        out.append(Problem(PATHS["encryption"], text))
    return out


def refusals(before: Memory, plan: Plan) -> list[Refusal]:
    """Every rotation that would skip a step, or take back one that cannot be."""
    then = of(before.plan.spec) if before.plan else {}
    out = []
    for subject, now in of(plan.spec).items():
        was = then.get(subject, RotationSpec())
        text = _refused(subject, was, now)
        if text:
            out.append(Refusal("rotation", subject, PATHS[subject], text))
    return out


def _refused(subject: Subject, was: RotationSpec, now: RotationSpec) -> str:
    """Why not, and the way; empty when the step may be made."""
    steps = _place(now) - _place(was)
    if steps in (0, 1) or (steps == -1 and _may_go_back(subject, was)):
        return ""
    if steps > 1:
        reason = f"{_word(was)} is the last step that every node has made: {_TOO_EARLY[now.step]}"
    elif was.step == "drop":
        reason = f"generation {was.generation - 1} was dropped, its key is gone for good"
    else:
        reason = f"generation {was.generation} may be in use by an up that broke off"
    return f"cannot go from {_word(was)} to {_word(now)}: {reason}; set {_word(_next(was))}"


def _may_go_back(subject: Subject, was: RotationSpec) -> bool:
    # Encryption keys are derived, so an old one can be had again; a CA's key cannot. From `trust`
    # no way leads back: an up of `issue` that broke off is not remembered, and may have used it.
    return was.step == "issue" or (subject == "encryption" and was.step == "drop")


def _place(rotation: RotationSpec) -> int:
    return len(_STEPS) * rotation.generation + _STEPS.index(rotation.step)


def _next(rotation: RotationSpec) -> RotationSpec:
    place = _place(rotation) + 1
    number, step = divmod(place, len(_STEPS))
    return RotationSpec(generation=number, step=_STEPS[step])


def _word(rotation: RotationSpec) -> str:
    return f"{{generation: {rotation.generation}, step: {rotation.step}}}"


def finished(then: Plan, plan: Plan) -> tuple[str, ...]:
    """What is done once every master has made the step, for those that are no nodes."""
    subjects = {subject for subject, _, _ in moved(then, plan)}
    out = []
    if "kubernetes" in subjects:
        out.append("pods of every namespace and nodes that join learn the CAs of this step")
    if subjects & {"kubernetes", "front-proxy"}:
        out.append("extension API servers learn the CAs of this step")
    if "encryption" in subjects:
        out.append(f"Secrets that lie under another key are written anew with {encrypts(plan)}")
    return tuple(out)


def moved(then: Plan, plan: Plan) -> Iterator[tuple[Subject, RotationSpec, RotationSpec]]:
    """What an edit moves: (subject, where it was, where it goes)."""
    was = of(then.spec)
    for subject, now in of(plan.spec).items():
        if was[subject] != now:
            yield subject, was[subject], now
