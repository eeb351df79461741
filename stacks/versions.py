"""Which component versions belong to a Kubernetes version; read from artifacts/lock.yaml."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    kubernetes: str
    etcd: str
    containerd: str
    runc: str
    cni_plugins: str
    coredns: str
    pause: str
    flannel: str
    agnhost: str
