"""All resources of a cluster on Google Cloud: network and doors first, then the machines."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.providers.cloud import leads, role_name, short_name
from stacks.providers.gcp import balancer, dns, ingress, machines, store
from stacks.providers.gcp.identity import identity
from stacks.providers.gcp.network import firewall, network
from stacks.providers.gcp.scope import Scope
from stacks.providers.resources import Ref, Resource, Resources, Text
from stacks.providers.site import Site


def resources(site: Site) -> Resources:
    """Of the cluster and of each of its machines."""
    said = site.spec.machines.gcp
    if said is None:
        raise ValueError("machines.gcp is missing")
    scope, net = Scope(site, said), tuple(network(Scope(site, said)))
    doors = tuple(firewall(scope, rule) for rule in site.rules)
    # Machines reach nothing outside without it.
    ways = tuple(one.name for one in net if one.type == "gcp.compute.RouterNat")
    ground = (*ways, *(one.name for one in doors))
    bastion = tuple(machines.bastion(scope, site.bastion, ground)) if site.bastion else ()
    ground += tuple(one.name for one in bastion[-1:])
    made = {one.name: machines.machine(scope, one, ground) for one in site.machines}
    outside = Ref("api-external-address", "address") if site.balancer == "external" else None
    at = leads(site, outside, {name: one.address for name, one in made.items()})
    type_ = "gcp.Provider"
    return Resources(
        around=(
            Resource("gcp", "account", type_).of(project=said.project, region=said.region),
            *net,
            *doors,
            *_account(scope),
            *identity(scope),
            *bastion,
            *balancer.balancer(scope),
            *ingress.ingress(scope),
            *dns.zone(scope),
        ),
        machines=made,
        bastion=Ref("bastion-address", "address") if said.access == "bastion" else None,
        balancer=None if site.balancer == "none" else at[0],
        balancer_parts=balancer.parts(scope),
        ingress=ingress.ADDRESS if site.ingress else None,
        record=dns.record(scope, at),
        record_values=at,
    )


def _account(scope: Scope) -> Iterator[Resource]:
    """An account of their own: the project's default one may do nearly everything."""
    cluster = scope.site.cluster
    yield Resource("account", "account", "gcp.serviceaccount.Account").of(
        account_id=short_name(cluster, "nodes", limit=30),
        display_name=f"Machines of cluster {cluster}",
    )
    member = Text((Ref("account", "email"),), _member)
    for role in scope.said.service_account_roles:
        yield Resource(f"account-{role_name(role)}", "account", "gcp.projects.IAMMember").of(
            project=scope.said.project, role=role, member=member
        )
    yield from store.grant(scope, member)


def _member(email: str) -> str:
    return f"serviceAccount:{email}"
