"""Why a step runs in an edit, where no value of its own that a reader knows says it."""

from __future__ import annotations

from stacks.order.difference import LEAVING, LOGIN, PATIENCE, RECREATED, SCRIPT, Difference
from stacks.phases.effects import CONNECTION, INGRESS_CERTIFICATES

_LOGIN = f"{CONNECTION.what}: {CONNECTION.then}"
_ALL_AGAIN = "converge.generation: every phase runs again, what is right stays"
_FETCHED = "places to fetch from: the next download is from there, nothing restarts"
_FOLLOWS = "phase master runs again, nothing else restarts"
_PATIENT = "runs again with another time limit, nothing restarts"
_LEAVES = "machines.onRelease: what is done when it leaves is another one, nothing restarts"
_SHOWN = f"{INGRESS_CERTIFICATES.what}: {INGRESS_CERTIFICATES.then}"
_PLACED = "keys and certificates are placed again, nothing restarts"


def of_node(one: Difference, told: str) -> str:
    """Of a machine that stays; `told`: the phase that the change plan names."""
    if LOGIN in one.by:
        return _LOGIN
    if one.step.kind == "machine":
        return "is made again where it has vanished"
    if "GENERATION" in one.by:
        return _ALL_AGAIN
    if "ARTEFACTS" in one.by and told != "master":
        return _FETCHED
    if told == "ingress" and one.by - {PATIENCE}:
        return _SHOWN
    if told == "pki" and one.by - {PATIENCE}:
        return _PLACED
    if LEAVING in one.by:
        return _LEAVES
    if one.by == {PATIENCE}:
        return _PATIENT
    follows = told == "master" and SCRIPT not in one.by
    return _FOLLOWS if follows else f"phase {told} runs again, nothing restarts"


def of_cluster(one: Difference) -> str:
    """Of what one master does for the cluster."""
    node = one.step.node
    name = node.name if node else "this computer"
    if "NODE" in one.by:
        return f"is applied from {name} from now on, nothing restarts"
    if one.by & {RECREATED, LOGIN}:
        return f"is applied again from {name}, nothing restarts"
    return "is applied again, nothing restarts"
