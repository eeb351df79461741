"""What phase `master` is told."""

from __future__ import annotations

from stacks.cluster import rotation
from stacks.cluster.plan import Node, Plan
from stacks.phases import serving_certificates
from stacks.render import apiserver, audit, authentication, kubeadm, value


def of_master(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the master phase, but for CERTIFICATES and APPLIED."""
    audited = plan.spec.control_plane.audit.enabled
    return {
        "ADDRESS": node.address,
        "KUBEADM_CONFIG": value.of(kubeadm.init(plan, node)),
        "AUDIT_POLICY": value.of(audit.policy(plan)) if audited else "",
        "ADMISSION_CONFIG": value.of(apiserver.admission_configuration(plan)),
        "AUDIT_WEBHOOK": value.of(audit.webhook(plan)),
        "AUTHENTICATION": value.of(authentication.configuration(plan)),
        "OIDC_CA": value.of(authentication.oidc_ca(plan)),
        **serving_certificates.values(plan),
        "KEYS": rotation.words(plan),
    }
