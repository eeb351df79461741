"""Checks of an object store for snapshots of etcd, and of the secret of its key.

It is the one secret that a user gives. It is encrypted in the stack file under a key of its own, so
that plans and previews, which show the config, never hold it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from stacks.cluster import clouds
from stacks.config import stack_file
from stacks.config.etcd import ObjectStoreSpec
from stacks.config.object_store import PATH, SECRET
from stacks.config.problems import Problem, SpecError
from stacks.config.spec import Spec
from stacks.providers import registry

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
    return [*out, *_identity(spec, store)]


def warnings(spec: Spec) -> Iterator[Problem]:
    """Pods that are machines to the store."""
    made = clouds.settings(spec)
    if made and made.pod_metadata and registry.store_identity(spec):
        text = "with podMetadata every pod on a machine may do there what the machine may: write"
        way = "and, with prune, delete snapshots; name an accessKey, or keep versions in the bucket"
        yield Problem(PATH, f"{text} {way}")


def _identity(spec: Spec, store: ObjectStoreSpec) -> Iterator[Problem]:
    """A store without a key, where nobody knows the machines, or somebody else would see them."""
    if store.access_key is not None:
        return
    known = registry.store_identity(spec)
    if known is None:
        text = f"is missing; machines {registry.of(spec).PLACE} are known to no store by themselves"
        yield Problem(f"{PATH}.accessKey", f"{text}: write the ID of a key")
        return
    parts = urlsplit(store.endpoint)
    if parts.scheme != "https" or not known.endpoint.fullmatch(parts.hostname or ""):
        text = f"{store.endpoint!r} would see credentials of the machines, for accessKey is missing"
        way = f"write one of their cloud, as {known.example}, or the ID of a key"
        yield Problem(f"{PATH}.endpoint", f"{text}; {way}")


def secret_problems(spec: Spec, raw: Mapping[str, object]) -> list[Problem]:
    """A store whose key has no secret in `raw`; one in plain text is refused elsewhere."""
    store = spec.etcd.backup.object_store
    if store is not None and store.access_key is None:
        return [*_of_no_key(raw)] if registry.store_identity(spec) else []
    if store is None or raw.get(SECRET):
        return []
    text = f"there is no secret for its accessKey; `pulumi config set --secret kube-ha:{SECRET}`"
    return [Problem(PATH, f"{text} asks for it")]


def _of_no_key(raw: Mapping[str, object]) -> Iterator[Problem]:
    if raw.get(SECRET):
        text = f"is missing, and there is a secret (kube-ha:{SECRET}): write the ID of its key; or,"
        way = "where machines are to show who they are, take it out: `pulumi config rm"
        yield Problem(f"{PATH}.accessKey", f"{text} {way} kube-ha:{SECRET}`")


def secret(spec: Spec, environment: Mapping[str, str]) -> str | None:
    """The secret as the engine hands it over, None where there is no key. Raises SpecError."""
    store = spec.etcd.backup.object_store
    if store is None or store.access_key is None:
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
