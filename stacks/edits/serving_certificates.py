"""Serving certificates of kubelets in an edit: no step may be skipped."""

from __future__ import annotations

from stacks.checks.refusals import Refusal
from stacks.cluster.plan import Plan
from stacks.cluster.serving_certificates import PATH
from stacks.config.kubelet import ServingCertificates
from stacks.edits.memory import Memory

_STEPS: tuple[ServingCertificates, ...] = ("self-signed", "issued", "verified")


def refusals(before: Memory, plan: Plan) -> list[Refusal]:
    """A step skipped: API servers would check while there are kubelets that sign their own."""
    was: ServingCertificates = "self-signed"  # all that there was when no config was remembered
    if before.plan is not None:
        was = before.plan.spec.kubelet.serving_certificates
    now = plan.spec.kubelet.serving_certificates
    if abs(_STEPS.index(now) - _STEPS.index(was)) < 2:
        return []
    text = (
        f"cannot go from {was!r} to {now!r} in one step: API servers that check would refuse "
        "kubelets that sign their own, and with them logs, exec and port-forward; set 'issued', "
        f"run up, then set {now!r}"
    )
    return [Refusal("serving-certificates", now, PATH, text)]
