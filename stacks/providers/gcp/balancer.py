"""The load balancer before the masters on Google Cloud: passthrough, so it ends no TLS."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.config.ports import API_PORT
from stacks.providers.gcp.scope import Scope
from stacks.providers.resources import Kind, Options, Ref, Resource, Value
from stacks.providers.site import Machine

_KIND: Kind = "load balancer"


def balancer(scope: Scope) -> Iterator[Resource]:
    """Groups of masters by zone behind one address."""
    kind, zones = scope.site.balancer, _zones(scope)
    if kind == "none":
        return
    for zone in zones:
        yield Resource(
            _group(zone),
            _KIND,
            "gcp.compute.InstanceGroup",
            # Who is in it is said by memberships, one a master.
            Options(ignores=("instances",)),
        ).of(name=scope.called(_group(zone)), zone=zone, network=scope.network)
    name, region = scope.called(f"api-{kind}"), scope.said.region
    yield Resource(f"api-{kind}-check", _KIND, "gcp.compute.RegionHealthCheck").of(
        name=name,
        region=region,
        check_interval_sec=5,
        timeout_sec=3,
        healthy_threshold=2,
        unhealthy_threshold=2,
        https_health_check={"port": API_PORT, "request_path": "/readyz"},
    )
    yield Resource(f"api-{kind}-service", _KIND, "gcp.compute.RegionBackendService").of(
        name=name,
        region=region,
        protocol="TCP",
        load_balancing_scheme=kind.upper(),
        health_checks=Ref(f"api-{kind}-check"),
        connection_draining_timeout_sec=30,
        backends=[
            {"group": Ref(_group(zone), "self_link"), "balancing_mode": "CONNECTION"}
            for zone in zones
        ],
    )
    yield from _door(scope)


def of_master(scope: Scope, machine: Machine) -> Iterator[Resource]:
    """A target of it. A machine recreated under its name is one again."""
    instance, is_none = f"{machine.name}-machine", scope.site.balancer == "none"
    if machine.is_master and not is_none and machine.zone in _zones(scope):
        yield Resource(
            _target(machine.name),
            _KIND,
            "gcp.compute.InstanceGroupMembership",
            Options(trigger=str(machine.generation), deleted_first=True, deleted_with=instance),
        ).of(
            instance=Ref(instance, "self_link"),
            instance_group=Ref(_group(machine.zone), "name"),
            zone=machine.zone,
        )


def parts(scope: Scope) -> tuple[str, ...]:
    """Names of what has to be there before it serves."""
    kind, masters = scope.site.balancer, scope.site.masters
    return () if kind == "none" else (f"api-{kind}", *map(_target, masters))


def _target(node: str) -> str:
    return f"{node}-balanced"


def _group(zone: str) -> str:
    return f"masters-{zone}"


def _zones(scope: Scope) -> list[str]:
    """Where masters are."""
    masters = scope.site.masters
    return sorted({one.zone for one in scope.site.machines if one.zone and one.name in masters})


def _door(scope: Scope) -> Iterator[Resource]:
    """The address, and the rule that forwards from it."""
    kind = scope.site.balancer
    at: dict[str, Value] = {
        "ports": [str(API_PORT)],
        "ip_address": scope.site.balancer_addresses[0],
        "network": scope.network,
        "subnetwork": scope.subnetwork,
        "allow_global_access": True,
    }
    if kind == "external":
        yield scope.address(f"api-{kind}", _KIND)
        at = {"port_range": str(API_PORT), "ip_address": Ref(f"api-{kind}-address", "address")}
    yield Resource(f"api-{kind}", _KIND, "gcp.compute.ForwardingRule").of(
        name=scope.called(f"api-{kind}"),
        region=scope.said.region,
        load_balancing_scheme=kind.upper(),
        ip_protocol="TCP",
        backend_service=Ref(f"api-{kind}-service"),
        labels=scope.labels,
        **at,
    )
