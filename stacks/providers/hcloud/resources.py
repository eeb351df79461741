"""All resources of a cluster on Hetzner Cloud: network and doors first, then the machines."""

from __future__ import annotations

from stacks.providers.cloud import leads
from stacks.providers.hcloud import balancer, machines
from stacks.providers.hcloud.network import firewalls, network
from stacks.providers.hcloud.scope import Scope
from stacks.providers.resources import Ref, Resources
from stacks.providers.site import Site


def resources(site: Site) -> Resources:
    """Of the cluster and of each of its machines, by the provider that the token is given to."""
    said = site.spec.machines.hcloud
    if said is None:
        raise ValueError("machines.hcloud is missing")
    scope = Scope(site, said)
    made = {one.name: machines.machine(scope, one) for one in site.machines}
    outside = Ref("api-external", "ipv4") if site.balancer == "external" else None
    at = leads(site, outside, {name: one.address for name, one in made.items()})
    return Resources(
        around=(
            *network(scope),
            *firewalls(scope),
            *machines.around(scope),
            *balancer.balancer(scope),
            *balancer.ingress(scope),
        ),
        machines=made,
        balancer=None if site.balancer == "none" else at[0],
        balancer_parts=balancer.parts(scope),
        ingress=Ref("ingress", "ipv4") if site.ingress else None,
        record_values=at,
    )
