"""Who notices what of an edit, and why: one answer for each audience, derived from what is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from stacks.catalogue import registry as catalogue
from stacks.cluster import rotation as cluster_rotation
from stacks.cluster.certificates import api_names
from stacks.cluster.names import spoken
from stacks.cluster.plan import Plan
from stacks.config import token_issuers
from stacks.edits import api_record, membership
from stacks.edits.memory import Memory
from stacks.explain import etcd_door, evictions, firewall, rotation, virtual_ip
from stacks.explain.changes import Changes
from stacks.explain.restarts import Restarts
from stacks.networks import registry as networks

Audience = Literal["API clients outside", "API clients inside", "etcd", "pods", "ingress"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """What one audience notices; without a notice, why it notices nothing."""

    audience: Audience
    notices: tuple[str, ...]
    why_none: str


def disruption(before: Memory | None, plan: Plan, found: Changes) -> tuple[Disruption, ...]:
    """One for each audience that is there; none where nobody is yet, or nothing is known."""
    if before is None or before.plan is None:
        return ()
    then, restarts = before.plan, Restarts(before, plan, found)
    both = (*restarts.no_api(), *restarts.no_quorum())
    tier = any(bool(one.ingress) or one.has_ingress_balancer for one in (then, plan))
    notices: Mapping[Audience, Iterable[str]] = {
        "API clients outside": (*both, *_outside(before, then, plan, restarts)),
        "API clients inside": (*both, *_tokens(then, plan)),
        "etcd": (*restarts.no_quorum(), *restarts.no_tolerance(), *etcd_door.notices(then, plan)),
        "pods": (*evictions.notices(before, plan, found), *_pods(before, then, plan)),
        "ingress": (*_ingress(before, then, plan),),
    }
    return tuple(
        Disruption(
            audience=audience,
            notices=tuple(dict.fromkeys(said)),
            why_none="" if said else _why(audience, restarts),
        )
        for audience, said in notices.items()
        if audience != "ingress" or tier
    )


def _why(audience: Audience, restarts: Restarts) -> str:
    match audience:
        case "etcd":
            return restarts.members()
        case "pods":
            return "no pod is evicted"
        case "ingress":
            return "open connections to it are kept"
        case _:
            return restarts.api_servers()


def _outside(before: Memory, then: Plan, plan: Plan, restarts: Restarts) -> Iterator[str]:
    yield from restarts.of_endpoint()
    yield from virtual_ip.away(before, plan)
    yield from virtual_ip.ends(then, plan)
    yield from virtual_ip.moves(before, then, plan)
    yield from _endpoint(then, plan)
    yield from (f"{line}: clients of it lose the API" for line in api_record.deleted(before, plan))
    if then.balancer not in ("none", plan.balancer):
        yield f"the {then.balancer} load balancer of the API is deleted, with its address"
    if names := _names_that_go(then, plan):
        yield f"certificates of the API no longer hold {', '.join(names)}"
    yield from _kubeconfigs(then, plan)
    yield from firewall.api_notices(then, plan)


def _endpoint(then: Plan, plan: Plan) -> Iterator[str]:
    """What clients dial that have the kubeconfig of before; with the VIP other words tell of it."""
    if then.endpoint == then.vip or _still_serves(then, plan):
        return
    if then.endpoint != plan.endpoint:
        yield (
            f"the endpoint {then.endpoint} becomes {plan.endpoint}: clients of the old one need a "
            "new kubeconfig"
        )
    elif then.endpoint.rpartition(":")[0] in {node.address for node in then.masters}:
        yield f"the endpoint {then.endpoint} is of a master that leaves: its clients lose the API"


def _still_serves(then: Plan, plan: Plan) -> bool:
    """The endpoint of before, though it is the endpoint no more."""
    if then.balancer != "none" and then.spec.cluster.endpoint is None:
        return then.balancer == plan.balancer
    host = then.endpoint.rpartition(":")[0]
    if was := {node.name for node in then.masters if node.address == host}:
        return any(node.name in was and node.address == host for node in plan.masters)
    return all(host in api_names(plan, node) for node in plan.masters)


def _names_that_go(then: Plan, plan: Plan) -> list[str]:
    """Names in certificates of API servers that stay; other words tell of endpoint and VIP."""
    told = {then.endpoint.rpartition(":")[0], then.vip.rpartition(":")[0]}
    stay = {node.name: node for node in plan.masters}
    return sorted(
        {
            name
            for old in then.masters
            if old.name in stay
            for name in {*api_names(then, old)} - {*api_names(plan, stay[old.name])}
        }
        - told
    )


def _kubeconfigs(then: Plan, plan: Plan) -> Iterator[str]:
    for subject, was, now in rotation.moved(then, plan):
        if subject != "kubernetes":
            continue
        # Back from `issue`: the CA of before signs again, which everybody knows.
        if cluster_rotation.signing(was) < cluster_rotation.signing(now):
            yield "kubeconfigs from before step `trust` do not know the CA that signs from now on"
        elif now.step == "drop":
            yield "kubeconfigs from before step `issue` are refused from now on"
    if then.spec.pki.admin_generation not in (None, plan.spec.pki.admin_generation):
        yield "the stack's kubeconfig from before may do nothing from now on; take the output again"


def _tokens(then: Plan, plan: Plan) -> Iterator[str]:
    for subject, _, now in rotation.moved(then, plan):
        if subject == "service-account" and now.step == "drop":
            yield "tokens of service accounts from before step `issue` are refused from now on"
    taken = token_issuers.listed(plan.spec)
    for issuer in token_issuers.listed(then.spec):
        if issuer not in taken:
            yield f"tokens of service accounts with issuer {issuer} are refused from now on"


def _pods(before: Memory, then: Plan, plan: Plan) -> Iterator[str]:
    was, now = then.spec.network, plan.spec.network
    for key, _ in networks.cuts(then.spec, plan.spec):
        yield (
            "pods of different nodes do not reach each other while the pod network changes its "
            f"{type(now).model_fields[key].alias or key}"
        )
    if was.proxy_mode != now.proxy_mode and not now.kube_proxy_replacement:
        yield (
            f"connections to Services may break while kube-proxy goes from {was.proxy_mode} to "
            f"{now.proxy_mode}"
        )
    yield from _addons(then, plan)
    yield from firewall.port_notices(then, plan)
    old = {node.name: node.taints for node in then.nodes}
    recreated = membership.rebuilt(before, plan)
    tainted = [
        node.name
        for node in plan.nodes
        if node.in_kubernetes
        and node.name not in recreated
        and any(
            taint.effect == "NoExecute" and taint not in old.get(node.name, node.taints)
            for taint in node.taints
        )
    ]
    if tainted:
        yield f"pods that do not tolerate a new taint NoExecute end on {spoken(tainted)}"


def _addons(then: Plan, plan: Plan) -> Iterator[str]:
    was, now = (catalogue.chosen(one.spec) for one in (then, plan))
    bare = {name for name, entry in was.items() if not entry.ROLLOUTS}
    gone = sorted({one.name for one in then.addons} - {one.name for one in plan.addons} - bare)
    if gone:
        yield f"what add-on {', '.join(gone)} runs is deleted"
    for name, entry in sorted((was | now).items()):
        old, new = (
            one.spec.addons[name] if name in chosen else None
            for one, chosen in ((then, was), (plan, now))
        )
        yield from entry.notices(old, new)


def _ingress(before: Memory, then: Plan, plan: Plan) -> Iterator[str]:
    if then.has_ingress_balancer and not plan.has_ingress_balancer:
        yield "nothing serves ports 80 and 443 any more"
    if not then.ingress:
        return
    if not plan.ingress:
        yield "nothing serves ports 80 and 443 any more"
        return
    yield from virtual_ip.away(before, plan)
    yield from virtual_ip.moves(before, then, plan)
    if then.vip.rpartition(":")[0] != plan.vip.rpartition(":")[0]:
        yield f"it moves from {then.vip.rpartition(':')[0]} to {plan.vip.rpartition(':')[0]}"
    was, now = then.spec.front_doors.ingress, plan.spec.front_doors.ingress
    gone = sorted({*was.hosts} - {*now.hosts}) if was and now else []
    if gone:
        yield f"its certificate no longer holds {', '.join(gone)}"
    shown = {one.certificate for one in now.certificates} if now else set()
    given = [one.certificate for one in was.certificates] if was else []
    if left := sorted({*given} - shown):
        yield f"it no longer shows {', '.join(left)}"
