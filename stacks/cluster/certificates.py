"""Which certificates exist: subject, names, usages, signing CA, and where they are on the node.

The table is kubeadm's (its phases/certs list, release 1.36), with etcd's own files apart, for etcd
is not a static pod here. Subjects matter: RBAC and etcd know their clients by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from stacks.cluster import clouds
from stacks.cluster.plan import Node, Plan

Ca = Literal["kubernetes", "etcd", "front-proxy"]
Usage = Literal["digital_signature", "server_auth", "client_auth"]  # words of pulumi-tls

INGRESS = "ingress"  # name of the leaf for the hosts of the ingress tier
KUBERNETES_PKI = "/etc/kubernetes/pki"
ETCD_PKI = "/etc/kube-ha/etcd"
ADMINS = "kubeadm:cluster-admins"  # bound to cluster-admin by kubeadm init
_OWN_ADMINS = "kube-ha:admins"  # with a generation behind it (render/administrators.py)
APPROVER = "kube-ha:approver"  # may approve what kubelets ask for (render/approver.py)
APPROVER_FILE = "/etc/kube-ha/approver"  # without .crt and .key; approver-unit.sh knows it
LOAD_BALANCERS = "kube-ha:load-balancers"  # may read which of them hold the VIP, nothing else
LOAD_BALANCER_FILE = "/etc/kube-ha/load-balancer"  # without .crt and .key; vip-check.sh knows it

_SERVER: tuple[Usage, ...] = ("digital_signature", "server_auth")
_CLIENT: tuple[Usage, ...] = ("digital_signature", "client_auth")
_BOTH: tuple[Usage, ...] = ("digital_signature", "server_auth", "client_auth")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    name: str  # unique in the cluster
    node: str | None  # None: belongs to the cluster
    ca: Ca
    path: str | None  # on the node, without .crt and .key; None: on no node
    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...]  # sorted
    ip_addresses: tuple[str, ...]  # sorted
    usages: tuple[Usage, ...]


def table(plan: Plan) -> tuple[Leaf, ...]:
    """Every leaf, node by node in plan order, those of the cluster last."""
    return (
        *(leaf for node in plan.nodes for leaf in of_node(plan, node)),
        administrator(plan),
        *([ETCD_DOOR] if plan.spec.front_doors.etcd else []),
        *_ingress(plan),
    )


def administrator(plan: Plan) -> Leaf:
    """Of the output kubeconfig: another generation is another leaf, with a key of its own."""
    number = plan.spec.pki.admin_generation
    name, group = f"admin-{number}" if number else "admin", administrators(plan)
    return _leaf(name, None, "kubernetes", None, "kubernetes-admin", _CLIENT, organization=group)


def administrators(plan: Plan) -> str:
    """The group of the output kubeconfig, which may do everything."""
    number = plan.spec.pki.admin_generation
    return f"{_OWN_ADMINS}-{number}" if number else ADMINS


def _ingress(plan: Plan) -> Iterator[Leaf]:
    """One for all hosts of the ingress tier; those that are given have nothing to do here."""
    wanted = plan.spec.front_doors.ingress
    if wanted is not None and wanted.hosts:
        name, hosts = INGRESS, wanted.hosts
        yield _leaf(name, None, "kubernetes", None, "kube-ha-ingress", _SERVER, sans=hosts)


def of_node(plan: Plan, node: Node) -> Iterator[Leaf]:
    """The leafs of one node; none for a worker, which gets its own from the cluster."""
    if node.is_master:
        yield from _of_master(plan, node)
    if node.is_etcd:
        yield from _of_member(node)
    if node.is_load_balancer:
        yield _leaf(
            f"{node.name}-load-balancer",
            node.name,
            "kubernetes",
            LOAD_BALANCER_FILE,
            f"kube-ha:load-balancer:{node.name}",
            _CLIENT,
            organization=LOAD_BALANCERS,
        )


def _of_master(plan: Plan, node: Node) -> Iterator[Leaf]:
    name, pki = node.name, KUBERNETES_PKI
    yield _leaf(
        f"{name}-apiserver",
        name,
        "kubernetes",
        f"{pki}/apiserver",
        "kube-apiserver",
        _SERVER,
        sans=api_names(plan, node),
    )
    yield _leaf(
        f"{name}-apiserver-kubelet-client",
        name,
        "kubernetes",
        f"{pki}/apiserver-kubelet-client",
        "kube-apiserver-kubelet-client",
        _CLIENT,
        organization=ADMINS,
    )
    yield _leaf(
        f"{name}-front-proxy-client",
        name,
        "front-proxy",
        f"{pki}/front-proxy-client",
        "front-proxy-client",
        _CLIENT,
    )
    yield _leaf(
        f"{name}-apiserver-etcd-client",
        name,
        "etcd",
        f"{pki}/apiserver-etcd-client",
        "kube-apiserver-etcd-client",
        _CLIENT,
    )
    yield _leaf(f"{name}-approver", name, "kubernetes", APPROVER_FILE, APPROVER, _CLIENT)


def _of_member(node: Node) -> Iterator[Leaf]:
    # etcd dials its own client port through its gRPC gateway with the server certificate, so that
    # one needs client_auth too; members are client and server to each other.
    name, sans = node.name, (node.name, node.address, "localhost", "127.0.0.1")
    yield _leaf(f"{name}-etcd-server", name, "etcd", f"{ETCD_PKI}/server", name, _BOTH, sans=sans)
    yield _leaf(f"{name}-etcd-peer", name, "etcd", f"{ETCD_PKI}/peer", name, _BOTH, sans=sans)
    yield _leaf(
        f"{name}-etcd-client",
        name,
        "etcd",
        f"{ETCD_PKI}/client",
        "kube-etcd-healthcheck-client",
        _CLIENT,
    )


def api_names(plan: Plan, node: Node) -> tuple[str, ...]:
    """Every name and address under which a client may reach this node's API server."""
    domain = plan.spec.cluster.dns_domain
    return (
        node.name,
        node.address,
        "localhost",
        "127.0.0.1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        f"kubernetes.default.svc.{domain}",
        plan.api_service_ip,
        # Of the endpoint only what the user said: the default is the first master's own address,
        # and in every certificate it would renew them all when that master changes.
        *([plan.endpoint.rpartition(":")[0]] if plan.spec.cluster.endpoint else []),
        *([plan.spec.front_doors.vip.address] if plan.spec.front_doors.vip else []),
        *clouds.balancer_addresses(plan.spec),
        *plan.spec.control_plane.cert_sans,
    )


def _leaf(
    name: str,
    node: str | None,
    ca: Ca,
    path: str | None,
    common_name: str,
    usages: tuple[Usage, ...],
    *,
    organization: str | None = None,
    sans: Iterable[str] = (),
) -> Leaf:
    names = set(sans)
    addresses = {name for name in names if re.fullmatch(r"[0-9.]+", name)}
    return Leaf(
        name=name,
        node=node,
        ca=ca,
        path=path,
        common_name=common_name,
        organizations=(organization,) if organization else (),
        dns_names=tuple(sorted(names - addresses)),
        ip_addresses=tuple(sorted(addresses)),
        usages=usages,
    )


# etcd has no users of its own here: who has this may read and write everything in it. So it is on
# no machine, and goes from the stack's outputs to the programs that are to have it.
ETCD_DOOR = _leaf("etcd-client", None, "etcd", None, "kube-ha-etcd-client", _CLIENT)
