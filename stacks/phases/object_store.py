"""An object store for snapshots of etcd: what the phases that send are told of it."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from stacks.config.runtime import ProxySpec
from stacks.config.spec import Spec
from stacks.providers import registry

VALUES = (
    *("BACKUP_STORE", "BACKUP_REGION", "BACKUP_ACCESS_KEY"),
    *("BACKUP_IDENTITY", "BACKUP_CA", "BACKUP_PRUNE", "BACKUP_PROXY"),
)


def values(spec: Spec) -> dict[str, str]:
    """What the phases that send are told, none of it secret."""
    store, identity = spec.etcd.backup.object_store, registry.store_identity(spec)
    if store is None:
        return {"BACKUP_STORE": ""}
    return {
        "BACKUP_STORE": "/".join(filter(None, [store.endpoint, store.bucket, store.prefix])),
        "BACKUP_REGION": store.region,
        "BACKUP_ACCESS_KEY": store.access_key or "",
        **({"BACKUP_IDENTITY": identity.word} if identity else {}),
        "BACKUP_CA": "1" if store.ca else "0",
        "BACKUP_PRUNE": "1" if store.prune else "0",
        "BACKUP_PROXY": _proxy(store.endpoint, spec.proxy) or "",
    }


def _proxy(endpoint: str, proxy: ProxySpec) -> str | None:
    """The proxy of the nodes for it, None where it is reached without."""
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    if any(_covers(entry, host) for entry in proxy.no_proxy):
        return None
    return proxy.https if parts.scheme == "https" else proxy.http


def _covers(entry: str, host: str) -> bool:
    """As programs read NO_PROXY: a network, or a name with all below it."""
    try:
        return ip_address(host) in ip_network(entry)
    except ValueError:
        name = entry.removeprefix(".")
        return host == name or host.endswith(f".{name}")
