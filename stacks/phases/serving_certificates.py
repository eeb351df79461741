"""What phases are told of the certificates that kubelets serve with."""

from __future__ import annotations

from stacks.cluster import clouds, serving_certificates
from stacks.cluster.plan import Plan


def values(plan: Plan) -> dict[str, str]:
    # A cloud controller manager of AWS gives nodes other names to serve under.
    domain = clouds.inner_domain(plan.spec)
    named = {"CLOUD_DOMAIN": domain} if domain else {}
    return {"SERVING_ISSUED": "1" if serving_certificates.are_issued(plan) else "", **named}
