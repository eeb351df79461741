"""A stack of many adopted machines."""

from __future__ import annotations

from ipaddress import IPv4Address

from tests.unit.configs import adopted, host_key


def big(nodes: int) -> dict[str, object]:
    """3 masters with etcd, the rest workers; networks that have room for a /24 of pods a node."""
    first = int(IPv4Address("172.16.0.0"))
    hosts = [
        {
            "name": f"worker-{number}",
            "address": str(IPv4Address(first + number)),
            "hostKey": host_key(1000 + number),
        }
        for number in range(1, nodes - 2)
    ]
    return adopted(
        {
            "cluster.podCidr": "10.128.0.0/9",
            "pools.worker.hosts": hosts,
        }
    )
