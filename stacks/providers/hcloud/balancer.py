"""Load balancers on Hetzner Cloud: of the API, and of what runs in the cluster. They end no TLS."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.config.addresses import nth
from stacks.config.clouds import HcloudSpec
from stacks.config.ports import API_PORT, INGRESS_PORTS
from stacks.providers.cloud import BALANCER_OFFSET
from stacks.providers.hcloud.network import SUBNET
from stacks.providers.hcloud.scope import Scope, number
from stacks.providers.resources import Kind, Options, Ref, Resource, Value
from stacks.providers.site import Machine

# Each has an address of its own in the network: one of the other kind is made before one goes.
OFFSETS = {"ingress": 3, "api-external": 4, "api-internal": BALANCER_OFFSET}
# By type, how many are behind it (docs.hetzner.com, "Load Balancers").
TARGETS = {"lb11": 25, "lb21": 75, "lb31": 150}
_CHECK: dict[str, Value] = {"interval": 5, "timeout": 3, "retries": 2}
# By TLS, whose certificate is not looked at.
_READY: Value = {"path": "/readyz", "tls": True, "status_codes": ["200"]}
_API: Kind = "load balancer"
_INGRESS: Kind = "ingress"


def address(said: HcloudSpec, name: str) -> str:
    """Of a load balancer, in the network."""
    return nth(said.cidr, OFFSETS[name])


def balancer(scope: Scope) -> Iterator[Resource]:
    """Before the masters; an internal one has no public interface."""
    kind = scope.site.balancer
    if kind == "none":
        return
    name = f"api-{kind}"
    yield from _made(scope, name, _API, is_public=kind == "external")
    check = {"protocol": "http", "port": API_PORT, "http": _READY, **_CHECK}
    yield _service(name, _API, API_PORT, health_check=check)


def ingress(scope: Scope) -> Iterator[Resource]:
    """Before the nodes that an ingress controller listens on."""
    wanted = scope.site.ingress
    if wanted is None:
        return
    yield from _made(scope, "ingress", _INGRESS, is_public=True)
    for port in INGRESS_PORTS:
        check = {"protocol": "tcp", "port": port, **_CHECK}
        proxied = wanted.proxy_protocol
        yield _service("ingress", _INGRESS, port, health_check=check, proxyprotocol=proxied)


def of_machine(scope: Scope, machine: Machine) -> Iterator[Resource]:
    """What it is a target of, by its address in the network."""
    kind, wanted = scope.site.balancer, scope.site.ingress
    if kind != "none" and machine.is_master:
        yield _target(machine, _balanced(machine.name, kind), f"api-{kind}", _API)
    if wanted is not None and machine.name in wanted.nodes:
        yield _target(machine, f"{machine.name}-ingress-target", "ingress", _INGRESS)


def parts(scope: Scope) -> tuple[str, ...]:
    """Names of what has to be there before that of the API serves."""
    kind = scope.site.balancer
    targets = (_balanced(name, kind) for name in scope.site.masters)
    return () if kind == "none" else (f"api-{kind}-{API_PORT}", *targets)


def _balanced(node: str, kind: str) -> str:
    return f"{node}-balanced-{kind}"


def _made(scope: Scope, name: str, kind: Kind, *, is_public: bool) -> Iterator[Resource]:
    yield Resource(name, kind, "hcloud.LoadBalancer").of(
        name=scope.called(name),
        load_balancer_type=scope.said.load_balancer_type,
        # In whichever location of it: one that is named would replace it when it goes.
        network_zone=scope.said.network_zone,
        labels=scope.labels,
    )
    yield Resource(f"{name}-network", kind, "hcloud.LoadBalancerNetwork").of(
        load_balancer_id=number(name),
        subnet_id=SUBNET,
        ip=address(scope.said, name),
        enable_public_interface=is_public,
    )


def _service(of: str, kind: Kind, port: int, **more: Value) -> Resource:
    return Resource(f"{of}-{port}", kind, "hcloud.LoadBalancerService").of(
        load_balancer_id=Ref(of), protocol="tcp", listen_port=port, destination_port=port, **more
    )


def _target(machine: Machine, name: str, of: str, kind: Kind) -> Resource:
    instance = f"{machine.name}-machine"
    opts = Options(after=(f"{of}-network",), deleted_first=True, deleted_with=instance)
    return Resource(name, kind, "hcloud.LoadBalancerTarget", opts).of(
        type="server",
        load_balancer_id=number(of),
        server_id=number(instance),
        use_private_ip=True,
    )
