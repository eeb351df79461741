"""Snapshots of etcd in Cloud Storage by the machines' account: its role there, and who reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stacks.providers import store_identity
from stacks.providers.gcp.scope import Scope
from stacks.providers.resources import Resource, Value
from stacks.providers.store_identity import Credentials, StoreIdentity

_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


def read(text: str) -> Credentials:
    """The token is all that is printed."""
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        raise ValueError(text)
    return Credentials(token=token)


IDENTITY = StoreIdentity(
    word="gce",
    endpoint=re.compile(r"([a-z0-9-]+\.)*googleapis\.com"),
    example="https://storage.googleapis.com",
    program=("gcloud", "https://cloud.google.com/sdk/docs/install"),
    # Whom `pulumi up` is at Google, too.
    command=("gcloud", "auth", "application-default", "print-access-token", "--quiet"),
    read=read,
    log_in="gcloud auth application-default login",
)


def grant(scope: Scope, member: Value) -> Iterator[Resource]:
    """What the machines' account may do in the bucket: in the cluster's folder alone."""
    found = store_identity.store(scope.site.spec)
    if found is None:
        return
    # No pattern is known there, so the ID at the folder's end is not said.
    folder = store_identity.folder(found, scope.site.cluster).rstrip("?")
    # Listing has no object as its resource, but a prefix (Cloud Storage, "Conditions").
    listed = 'api.getAttribute("storage.googleapis.com/objectListPrefix", "")'
    where = f'resource.name.startsWith("projects/_/buckets/{found.bucket}/objects/{folder}")'
    yield Resource("account-snapshots", "account", "gcp.storage.BucketIAMMember").of(
        bucket=found.bucket,
        role=f"roles/storage.object{'User' if found.prune else 'Creator'}",
        member=member,
        condition={
            "title": "snapshots-of-etcd",
            "description": f"Snapshots of cluster {scope.site.cluster}",
            "expression": f'{where} || {listed}.startsWith("{folder}")' if found.prune else where,
        },
    )
