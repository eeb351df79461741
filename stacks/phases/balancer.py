"""What is asked at the doors of the API: phase `balancer`, and the look from this computer."""

from __future__ import annotations

from stacks.cluster import api_record
from stacks.cluster.plan import Plan
from stacks.config.ports import API_PORT

_SERVES_S = 300  # AWS asks new targets for minutes before it leads anybody to them
_DOOR_S = 60


def of_balancer(plan: Plan) -> dict[str, str]:
    """Values of the balancer phase on a master."""
    doors = " ".join(f"{address}:{API_PORT}" for address in api_record.known(plan) or ())
    return {"DOORS": doors, "LIMIT": str(_SERVES_S)}


def from_here(plan: Plan) -> dict[str, object]:
    """The same from this computer, but for the CA and where: by every address of the balancer."""
    return {"door": plan.endpoint, "limit_s": _SERVES_S, "ask": True, "addresses": []}


def is_known_here(plan: Plan) -> bool:
    """Whether this computer can ask for the API's name. What a private zone holds a master asks."""
    zone = api_record.zone(plan.spec)
    return plan.spec.front_doors.dns != "none" and not (zone and zone.private)


def of_door(plan: Plan) -> dict[str, object] | None:
    """The look at the API before the gate, but for CA and addresses; None: it is not wanted."""
    is_asked = plan.spec.front_doors.verify == "here"
    if not is_asked and not is_known_here(plan):
        return None
    made = api_record.zone(plan.spec) is not None
    return {"door": plan.endpoint, "limit_s": _DOOR_S, "ask": is_asked, "made": made}
