"""A control of the benchmark: what it asks, on whom, how it is decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from operations.cis.deciders import Decider
from operations.cis.facts import Facts
from stacks.cluster.plan import Node

BENCHMARK = "CIS Kubernetes Benchmark 1.12"
On = Literal["masters", "members", "nodes"]

API = "kube-apiserver"
ETC = "/etc/kubernetes"
PODS = f"{ETC}/manifests"
PKI = f"{ETC}/pki"
UNITS = (
    "/etc/systemd/system/kubelet.service",
    "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    id: str
    title: str
    on: On
    scored: bool
    decide: Decider | None = None  # None: a person has to look
    reason: str = ""  # of a deviation that is meant; without a decider what to look at
    meant: Callable[[Facts], bool] = lambda _: True  # whether it is that deviation

    def concerns(self, node: Node) -> bool:
        """Whether the machine has what the control is about."""
        return {
            "masters": node.is_master,
            "members": node.is_etcd,
            "nodes": node.in_kubernetes,
        }[self.on]


def scored(id: str, title: str, on: On, decide: Decider) -> Control:
    """One that counts: decided by the machine alone."""
    return Control(id=id, title=title, on=on, scored=True, decide=decide)


def manual(
    id: str,
    title: str,
    on: On,
    decide: Decider | None = None,
    reason: str = "",
    meant: Callable[[Facts], bool] = lambda _: True,
) -> Control:
    """One that a person judges, by what the machine tells where there is a decider."""
    return Control(
        id=id, title=title, on=on, scored=False, decide=decide, reason=reason, meant=meant
    )
