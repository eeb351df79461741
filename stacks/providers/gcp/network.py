"""The network of machines on Google Cloud, where none is given, and who is let in."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.providers.gcp.scope import Scope
from stacks.providers.resources import Kind, Ref, Resource
from stacks.providers.site import Rule


def network(scope: Scope) -> Iterator[Resource]:
    """Network and subnet; NAT where machines have no public address and the subnet is ours."""
    name, said, where = scope.site.cluster, scope.said, scope.network
    if said.network is None:
        yield Resource("network", "network", "gcp.compute.Network").of(
            name=name, auto_create_subnetworks=False, routing_mode="REGIONAL"
        )
    if said.subnetwork is not None:
        return
    yield Resource("subnet", "network", "gcp.compute.Subnetwork").of(
        name=name,
        network=where,
        region=said.region,
        ip_cidr_range=said.cidr,
        private_ip_google_access=True,
    )
    if said.access != "public":
        type_ = "gcp.compute.Router"
        yield Resource("router", "network", type_).of(name=name, network=where, region=said.region)
        yield _nat(scope)


def firewall(scope: Scope, rule: Rule, kind: Kind = "firewall") -> Resource:
    """What lets in the connections of a rule."""
    ports = None
    if rule.ports:
        first, last = rule.ports
        ports = [str(first) if first == last else f"{first}-{last}"]
    return Resource(f"{rule.name}-let-in", kind, "gcp.compute.Firewall").of(
        name=scope.called(rule.name),
        network=scope.network,
        # Of a network that another project shares rules are made there.
        project=scope.said.network_project,
        direction="INGRESS",
        allows=[{"protocol": rule.protocol, "ports": ports}],
        source_tags=[scope.called(group) for group in rule.groups] or None,
        source_ranges=rule.ranges or None,
        target_tags=[scope.called(rule.to)],
    )


def _nat(scope: Scope) -> Resource:
    return Resource("nat", "network", "gcp.compute.RouterNat").of(
        name=scope.site.cluster,
        router=Ref("router", "name"),
        region=scope.said.region,
        nat_ip_allocate_option="AUTO_ONLY",
        # By itself a machine has 64 ports to one address outside, for all of its pods together.
        enable_dynamic_port_allocation=True,
        enable_endpoint_independent_mapping=False,
        min_ports_per_vm=256,
        max_ports_per_vm=32768,
        source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
        subnetworks=[{"name": Ref("subnet"), "source_ip_ranges_to_nats": ["ALL_IP_RANGES"]}],
    )
