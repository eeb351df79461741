"""The operator's kubeconfig."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from stacks.cluster import clouds
from stacks.cluster.plan import Plan
from stacks.config.ports import API_PORT
from stacks.documents.yaml_text import documents
from stacks.providers.cloud import LOCAL


def admin(plan: Plan, ca_pem: str, cert_pem: str, key_pem: str) -> str:
    """One context for each door to the API; the first is current. Secret: it holds `key_pem`.

    The doors are the configured endpoint and the VIP, if there are any, then each master by
    itself, so that an operator is never locked out by a load balancer. In a cloud also the port of
    `make api`, which is current where no endpoint is configured, and the load balancer's inner
    addresses.
    """
    user = f"{plan.spec.cluster.name}-admin"
    doors = _doors(plan)
    return documents(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": url, "certificate-authority-data": _base64(ca_pem)},
                }
                for name, url in doors
            ],
            "contexts": [
                {"name": name, "context": {"cluster": name, "user": user}} for name, _ in doors
            ],
            "current-context": doors[0][0],
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


def _doors(plan: Plan) -> list[tuple[str, str]]:
    """(context name, URL) of each way to the API, best first."""
    cluster, vip = plan.spec.cluster, plan.spec.front_doors.vip
    masters = [
        (f"{cluster.name}-{node.name}", f"https://{node.address}:{API_PORT}")
        for node in plan.masters
    ]
    if vip is not None:
        name = f"{cluster.name}-vip" if cluster.endpoint else cluster.name
        masters = [(name, f"https://{vip.address}:{vip.port}"), *masters]
    if cluster.endpoint is None:
        return [*_of_cloud(plan, cluster.name), *masters]
    host, _, port = cluster.endpoint.partition(":")
    first = (cluster.name, f"https://{host}:{port or API_PORT}")
    return [first, *_of_cloud(plan, f"{cluster.name}-here"), *masters]


def _of_cloud(plan: Plan, here: str) -> Iterator[tuple[str, str]]:
    """The port of `make api` as `here`, then an internal load balancer; nothing in no cloud."""
    cloud, name = clouds.settings(plan.spec), plan.spec.cluster.name
    if cloud is None:
        return
    # Every certificate of an API server is for it, too.
    yield here, f"https://{LOCAL}:{cloud.api_port}"
    if plan.balancer == "internal":
        addresses = clouds.balancer_addresses(plan.spec)
        zones = [f"-{zone}" for zone in clouds.zones(plan.spec)] if len(addresses) > 1 else [""]
        for zone, address in zip(zones, addresses, strict=True):
            yield f"{name}-balancer{zone}", f"https://{address}:{API_PORT}"


def _base64(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()
