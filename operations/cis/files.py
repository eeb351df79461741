"""1.1: files of the control plane."""

from __future__ import annotations

from operations.cis import deciders as by
from operations.cis.control import ETC, PKI, PODS, Control, manual, scored
from stacks.render import etcd

_ADMIN = (f"{ETC}/admin.conf", f"{ETC}/super-admin.conf")


def _pair(first: int, what: str, *paths: str) -> tuple[Control, Control]:
    """Two controls of one file of the control plane: its mode, its owner."""
    return (
        scored(f"1.1.{first}", f"{what} is for root's eyes alone", "masters", by.mode(*paths)),
        scored(f"1.1.{first + 1}", f"{what} is root's", "masters", by.owner(*paths)),
    )


FILES = (
    *_pair(1, "static pod of the API server", f"{PODS}/kube-apiserver.yaml"),
    *_pair(3, "static pod of the controller manager", f"{PODS}/kube-controller-manager.yaml"),
    *_pair(5, "static pod of the scheduler", f"{PODS}/kube-scheduler.yaml"),
    *_pair(7, "static pod of etcd", f"{PODS}/etcd.yaml"),
    manual("1.1.9", "CNI files are for root's eyes alone", "nodes", by.mode("/etc/cni/net.d/*")),
    manual("1.1.10", "CNI files are root's", "nodes", by.owner("/etc/cni/net.d/*")),
    scored("1.1.11", "etcd's data is closed to others", "members", by.mode(etcd.DATA, most=0o700)),
    scored(
        "1.1.12",
        "etcd's data belongs to an account of its own",
        "members",
        by.owner(etcd.DATA, wanted="etcd:etcd"),
    ),
    *_pair(13, "an administrator's kubeconfig", *_ADMIN),
    *_pair(15, "the scheduler's kubeconfig", f"{ETC}/scheduler.conf"),
    *_pair(17, "the controller manager's kubeconfig", f"{ETC}/controller-manager.conf"),
    scored(
        "1.1.19",
        "the PKI is root's",
        "masters",
        by.owner(PKI, f"{PKI}/*", f"{PKI}/etcd/*"),
    ),
    manual(
        "1.1.20",
        "nobody but root writes certificates",
        "masters",
        by.mode(f"{PKI}/*.crt", f"{PKI}/etcd/*.crt", most=0o644),
    ),
    manual(
        "1.1.21",
        "keys are for their owner's eyes alone",
        "masters",
        by.mode(f"{PKI}/*.key", f"{PKI}/etcd/*.key", "/etc/kube-ha/etcd/*.key"),
    ),
)
