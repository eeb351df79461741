"""What a probe should find on a machine if it is as planned. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from stacks.cluster import certificates, serving_certificates
from stacks.cluster.artifacts import File
from stacks.cluster.certificates import ETCD_PKI, KUBERNETES_PKI
from stacks.cluster.plan import Node, Plan
from stacks.phases import desired, downloads, scripts
from stacks.phases.node import of_node

# Who renews a certificate; approver: the kubelet, and the approver on a master lets it. One that is
# unwanted is to lie nowhere.
Renewal = Literal["up", "kubelet", "approver", "never", "unwanted"]

CA = "/etc/kube-ha/ca.crt"  # the cluster's, public, on every node of Kubernetes
_KUBECONFIGS = ("admin", "controller-manager", "scheduler")
_KUBELET = "/var/lib/kubelet/pki/kubelet-client-current.pem"
_SERVING = "/var/lib/kubelet/pki/kubelet-server-current.pem"
FIREWALL = "kube-ha-firewall"  # its unit
_PHASES = ("node", "leave")  # written by the first, and there for the second, by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Mappings are by path or name."""

    owner: str  # "cluster id node"
    incarnation: int
    files: Mapping[str, str]  # SHA-256
    units: tuple[str, ...]
    programs: Mapping[str, str]  # version
    artefacts: Mapping[str, str]  # the sum they are installed by
    settled: tuple[str, ...]  # marks of finished work
    certificates: Mapping[str, Renewal]
    scripts: Mapping[str, str]  # SHA-256 by file name
    applied: str  # what the node announces; empty: not known here
    vip: str  # address that it may hold; empty: none

    def owns(self, owner: str) -> bool:
        """Whether a machine with that mark is this node."""
        words = owner.split()
        # Without the engine's word the cluster's id is not known, and not compared.
        return self.owner.split() in (words, words[::2])


def of(plan: Plan, node: Node, *, files: Mapping[str, File], ca: str, cluster_id: str) -> Expected:
    """`files` are those of the node's architecture; `ca` is the cluster's certificate.

    Either may be empty where it is not known: what hangs on it is then not compared.
    """
    texts = desired.files(plan, node)
    if ca and (node.in_kubernetes or node.is_load_balancer):
        texts[CA] = ca.rstrip("\n") + "\n"
    return Expected(
        owner=f"{plan.spec.cluster.name} {cluster_id} {node.name}",
        incarnation=node.generation,
        files={path: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()},
        units=_units(plan, node),
        programs=_programs(plan, node),
        artefacts=_artefacts(node, files),
        settled=("master", "kubeadm", "certificates") if node.is_master else (),
        certificates=_certificates(plan, node),
        scripts=_scripts(),
        applied=_applied(plan, node, files, ca),
        vip=plan.vip.partition(":")[0] if node in plan.holders else "",
    )


def _units(plan: Plan, node: Node) -> tuple[str, ...]:
    kubernetes: tuple[str, ...] = ("haproxy",) if node.is_load_balancer else ()
    if node.in_kubernetes:
        kubernetes = ("haproxy", "containerd", "kubelet")
    # In maintenance it is off.
    stands_by = node in plan.holders and not (node.is_load_balancer and node.state != "active")
    more: tuple[str, ...] = ("keepalived",) if stands_by else ()
    more += ("kube-ha-ingress",) if node in plan.ingress else ()
    more += ("kube-ha-approver",) if node.is_master else ()
    more += (FIREWALL,) if plan.spec.machines.firewall else ()
    return (*kubernetes, *more, *(("etcd",) if node.is_etcd else ()))


def _programs(plan: Plan, node: Node) -> dict[str, str]:
    sets = plan.versions
    found: dict[str, str] = {}
    if node.in_kubernetes:
        kubernetes = dict.fromkeys(("kubelet", "kubeadm"), sets.kubernetes)
        found |= {**kubernetes, "containerd": sets.containerd, "runc": sets.runc}
    if node.is_master:
        found |= {"kubectl": sets.kubernetes, "etcdctl": sets.etcd}
    if node.is_etcd:
        found |= {"etcd": sets.etcd, "etcdctl": sets.etcd}
    return found


def _artefacts(node: Node, files: Mapping[str, File]) -> dict[str, str]:
    names = {name: name for name in downloads.downloads(node)}
    if "etcd" in names:
        names["etcdctl"] = names.pop("etcd")  # a master without a member takes the client alone
    if node.is_etcd:
        names["etcd"] = "etcd"
    return {
        mark: downloads.artefacts(files, (name,)).split()[2]
        for mark, name in names.items()
        if name in files
    }


def _certificates(plan: Plan, node: Node) -> dict[str, Renewal]:
    found: dict[str, Renewal] = {
        f"{leaf.path}.crt": "up" for leaf in certificates.of_node(plan, node) if leaf.path
    }
    if node.is_master:
        found |= {f"/etc/kubernetes/{name}.conf": "up" for name in _KUBECONFIGS}
        found["/etc/kubernetes/super-admin.conf"] = "unwanted"
        authorities = ("ca", "front-proxy-ca", "etcd/ca")
        found |= {f"{KUBERNETES_PKI}/{name}.crt": "never" for name in authorities}
    if node.is_etcd:
        found[f"{ETCD_PKI}/ca.crt"] = "never"
    if node.in_kubernetes:
        found |= {_KUBELET: "kubelet", CA: "never"}
        if serving_certificates.are_issued(plan):
            found[_SERVING] = "approver"
    if node.is_load_balancer:
        found[CA] = "never"
    return found


@cache
def _scripts() -> dict[str, str]:
    names = {"run.sh", *(name for phase in _PHASES for name in scripts.parts(phase))}
    return {
        name: hashlib.sha256((scripts.FOLDER / name).read_bytes()).hexdigest()
        for name in sorted(names)
    }


def _applied(plan: Plan, node: Node, files: Mapping[str, File], ca: str) -> str:
    if not ca or not files or not node.in_kubernetes:
        return ""
    values = {
        **of_node(plan, node),
        "ARTEFACTS": downloads.node_artefacts(plan, node, files),
        "CA_CRT": ca.rstrip("\n"),
    }
    return desired.applied(values)
