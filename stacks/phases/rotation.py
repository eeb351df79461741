"""What phase `rotation` is told: what the cluster keeps of its CAs and keys."""

from __future__ import annotations

from stacks.cluster import rotation
from stacks.cluster.plan import Plan
from stacks.phases import nodes


def of_rotation(plan: Plan) -> dict[str, str]:
    """Values of the rotation phase; none where the keys are those of the first day."""
    keys = rotation.words(plan)
    if not keys:
        return {}
    encrypted = plan.spec.control_plane.encrypt_secrets
    return {
        "KEYS": keys,
        "ETCD_ENDPOINTS": nodes.etcd_endpoints(plan, plan.etcd),
        "ENCRYPTS": rotation.encrypts(plan) if encrypted else "",
        "GENERATION": str(plan.spec.converge.generation),
    }
