"""How the object store of a cloud knows the cluster's machines, and people, without a key."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from stacks.config import object_store
from stacks.config.etcd import ObjectStoreSpec
from stacks.config.spec import Spec

_ID = "?" * 12  # letters of a cluster's ID, which only an update knows


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What signs requests; a token without a key is shown as it is (Bearer)."""

    access_key: str = ""
    secret: str = ""
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreIdentity:
    """The ways of one cloud."""

    word: str  # by which store-identity.sh knows how a machine gets credentials
    endpoint: re.Pattern[str]  # hosts that may see them, whole
    example: str  # of an endpoint
    # Credentials of whoever reads snapshots on this computer: the command that prints them.
    program: tuple[str, str]  # its name, and where to get it
    command: tuple[str, ...]
    read: Callable[[str], Credentials]  # raises ValueError where that is none
    log_in: str  # what a person does when the cloud does not know them


def store(spec: Spec) -> ObjectStoreSpec | None:
    """The store that knows machines by themselves, where the config names one."""
    found = spec.etcd.backup.object_store
    return found if found and found.access_key is None else None


def folder(store: ObjectStoreSpec, cluster: str) -> str:
    """Where the cluster's snapshots are, with a question mark for each letter of its ID."""
    return object_store.folder(store, cluster, _ID)
