"""The operator's kubeconfig."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass

from stacks.cluster import clouds
from stacks.cluster.plan import Plan
from stacks.config.ports import API_PORT
from stacks.documents.yaml_text import documents
from stacks.providers.cloud import LOCAL

_OF_EVERY_SERVER = "kubernetes"  # among the names of every API server's certificate


@dataclass(frozen=True, slots=True)
class _Door:
    """One way to the API."""

    name: str  # of the context
    url: str
    # That the certificate is for, where it cannot be for the host of the URL.
    server_name: str = ""


def admin(
    plan: Plan, ca_pem: str, cert_pem: str, key_pem: str, *, balancer: str | None = None
) -> str:
    """One context for each door to the API; the first is current. Secret: it holds `key_pem`.

    The doors are the configured endpoint and the VIP, if there are any, then each master by
    itself, so that an operator is never locked out by a load balancer. In a cloud also the port of
    `make api`, which is current where no endpoint is configured, and the load balancer's inner
    addresses. `balancer`: address or name of an external one, where clients go by that.
    """
    user = f"{plan.spec.cluster.name}-admin"
    doors = _doors(plan, balancer)
    return documents(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": door.name, "cluster": _cluster(door, ca_pem)} for door in doors],
            "contexts": [
                {"name": door.name, "context": {"cluster": door.name, "user": user}}
                for door in doors
            ],
            "current-context": doors[0].name,
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate-data": _base64(cert_pem),
                        "client-key-data": _base64(key_pem),
                    },
                }
            ],
        }
    )


def _cluster(door: _Door, ca_pem: str) -> dict[str, object]:
    named = {"tls-server-name": door.server_name} if door.server_name else {}
    return {"server": door.url, "certificate-authority-data": _base64(ca_pem), **named}


def _doors(plan: Plan, balancer: str | None) -> list[_Door]:
    """Each way to the API, best first."""
    cluster, vip = plan.spec.cluster, plan.spec.front_doors.vip
    masters = [
        _Door(f"{cluster.name}-{node.name}", f"https://{node.address}:{API_PORT}")
        for node in plan.masters
    ]
    if vip is not None:
        name = f"{cluster.name}-vip" if cluster.endpoint else cluster.name
        masters = [_Door(name, f"https://{vip.address}:{vip.port}"), *masters]
    if cluster.endpoint is None and balancer is None:
        return [*_of_cloud(plan, cluster.name), *masters]
    if cluster.endpoint is None:
        # Certificates are made before the load balancer has an address.
        first = _Door(cluster.name, f"https://{balancer}:{API_PORT}", _OF_EVERY_SERVER)
    else:
        host, _, port = cluster.endpoint.partition(":")
        first = _Door(cluster.name, f"https://{host}:{port or API_PORT}")
    return [first, *_of_cloud(plan, f"{cluster.name}-here"), *masters]


def _of_cloud(plan: Plan, here: str) -> Iterator[_Door]:
    """The port of `make api` as `here`, then an internal load balancer; nothing in no cloud."""
    cloud, name = clouds.settings(plan.spec), plan.spec.cluster.name
    if cloud is None:
        return
    # Every certificate of an API server is for it, too.
    yield _Door(here, f"https://{LOCAL}:{cloud.api_port}")
    if plan.balancer == "internal":
        addresses = clouds.balancer_addresses(plan.spec)
        zones = [f"-{zone}" for zone in clouds.zones(plan.spec)] if len(addresses) > 1 else [""]
        for zone, address in zip(zones, addresses, strict=True):
            yield _Door(f"{name}-balancer{zone}", f"https://{address}:{API_PORT}")


def _base64(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()
