"""What the phases of the doors make of a machine: their values, none of them secret."""

from __future__ import annotations

from stacks.cluster.plan import Node, Plan
from stacks.phases import system_addons
from stacks.render import ingress, keepalived, value
from stacks.render.vip_holders import vip_holders


def of_holder(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the vip phase."""
    vip = plan.spec.front_doors.vip
    return {
        **(_of_load_balancer(node) if node.is_load_balancer else {}),
        "ADDRESS": node.address,
        "VIP": plan.vip,
        "INTERFACE": vip.interface if vip else "",
        "KEEPALIVED_CONF": value.of(keepalived.holder(plan, node)),
        "KEEPALIVED_DROPIN": value.of(keepalived.drop_in(plan, node)),
        "GENERATION": str(plan.spec.converge.generation),
    }


def _of_load_balancer(node: Node) -> dict[str, str]:
    resting = {"RESTING": "1"} if node.state == "maintenance" else {}
    return {"GENERATION_HERE": str(node.generation), **resting}


def of_peers(plan: Plan) -> dict[str, str]:
    """Values of the vip-peers phase, on masters beside load balancers."""
    return {"PEERS": " ".join(node.address for node in plan.load_balancers)}


def of_others(plan: Plan) -> dict[str, str]:
    """Values of the vip-away phase, on masters beside load balancers."""
    own = {"OWN_FAILOVER": "1"} if not plan.holders else {}
    return {"VIP": plan.vip, **own, "GENERATION": str(plan.spec.converge.generation)}


def of_told(plan: Plan) -> dict[str, str]:
    """Values of the addon phase that tells the cluster which load balancers may have the VIP."""
    return system_addons.of_addon(plan, "vip-holders", vip_holders(plan))


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
