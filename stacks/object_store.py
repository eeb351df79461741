"""An object store for snapshots of etcd: what a config says of it that cannot be, and its values.

The secret of its key is the one secret that a user gives. It is encrypted in the stack file under a
key of its own, so that plans and previews, which show the config, never hold it.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stacks import stack_file
from stacks.problems import SECRETS, Problem

if TYPE_CHECKING:
    from stacks.node_settings import ProxySpec
    from stacks.settings import ObjectStoreSpec
    from stacks.spec import Spec

(SECRET,) = SECRETS  # the name of its key in the config
PATH = "etcd.backup.objectStore"
VALUES = (
    *("BACKUP_STORE", "BACKUP_REGION", "BACKUP_ACCESS_KEY"),
    *("BACKUP_CA", "BACKUP_PRUNE", "BACKUP_PROXY"),
)
_MOST_GIB = 4  # one request carries 5 GiB, and etcd's quota is no sharp limit
_CA_MOST = 2048  # bytes; it travels in one command with the member's keys
_SECRET_MOST = 256


def problems(spec: Spec) -> list[Problem]:
    """What would send snapshots in the open, to the wrong place, or not at all."""
    store = spec.etcd.backup.object_store
    if store is None:
        return []
    out = []
    host = urlsplit(store.endpoint).hostname or ""
    if host.startswith(f"{store.bucket}."):
        text = f"{store.endpoint!r} names the bucket; requests name it in their path, so write"
        rest = store.endpoint.replace(f"{store.bucket}.", "", 1)
        out.append(Problem(f"{PATH}.endpoint", f"{text} {rest}"))
    if store.endpoint.startswith("http:") and not spec.etcd.backup.encrypt:
        text = "is http, and encrypt is false: every Secret of the cluster would go over the"
        out.append(Problem(f"{PATH}.endpoint", f"{text} network in the open; use https"))
    if spec.etcd.quota_backend_gib > _MOST_GIB:
        text = f"a store takes 5 GiB in one request, so with it quotaBackendGib is {_MOST_GIB} at"
        way = "most; use etcd.backup.directory for a bigger etcd"
        out.append(Problem(PATH, f"{text} {way}"))
    if store.ca is not None and len(store.ca) > _CA_MOST:
        text = f"has {len(store.ca)} bytes, {_CA_MOST} at most; give the CA that signed the"
        out.append(Problem(f"{PATH}.ca", f"{text} endpoint's certificate alone"))
    return out


def secret_problems(spec: Spec, raw: Mapping[str, object]) -> list[Problem]:
    """A store whose key has no secret in `raw`; one in the open is refused elsewhere."""
    if spec.etcd.backup.object_store is None or raw.get(SECRET):
        return []
    text = f"there is no secret for its accessKey; `pulumi config set --secret kube-ha:{SECRET}`"
    return [Problem(PATH, f"{text} asks for it")]


def secret(spec: Spec, environment: Mapping[str, str]) -> str | None:
    """The secret as the engine hands it over, None without a store. Raises SpecError."""
    if spec.etcd.backup.object_store is None:
        return None
    given = stack_file.secret_of_engine(environment, SECRET)
    found = unusable(given)
    if found:
        # Not at the top: spec.py asks this module for problems.
        from stacks.spec import SpecError

        raise SpecError(found)
    return given


def unusable(secret: str) -> list[Problem]:
    """What is wrong with the secret itself; its text is never shown."""
    printable = all(" " < letter <= "~" for letter in secret)
    if 0 < len(secret) <= _SECRET_MOST and printable:
        return []
    text = f"is no secret of an access key: 1 to {_SECRET_MOST} letters without blanks; set it anew"
    return [Problem(SECRET, f"{text} (pulumi config set --secret kube-ha:{SECRET})")]


def folder(store: ObjectStoreSpec, cluster: str, cluster_id: str) -> str:
    """Where the snapshots of one cluster lie in the bucket, as object-store.sh has it."""
    own = f"{cluster}-{cluster_id}"
    return f"{store.prefix}/{own}" if store.prefix else own


def values(store: ObjectStoreSpec | None, proxy: ProxySpec) -> dict[str, str]:
    """What the phases that send are told, none of it secret."""
    if store is None:
        return {"BACKUP_STORE": ""}
    return {
        "BACKUP_STORE": "/".join(filter(None, [store.endpoint, store.bucket, store.prefix])),
        "BACKUP_REGION": store.region,
        "BACKUP_ACCESS_KEY": store.access_key,
        "BACKUP_CA": "1" if store.ca else "0",
        "BACKUP_PRUNE": "1" if store.prune else "0",
        "BACKUP_PROXY": _proxy(store.endpoint, proxy) or "",
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
