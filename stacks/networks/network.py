"""What is asked of a pod network. Each is one module of this room, listed in registry.py.

A network sees what the config says, never the plan of a cluster: most answers are data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from stacks.config.network import NetworkSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.documents.kubernetes_objects import ROLLING, Document
from stacks.releases.versions import Versions


class Tunnel(NamedTuple):
    """Packets between nodes that carry those of pods."""

    name: str  # of the firewall's rule
    protocol: Literal["tcp", "udp"]
    port: int
    what: str  # for people: whose it is
    backends: tuple[str, ...] = ()  # that use it; empty: all
    to: Literal["node", "master"] = "node"  # who listens
    setting: str = ""  # key of section `network` that has to be on


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One way of a network to carry packets, as `network.backend` names it."""

    overhead: int = 0  # bytes around a pod's packet
    modules: tuple[str, ...] = ()  # of the kernel
    settings: tuple[str, ...] = ()  # keys of section `network` that it alone follows
    needs_layer_2: bool = False  # one for all nodes, or for those of a subnet


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What manifests are made of."""

    spec: Spec
    versions: Versions
    masters: int = 1  # how many
    annotations: Mapping[str, str] = field(default_factory=dict)  # of pods: another restarts them
    rolling: Mapping[str, object] = field(default_factory=lambda: ROLLING)  # of DaemonSets


class Member(NamedTuple):
    """What a network may know of a node."""

    name: str
    pool: str
    zone: str | None
    is_master: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What programs of a network read on a Node, beside what the config says."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


class Network(Protocol):
    """A pod network; one that the user brings answers with nothing."""

    PROVED: bool  # whether nodes are waited for, and pods dial each other before an update succeeds
    OPEN: bool  # nodes reach each other at all ports: which it needs, TUNNELS do not say
    POLICIES: bool  # whether NetworkPolicies are enforced
    # What its documentation says it does otherwise than upstream's tests: end of a spec's name
    # before its labels -> the reason, with the page.
    DEVIATES: Mapping[str, str]
    SETTINGS: tuple[str, ...]  # keys of section `network` that it follows, where some do not
    BACKENDS: Mapping[str, Backend]
    # Settings of a living cluster whose change cuts pods off for a time -> how.
    CUTS: Mapping[str, str]
    TUNNELS: tuple[Tunnel, ...]
    # Where its programs listen at 127.0.0.1 -> what, on every node, and on masters besides.
    LOCAL_PORTS: Mapping[int, str]
    MASTER_LOCAL_PORTS: Mapping[int, str]
    SYSCTLS: Mapping[str, str]  # kernel settings of nodes
    FILESYSTEMS: tuple[str, ...]  # kinds that the kernel has to know
    NAMESPACES: tuple[str, ...]  # its own, whose pods need more than the standards allow
    IMAGES: tuple[str, ...]  # that nodes fetch, as in artifacts/lock.yaml
    REGISTRIES: tuple[str, ...]  # of these images, beside runtime.OWN_REGISTRIES
    MASTER_IMAGES: tuple[str, ...]  # that masters fetch besides
    ROLLOUTS: tuple[str, ...]  # that the gate waits for, as namespace/daemonset/name
    ADDONS: tuple[str, ...]  # names of what `manifests` makes

    # Add-on -> kind of its objects that go with the config: those labelled `kube-ha.io/part-of`.
    PRUNED: Mapping[str, str]
    # Add-on -> the one that defines kinds of its objects, and so comes before it.
    DEFINED_BY: Mapping[str, str]

    def manifests(self, wanted: Wanted) -> Mapping[str, str]:
        """What runs in the cluster for it, by name of the add-on."""

    def problems(self, spec: Spec) -> Iterable[Problem]:
        """What is wrong with its settings among themselves, and with pools that they name."""

    def marks(self, spec: Spec, members: Iterable[Member]) -> Mapping[str, Marks]:
        """By name of the node; empty where it marks none, whatever its settings are."""

    def is_smooth(self, key: str, before: NetworkSpec, now: NetworkSpec) -> bool:
        """Whether a change of a key of CUTS cuts nobody off after all."""

    def policies(self) -> Iterable[tuple[Document, Document]]:
        """What its account may write from a node: ValidatingAdmissionPolicies, bindings."""


def no_problems(_spec: Spec) -> tuple[Problem, ...]:
    """Of a network whose settings have no rules of their own."""
    return ()


def never_smooth(_key: str, _before: NetworkSpec, _now: NetworkSpec) -> bool:
    """Of a network that has no way without a cut."""
    return False


def no_marks(_spec: Spec, _members: Iterable[Member]) -> Mapping[str, Marks]:
    """Of a network that marks no Node."""
    return {}
