"""An object store for snapshots of etcd: where a cluster's lie, and the name of its secret."""

from __future__ import annotations

from stacks.config.etcd import ObjectStoreSpec
from stacks.config.translation import SECRETS

(SECRET,) = SECRETS  # the name of its key in the config
PATH = "etcd.backup.objectStore"


def folder(store: ObjectStoreSpec, cluster: str, cluster_id: str) -> str:
    """Where the snapshots of one cluster are in the bucket, as object-store.sh has it."""
    own = f"{cluster}-{cluster_id}"
    return f"{store.prefix}/{own}" if store.prefix else own
