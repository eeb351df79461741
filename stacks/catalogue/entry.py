"""What is asked of an add-on of the catalogue. Each is one module, listed in registry.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

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
    holders: tuple[str, ...] = ()  # addresses of machines that may hold it


class NodePort(NamedTuple):
    """Where its programs on nodes reach each other."""

    name: str  # of the rule
    protocol: Literal["tcp", "udp"]
    port: int


class Entry(Protocol):
    """An add-on that the config names."""

    ROLLOUTS: tuple[str, ...]  # that the gate waits for, as namespace/deployment/name
    SETTINGS: tuple[str, ...]  # keys that the config may say of it
    REGISTRIES: tuple[str, ...]  # of its images, beside runtime.OWN_REGISTRIES
    LOCAL_PORTS: Mapping[int, str]  # that every node has to have free, and whose they are
    PORTS: tuple[NodePort, ...]  # of these, between nodes
    READS_NODES: bool  # what nodes measure of themselves (components/scripts/metrics.sh)
    LOGS_IN: bool  # the kubelet of each node asks it for a login at its `hosts`
    NEEDS_LAYER_2: bool  # answers ARP for addresses of its own, which no network of a cloud takes
    NEEDS_POLICIES: bool  # does nothing where the pod network enforces no NetworkPolicy
    NODE_FOLDER: str  # below FOLDERS, of its own; empty: none. Goes with it (phase node)

    def version(self, versions: Versions) -> str:
        """Of the set, as artifacts/lock.yaml has it."""

    def problems(self, spec: Spec) -> Iterable[Problem]:
        """Why it cannot do its work in a cluster of this config."""

    def objects(self, wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
        """All that it makes, in the order in which they are applied."""

    def notices(self, was: AddonSpec | None, now: AddonSpec | None) -> Iterable[str]:
        """What pods of others notice of a change from one to the other; None: it is not there."""


def no_notices(_was: AddonSpec | None, _now: AddonSpec | None) -> tuple[str, ...]:
    """Of an add-on that touches no pods but its own."""
    return ()
