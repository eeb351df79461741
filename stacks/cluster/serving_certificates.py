"""Serving certificates of kubelets: who signs them, and whether API servers ask for it.

Three steps, an update each: kubelets sign their own (`self-signed`), the cluster's CA signs them
(`issued`), and API servers refuse any other (`verified`). Whatever the order in which nodes change,
API servers that check meet kubelets that have one.
"""

from __future__ import annotations

from stacks.cluster.plan import Plan

PATH = "kubelet.servingCertificates"


def are_issued(plan: Plan) -> bool:
    """Whether the cluster's CA signs them."""
    return plan.spec.kubelet.serving_certificates != "self-signed"


def are_verified(plan: Plan) -> bool:
    """Whether API servers refuse a kubelet whose certificate the CA has not signed."""
    return plan.spec.kubelet.serving_certificates == "verified"
