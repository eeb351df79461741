"""All resources of a cluster on AWS: network and doors first, then the machines."""

from __future__ import annotations

from stacks.providers.aws import balancer, dns, images, ingress, machines, store
from stacks.providers.aws.account import account
from stacks.providers.aws.identity import identity
from stacks.providers.aws.machines import Ground
from stacks.providers.aws.network import network, ways
from stacks.providers.aws.scope import Scope
from stacks.providers.aws.security_groups import rules, security_groups
from stacks.providers.cloud import leads
from stacks.providers.resources import Ref, Resource, Resources
from stacks.providers.site import Site


def resources(site: Site) -> Resources:
    """Of the cluster and of each of its machines."""
    said = site.spec.machines.aws
    if said is None:
        raise ValueError("machines.aws is missing")
    scope, is_external = Scope(site, said), site.balancer == "external"
    net, doors = tuple(network(scope)), tuple(security_groups(scope))
    ground = Ground(scope, ways(net), rules(doors))
    bastion = tuple(machines.bastion(ground, site.bastion)) if site.bastion else ()
    before = tuple(one.name for one in bastion[-1:])
    made = {one.name: machines.machine(ground, one, before) for one in site.machines}
    outside = Ref("api-external", "dns_name") if is_external else None
    at = leads(site, outside, {name: one.address for name, one in made.items()})
    return Resources(
        around=(
            _provider(scope),
            *images.lookups(scope),
            *net,
            *doors,
            *account(scope, "nodes", said.policies),
            *store.role(scope),
            _apart(scope),
            *identity(scope),
            *bastion,
            *balancer.balancer(scope, ground.ways),
            *ingress.ingress(scope, ground.ways),
            *dns.zone(scope),
        ),
        machines=made,
        bastion=Ref("bastion-address", "public_ip") if said.access == "bastion" else None,
        balancer=None if site.balancer == "none" else at[0],
        balancer_parts=balancer.parts(scope),
        ingress=ingress.ADDRESS if site.ingress else None,
        record=dns.record(scope, at),
        record_values=at,
        record_is_alias=is_external,
    )


def _provider(scope: Scope) -> Resource:
    account = scope.said.account
    # Credentials of another account end the first call, before anything is made.
    allowed = [account] if account else None
    type_, region = "aws.Provider", scope.said.region
    return Resource("aws", "account", type_).of(region=region, allowed_account_ids=allowed)


def _apart(scope: Scope) -> Resource:
    name, type_ = scope.called("etcd"), "aws.ec2.PlacementGroup"
    tags = scope.tags(name)
    return Resource("etcd-apart", "account", type_).of(name=name, strategy="spread", tags=tags)
