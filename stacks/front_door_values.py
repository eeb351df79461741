"""What the phases vip and ingress make of a master: their values, none of them secret."""

from __future__ import annotations

from stacks.files import ingress, keepalived, value
from stacks.plan import Node, Plan


def of_holder(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the vip phase."""
    vip = plan.spec.front_doors.vip
    return {
        "ADDRESS": node.address,
        "VIP": plan.vip,
        "INTERFACE": vip.interface if vip else "",
        "KEEPALIVED_CONF": value.of(keepalived.holder(plan, node)),
        "KEEPALIVED_DROPIN": value.of(keepalived.drop_in(plan, node)),
        "GENERATION": str(plan.spec.converge.generation),
    }


def of_ingress(plan: Plan) -> dict[str, str]:
    """Values of the ingress phase, but for PEMS and CERTIFICATES."""
    wanted = plan.spec.front_doors.ingress
    return {
        "INGRESS_CFG": value.of(ingress.config(plan)),
        "INGRESS_UNIT": value.of(ingress.unit()),
        # Not used by the script: they tell a reader which certificates are meant.
        "HOSTS": " ".join(wanted.hosts if wanted else ()),
        "GIVEN": " ".join(one.certificate for one in (wanted.certificates if wanted else ())),
        "GENERATION": str(plan.spec.converge.generation),
    }
