"""A machine made ready for its roles.

Scripts, preflight, then packages, kernel, runtime, kubelet and the local API door.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from pulumi import Input, Output, Resource
from pulumi_command import remote

from components import script
from components.remote import Identity, Machine, after, converge, copy_scripts
from stacks.artifacts import File, images
from stacks.files import containerd, haproxy, kubelet, sysctl
from stacks.plan import API_PORT, ETCD_CLIENT_PORT, ETCD_PEER_PORT, LOCAL_API_PORT, Node, Plan

_WORKER_FILES = ("containerd", "runc", "cni-plugins", "kubeadm", "kubelet")
_MASTER_FILES = (*_WORKER_FILES, "kubectl")
_KUBERNETES_PACKAGES = (
    "haproxy conntrack socat ethtool iptables nftables iproute2 kmod curl ca-certificates procps"
)
_ETCD_PACKAGES = "iproute2 curl ca-certificates procps"
# What a machine must fulfil before it joins is not asked again.
_PREFLIGHT_ONCE = ("stdin",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Resources of one machine that its roles wait for."""

    ready: remote.Command
    applied: Output[str]  # hash that the node announces once it is what the plan wants


def prepare(
    name: str,
    plan: Plan,
    machine: Machine,
    files: Mapping[str, File],
    *,
    identity: Identity,
    ca_cert: Output[str],
    parent: Resource,
    waits_for: Resource | None,
) -> Prepared:
    """Resources `<name>-scripts`, `-preflight` and `-node`.

    `waits_for` holds back changes of a node that exists.
    """
    node = machine.node
    values = _values(plan, node, files, ca_cert)
    applied = Output.all(**values).apply(
        lambda known: script.digest(
            script.phase_sum("node"), *(known[key] for key in sorted(known))
        )
    )
    scripts = copy_scripts(
        f"{name}-scripts",
        machine,
        wanted=applied,
        opts=after(machine.exists, waits_for, parent=parent),
    )
    preflight = converge(
        f"{name}-preflight",
        machine,
        "preflight",
        preflight_values(plan, node, files),
        identity=identity,
        leave=True,
        opts=after(scripts, parent=parent, ignore=_PREFLIGHT_ONCE),
    )
    ready = converge(
        f"{name}-node",
        machine,
        "node",
        {**values, "APPLIED": applied},
        identity=identity,
        stamp=scripts.id,
        opts=after(preflight, waits_for, parent=parent),
    )
    return Prepared(ready=ready, applied=applied)


def artefacts(files: Mapping[str, File], names: tuple[str, ...]) -> str:
    """Lines `name url sum` for a phase's value ARTEFACTS.

    The sum is a SHA-256 of the mirror's manifest; without a mirror `published:<url>` of upstream's.
    """
    return "\n".join(
        f"{name} {file.url} {file.sha256 or f'published:{file.published}'}"
        for name, file in ((name, files[name]) for name in names)
    )


def _values(
    plan: Plan, node: Node, files: Mapping[str, File], ca_cert: Output[str]
) -> dict[str, Input[str]]:
    if not node.in_kubernetes:
        return {
            "ROLES": " ".join(node.roles),
            "PACKAGES": _ETCD_PACKAGES,
            "GENERATION": str(plan.spec.converge.generation),
            **_proxy(plan),
        }
    hosts = containerd.hosts(plan)
    return {
        "ROLES": " ".join(node.roles),
        "PACKAGES": _KUBERNETES_PACKAGES,
        "GENERATION": str(plan.spec.converge.generation),
        "ARTEFACTS": artefacts(files, _names(node)),
        "SYSCTL": sysctl.sysctl(plan).rstrip("\n"),
        "MODULES": sysctl.modules(plan).rstrip("\n"),
        "CONTAINERD_CONFIG": containerd.config(plan).rstrip("\n"),
        "CONTAINERD_UNIT": containerd.unit(plan).rstrip("\n"),
        "CONTAINERD_PROXY": containerd.proxy(plan).rstrip("\n"),
        "REGISTRY_HOSTS": "\n".join(
            f"{host}\t{base64.b64encode(text.encode()).decode()}" for host, text in hosts.items()
        ),
        "KUBELET_UNIT": kubelet.unit().rstrip("\n"),
        "KUBELET_DROPIN": kubelet.drop_in().rstrip("\n"),
        # Not used by the script: it makes a node read its settings from the cluster again when
        # they change.
        "KUBELET_MAX_PODS": str(plan.spec.kubelet.max_pods),
        "HAPROXY_CFG": haproxy.local_api(plan).rstrip("\n"),
        "CA_CRT": ca_cert.apply(lambda pem: pem.rstrip("\n")),
        "PAUSE_IMAGE": images(plan)["pause"].ref,
        **_proxy(plan),
    }


def _names(node: Node) -> tuple[str, ...]:
    """Files of a Kubernetes node."""
    if not node.is_master:
        return _WORKER_FILES
    # A member's own phase brings etcd with all its tools.
    return _MASTER_FILES if node.is_etcd else (*_MASTER_FILES, "etcd")


def _proxy(plan: Plan) -> dict[str, str]:
    lines = "\n".join(f"{key}={value}" for key, value in containerd.proxy_environment(plan))
    return {"PROXY_ENV": lines} if lines else {"PROXY_ENV": ""}


def preflight_values(plan: Plan, node: Node, files: Mapping[str, File]) -> dict[str, str]:
    """Values of the preflight phase; `make preflight` runs it with the same ones."""
    first = "kubelet" if node.in_kubernetes else "etcd"
    sources = [files[first].url]
    if plan.mirror and node.in_kubernetes:
        sources.append(f"{plan.mirror.registry}/v2/")
    # Everybody dials masters and members; nobody has to reach all workers.
    peers = [
        f"{other.address}:{other.ssh.port if other.ssh else 22}"
        for other in plan.nodes
        if (other.is_master or other.is_etcd) and other.name != node.name
    ]
    network = plan.spec.network
    return {
        "ROLES": " ".join(node.roles),
        "ADDRESS": node.address,
        "ARCH": node.arch,
        "PORTS": " ".join(str(port) for port in _ports(node)),
        "PEERS": " ".join(peers),
        "SOURCES": " ".join(sources),
        "VXLAN": "1" if network.plugin == "flannel" and network.backend == "vxlan" else "",
        "MIN_CPUS": "2" if node.is_master else "1",
        "MIN_MEMORY_MIB": "1700" if node.is_master else "900" if node.in_kubernetes else "400",
        "MIN_DISK_GIB": "8" if node.in_kubernetes else "4",
        **_proxy(plan),
    }


def _ports(node: Node) -> list[int]:
    ports = [ETCD_CLIENT_PORT, ETCD_PEER_PORT] if node.is_etcd else []
    if node.in_kubernetes:
        ports += [LOCAL_API_PORT, 10250]
    if node.is_master:
        ports += [API_PORT, 10257, 10259]
    return sorted(ports)
