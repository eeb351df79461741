"""The fully resolved plan of one cluster: plain values, sorted, no clock, no environment."""

from __future__ import annotations

from dataclasses import dataclass

from stacks.spec import Role, Spec, TaintSpec
from stacks.versions import Versions

API_PORT = 6443  # kube-apiserver on each master
LOCAL_API_PORT = 3446  # HAProxy on each node, 127.0.0.1 only; the controlPlaneEndpoint, for ever
ETCD_CLIENT_PORT = 2379
ETCD_PEER_PORT = 2380


@dataclass(frozen=True, slots=True, kw_only=True)
class Bastion:
    address: str
    port: int
    user: str
    host_key: str | None  # None: not pinned, by the user's explicit word
    private_key_file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ssh:
    user: str
    port: int
    host_key: str | None  # OpenSSH public key; None: not pinned, by the user's explicit word
    private_key_file: str | None  # None: the agent is used
    agent: bool
    bastion: Bastion | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str  # <pool>-<ordinal>, or the adopted host's name; the Kubernetes node name and etcd member name
    pool: str
    ordinal: int  # from 1; for adopted hosts the position at which it is ordered
    roles: tuple[Role, ...]  # sorted
    address: str  # IPv4
    arch: str  # amd64 | arm64
    ssh: Ssh | None  # None in the lab: keys are made in the stack
    labels: tuple[tuple[str, str], ...]  # sorted; pool and node exception merged
    taints: tuple[TaintSpec, ...]

    @property
    def is_etcd(self) -> bool:
        return "etcd" in self.roles

    @property
    def is_master(self) -> bool:
        return "master" in self.roles

    @property
    def is_worker(self) -> bool:
        """A kubelet that is not a master's: runs workload only."""
        return "worker" in self.roles and not self.is_master

    @property
    def in_kubernetes(self) -> bool:
        return self.is_master or "worker" in self.roles


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    spec: Spec
    versions: Versions
    nodes: tuple[Node, ...]  # sorted by pool, ordinal
    etcd: tuple[Node, ...]  # in rollout order
    masters: tuple[Node, ...]  # in rollout order
    workers: tuple[Node, ...]
    etcd_stacked: bool  # every master has its own etcd member and uses only 127.0.0.1
    warnings: tuple[tuple[str, str], ...]  # (config path, text)
