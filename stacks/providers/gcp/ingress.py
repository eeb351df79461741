"""The load balancer for what runs in the cluster on Google Cloud: it leaves packets as they are."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.config.ports import INGRESS_PORTS
from stacks.providers.gcp.network import firewall
from stacks.providers.gcp.scope import Scope
from stacks.providers.resources import Kind, Options, Ref, Resource
from stacks.providers.site import Machine, Rule

_KIND: Kind = "ingress"
# Of an external passthrough one ("Health checks overview", probe IP ranges and firewall rules).
_PROBES = ("209.85.152.0/22", "209.85.204.0/22", "35.191.0.0/16")
ADDRESS = Ref("ingress-address", "address")


def ingress(scope: Scope) -> Iterator[Resource]:
    """Groups of nodes by zone behind one address, and who is let in."""
    if scope.site.ingress is None:
        return
    # All of them, so that nothing here changes with the first node of a zone.
    zones = scope.site.zones
    yield from (_of_zone(scope, zone) for zone in zones)
    name, region = scope.called("ingress"), scope.said.region
    yield Resource("ingress-check", _KIND, "gcp.compute.RegionHealthCheck").of(
        name=name,
        region=region,
        check_interval_sec=5,
        timeout_sec=3,
        healthy_threshold=2,
        unhealthy_threshold=2,
        tcp_health_check={"port": INGRESS_PORTS[0]},
    )
    yield Resource("ingress-service", _KIND, "gcp.compute.RegionBackendService").of(
        name=name,
        region=region,
        protocol="TCP",
        load_balancing_scheme="EXTERNAL",
        health_checks=Ref("ingress-check"),
        connection_draining_timeout_sec=30,
        backends=[
            {"group": Ref(_group(zone), "self_link"), "balancing_mode": "CONNECTION"}
            for zone in zones
        ],
    )
    yield scope.address("ingress", _KIND)
    yield Resource("ingress", _KIND, "gcp.compute.ForwardingRule").of(
        name=name,
        region=region,
        load_balancing_scheme="EXTERNAL",
        ip_protocol="TCP",
        backend_service=Ref("ingress-service"),
        ports=[str(port) for port in INGRESS_PORTS],
        ip_address=ADDRESS,
        labels=scope.labels,
    )
    yield from _doors(scope, scope.site.ingress.clients)


def _doors(scope: Scope, clients: tuple[str, ...]) -> Iterator[Resource]:
    """Clients keep their addresses, so they are who is let in to the machines."""
    for port in INGRESS_PORTS:
        yield _let_in(scope, f"ingress-{port}", port, clients)
    yield _let_in(scope, "ingress-health", INGRESS_PORTS[0], _PROBES)


def _of_zone(scope: Scope, zone: str) -> Resource:
    # Who is in it is said by memberships, one a node.
    opts = Options(ignores=("instances",))
    return Resource(_group(zone), _KIND, "gcp.compute.InstanceGroup", opts).of(
        name=scope.called(_group(zone)), zone=zone, network=scope.network
    )


def of_node(scope: Scope, machine: Machine) -> Iterator[Resource]:
    """A target of it. A machine recreated under its name is one again."""
    instance, wanted = f"{machine.name}-machine", scope.site.ingress
    if wanted is not None and machine.name in wanted.nodes:
        yield Resource(
            f"{machine.name}-ingress-target",
            _KIND,
            "gcp.compute.InstanceGroupMembership",
            Options(trigger=str(machine.generation), deleted_first=True, deleted_with=instance),
        ).of(
            instance=Ref(instance, "self_link"),
            instance_group=Ref(_group(machine.zone), "name"),
            zone=machine.zone,
        )


def _let_in(scope: Scope, name: str, port: int, ranges: tuple[str, ...]) -> Resource:
    rule = Rule(name=name, protocol="tcp", ports=(port, port), to="ingress", ranges=ranges)
    return firewall(scope, rule, _KIND)


def _group(zone: str) -> str:
    return f"ingress-{zone}"
