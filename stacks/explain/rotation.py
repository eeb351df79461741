"""Rotations in words: what an edit moves, and what is done once every master has made the step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stacks.cluster import rotation
from stacks.cluster.plan import Plan
from stacks.config.pki import RotationSpec, Subject

NAMES: Mapping[Subject, str] = {
    "kubernetes": "the Kubernetes CA",
    "etcd": "the etcd CA",
    "front-proxy": "the front-proxy CA",
    "service-account": "the service account key",
    "encryption": "the encryption key of Secrets",
    "seed": "the seed of derived keys",
}


def finished(then: Plan, plan: Plan) -> tuple[str, ...]:
    """What is done once every master has made the step, for those that are not nodes."""
    subjects = {subject for subject, _, _ in moved(then, plan)}
    out = []
    if "kubernetes" in subjects:
        out.append("pods of every namespace and nodes that join learn the CAs of this step")
    if subjects & {"kubernetes", "front-proxy"}:
        out.append("extension API servers learn the CAs of this step")
    if subjects & {"encryption", "seed"} and plan.spec.control_plane.encrypt_secrets:
        out.append(
            f"Secrets that are under another key are written again with {rotation.encrypts(plan)}"
        )
    return tuple(out)


def moved(then: Plan, plan: Plan) -> Iterator[tuple[Subject, RotationSpec, RotationSpec]]:
    """What an edit moves: (subject, where it was, where it goes)."""
    was = rotation.of(then.spec)
    for subject, now in rotation.of(plan.spec).items():
        if was[subject] != now:
            yield subject, was[subject], now
