"""A third pod network, all of it."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.documents.kubernetes_objects import Document, config_map
from stacks.documents.yaml_text import documents
from stacks.networks.network import Backend, Tunnel, Wanted, never_smooth, no_marks, no_problems

PROVED = True
OPEN = False
POLICIES = True
DEVIATES: Mapping[str, str] = {}
SETTINGS: tuple[str, ...] = ("mtu", "backend")
BACKENDS: Mapping[str, Backend] = {
    "vxlan": Backend(overhead=8, modules=("toy",)),
    "host-gw": Backend(needs_layer_2=True),
}
CUTS: Mapping[str, str] = {"backend": "the toy stops everywhere"}
TUNNELS: tuple[Tunnel, ...] = (Tunnel("toy", "udp", 30999, "the toy's packets"),)
LOCAL_PORTS: Mapping[int, str] = {29998: "the toy's health"}
MASTER_LOCAL_PORTS: Mapping[int, str] = {29997: "the toy's chief"}
SYSCTLS: Mapping[str, str] = {"net.ipv4.toy": "1"}
FILESYSTEMS: tuple[str, ...] = ("toyfs",)
NAMESPACES: tuple[str, ...] = ("kube-toy",)
IMAGES: tuple[str, ...] = ()
REGISTRIES: tuple[str, ...] = ("toys.example",)
MASTER_IMAGES: tuple[str, ...] = ()
ROLLOUTS: tuple[str, ...] = ("kube-toy/daemonset/toy",)
ADDONS: tuple[str, ...] = ("toy",)
PRUNED: Mapping[str, str] = {}
DEFINED_BY: Mapping[str, str] = {}
problems, marks, is_smooth = no_problems, no_marks, never_smooth


def manifests(wanted: Wanted) -> Mapping[str, str]:
    return {"toy": documents(config_map("toy", "kube-toy", {"mtu": str(wanted.spec.network.mtu)}))}


def policies() -> tuple[tuple[Document, Document], ...]:
    return ()
