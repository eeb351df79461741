"""What is asked of an add-on of the catalogue. Each is one module, listed in registry.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from stacks.config.problems import Problem
from stacks.config.spec import AddonSpec, Spec
from stacks.documents.kubernetes_objects import Document
from stacks.releases.versions import Versions

FOLDERS = "/var/lib/kube-ha-addons"  # on nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What objects are made of."""

    spec: Spec
    versions: Versions
    masters: int  # control plane nodes
    etcd: int  # members of etcd on control plane nodes; 0 where it has machines of its own
    keepalived: bool  # control plane nodes hold a virtual IP


class Entry(Protocol):
    """An add-on that the config names."""

    ROLLOUTS: tuple[str, ...]  # that the gate waits for, as namespace/deployment/name
    SETTINGS: tuple[str, ...]  # keys that the config may say of it
    REGISTRIES: tuple[str, ...]  # of its images, beside runtime.OWN_REGISTRIES
    LOCAL_PORTS: Mapping[int, str]  # at 127.0.0.1 of every node, and whose they are
    READS_NODES: bool  # what nodes measure of themselves (components/scripts/metrics.sh)
    NODE_FOLDER: str  # below FOLDERS, of its own; empty: none. Goes with it (phase node)

    def version(self, versions: Versions) -> str:
        """Of the set, as artifacts/lock.yaml has it."""

    def problems(self, spec: Spec) -> Iterable[Problem]:
        """Why it cannot do its work in a cluster of this config."""

    def objects(self, wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
        """All that it makes, in the order in which they are applied."""
