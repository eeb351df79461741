"""What phase `node` is told: the baseline of every machine."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from stacks.catalogue import registry as catalogue
from stacks.cluster import cloud_machines, clouds, digests, rotation
from stacks.cluster.artifacts import File, images
from stacks.cluster.plan import Node, Plan
from stacks.phases import downloads, serving_certificates
from stacks.providers import registry
from stacks.render import containerd, firewall, haproxy, hooks, kubelet, sysctl, value

_KUBERNETES_PACKAGES = (
    "haproxy conntrack socat ethtool iptables nftables iproute2 kmod curl jq openssl "
    "ca-certificates procps"
)
_ETCD_PACKAGES = "iproute2 curl ca-certificates procps"
_LOAD_BALANCER_PACKAGES = "haproxy socat iproute2 curl jq openssl ca-certificates procps"


def of_node(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the node phase, but for ARTEFACTS, CA_CRT and APPLIED."""
    values = {
        "ROLES": " ".join(node.roles),
        "PACKAGES": _packages(plan, node),
        "GENERATION": str(plan.spec.converge.generation),
        **_os(plan),
    }
    if node.generation > 1:
        values["INCARNATION"] = str(node.generation)
    if node.is_etcd or node.is_master:
        values["ADDRESS"] = node.address
    if node.is_etcd and clouds.in_cloud(plan.spec):
        values["DISK_GIB"] = str(cloud_machines.hardware(plan, node).etcd_disk_gib)
    if node.in_kubernetes:
        values |= {
            "KUBERNETES": plan.versions.kubernetes,
            "SYSCTL": value.of(sysctl.sysctl(plan)),
            "MODULES": value.of(sysctl.modules(plan)),
            "CONTAINERD_CONFIG": value.of(containerd.config(plan)),
            "CONTAINERD_UNIT": value.of(containerd.unit(plan)),
            "CONTAINERD_PROXY": value.of(containerd.proxy(plan)),
            "REGISTRY_HOSTS": _registry_hosts(plan),
            **_kubelet(plan, node),
            **serving_certificates.values(plan),
            "HAPROXY_CFG": value.of(haproxy.local_api(plan, node)),
            "PAUSE_IMAGE": images(plan)["pause"].ref,
            **_cluster_ca(plan),
            **_addons(plan, node),
            **({"HOOKS": hooks.hooks(plan)} if plan.spec.hooks else {}),
        }
    if node.is_load_balancer:
        values |= {"HAPROXY_CFG": value.of(haproxy.local_api(plan, node)), **_cluster_ca(plan)}
    # Masters too where load balancers have both: phase vip-away ends them once those run as
    # standby.
    if plan.holders and plan.listens(node):
        values["VIP"] = plan.vip
    if plan.ingress and plan.listens(node):
        values["INGRESS"] = "1"
    if (said := plan.spec.machines.firewall) is not None:
        values["FIREWALL"] = firewall.rules(plan, node, said)
    return values | downloads.proxy(plan)


def _kubelet(plan: Plan, node: Node) -> dict[str, str]:
    own, cloud = kubelet.own(plan, node), registry.cloud(plan.spec)
    logins = kubelet.credential_providers(plan)
    hears = cloud is not None and cloud.SPOT_NOTICE and plan.spec.pools[node.pool].spot
    return {
        "KUBELET_UNIT": value.of(kubelet.unit()),
        "KUBELET_DROPIN": value.of(kubelet.drop_in(plan, has_own=bool(own))),
        # Not used by the script: when it changes, the node reads its settings again.
        "KUBELET_SETTINGS": digests.digest(json.dumps(kubelet.configuration(plan))),
        **({"KUBELET_OWN": value.of(own)} if own else {}),
        **({"CREDENTIAL_PROVIDERS": logins} if logins else {}),
        **({"SPOT_NOTICE": "1"} if hears else {}),
    }


def _addons(plan: Plan, node: Node) -> dict[str, str]:
    """What it measures of itself, where an add-on reads that; whose folders it keeps."""
    there = catalogue.chosen(plan.spec)
    if not there:
        return {}
    folders = catalogue.folders(plan.spec)
    kept = {"ADDON_FOLDERS": " ".join(folders)} if folders else {}
    if not any(entry.READS_NODES for entry in there.values()):
        return kept
    vip = plan.spec.front_doors.vip
    own = {"METRICS_VIP": vip.address} if vip is not None and node in plan.holders else {}
    return {"METRICS": "1", **own, **kept}


def whole(plan: Plan, node: Node, files: Mapping[str, File]) -> dict[str, str]:
    """The same with ARTEFACTS, and a place for CA_CRT: all that makes what the node announces.

    `files` is what nodes fetch.
    """
    values = of_node(plan, node)
    if node.in_kubernetes:
        values["ARTEFACTS"] = downloads.node_artefacts(plan, node, files)
    if node.in_kubernetes or node.is_load_balancer:
        values["CA_CRT"] = ""
    return values


def _packages(plan: Plan, node: Node) -> str:
    if node.in_kubernetes:
        names = _KUBERNETES_PACKAGES
    else:
        names = _LOAD_BALANCER_PACKAGES if node.is_load_balancer else _ETCD_PACKAGES
        names += " nftables" if plan.spec.machines.firewall else ""
    return f"{names} keepalived" if node in plan.holders else names


def _os(plan: Plan) -> dict[str, str]:
    said = plan.spec.os
    return {
        "OS_PACKAGES": said.packages or "",
        "OS_REBOOT": said.reboot,
        "OS_HOLD": " ".join(said.hold),
    }


def _cluster_ca(plan: Plan) -> dict[str, str]:
    """Which generations of the CA count; nothing as long as there is only that of the first day."""
    wanted = plan.spec.pki.rotation.kubernetes
    return {"KUBERNETES_CA": rotation.listed(wanted)} if rotation.has_begun(wanted) else {}


def _registry_hosts(plan: Plan) -> str:
    return "\n".join(
        f"{host}\t{base64.b64encode(text.encode()).decode()}"
        for host, text in containerd.hosts(plan).items()
    )
