"""Where each key of the cluster is in its rotation: which generations count, which one signs.

A rotation takes three steps, each an update of its own: `trust` (the new one is known everywhere),
`issue` (it signs, or encrypts), `drop` (the old one is gone). Whatever the order in which nodes
change, one that has made the step and one that has not understand each other.
"""

from __future__ import annotations

from collections.abc import Mapping

from stacks.cluster.plan import Plan
from stacks.config.pki import RotationSpec, Subject
from stacks.config.spec import Spec

PATHS: Mapping[Subject, str] = {
    "kubernetes": "pki.rotation.kubernetes",
    "etcd": "pki.rotation.etcd",
    "front-proxy": "pki.rotation.frontProxy",
    "service-account": "pki.rotation.serviceAccount",
    "encryption": "controlPlane.encryptionKey",
    "seed": "pki.rotation.seed",
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
        "seed": pki.seed,
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


def encryption_keys(spec: Spec) -> dict[str, tuple[int, int]]:
    """Keys of Secrets by name, the one that encrypts first: generations of itself and of its seed.

    Each of the one with each of the other: whatever step of both a master has made, it can read
    what any other writes.
    """
    pairs = (
        (own, seed)
        for own in generations(spec.control_plane.encryption_key)
        for seed in generations(spec.pki.rotation.seed)
    )
    return {
        f"key-{own}" + (f"-seed-{seed}" if seed > 1 else ""): (own, seed) for own, seed in pairs
    }


def encrypts(plan: Plan) -> str:
    """Name of the key that Secrets are written with."""
    return next(iter(encryption_keys(plan.spec)))
