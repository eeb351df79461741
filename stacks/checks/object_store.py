"""Checks of an object store for snapshots of etcd, and of the secret of its key.

It is the one secret that a user gives. It is encrypted in the stack file under a key of its own, so
that plans and previews, which show the config, never hold it.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from stacks.config import stack_file
from stacks.config.object_store import PATH, SECRET
from stacks.config.problems import Problem, SpecError
from stacks.config.spec import Spec

_MOST_GIB = 4  # one request carries 5 GiB, and etcd's quota is not a sharp limit
_CA_MOST = 2048  # bytes; it travels in one command with the member's keys
_SECRET_MOST = 256


def problems(spec: Spec) -> list[Problem]:
    """What would send snapshots in plain text, to the wrong place, or not at all."""
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
        out.append(Problem(f"{PATH}.endpoint", f"{text} network in plain text; use https"))
    if spec.etcd.quota_backend_gib > _MOST_GIB:
        text = f"a store takes 5 GiB in one request, so with it quotaBackendGib is {_MOST_GIB} at"
        way = "most; use etcd.backup.directory for a bigger etcd"
        out.append(Problem(PATH, f"{text} {way}"))
    if store.ca is not None and len(store.ca) > _CA_MOST:
        text = f"has {len(store.ca)} bytes, {_CA_MOST} at most; give the CA that signed the"
        out.append(Problem(f"{PATH}.ca", f"{text} endpoint's certificate alone"))
    return out


def secret_problems(spec: Spec, raw: Mapping[str, object]) -> list[Problem]:
    """A store whose key has no secret in `raw`; one in plain text is refused elsewhere."""
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
        raise SpecError(found)
    return given


def unusable(secret: str) -> list[Problem]:
    """What is wrong with the secret itself; its text is never shown."""
    printable = all(" " < letter <= "~" for letter in secret)
    if 0 < len(secret) <= _SECRET_MOST and printable:
        return []
    text = (
        f"is not a secret of an access key: 1 to {_SECRET_MOST} letters without blanks; "
        "set it again"
    )
    return [Problem(SECRET, f"{text} (pulumi config set --secret kube-ha:{SECRET})")]
