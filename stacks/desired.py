"""What each phase makes of a node: its values by name, none of them secret, and the files they are.

Commands send these values, the plan in words compares them, and the drift probe looks for the
files. What cannot be known from the config alone is added where the command is made: the sums of
downloads (ARTEFACTS), certificates, and what a node announces (APPLIED).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from stacks import clouds, front_door_values, object_store, phases, ports, rotation, serving
from stacks.addon_files import Addon
from stacks.artifacts import File, images
from stacks.files import (
    apiserver,
    approver,
    containerd,
    coredns,
    etcd,
    flannel,
    haproxy,
    ingress,
    kube_proxy,
    kubeadm,
    kubelet,
    lost_nodes,
    sysctl,
    value,
)
from stacks.plan import Node, Plan

# Where a value lies on the node. The phases know these paths; the lab's stories compare both.
PATHS: Mapping[str, str] = {
    "SYSCTL": "/etc/sysctl.d/90-kube-ha.conf",
    "MODULES": "/etc/modules-load.d/kube-ha.conf",
    "CONTAINERD_CONFIG": "/etc/containerd/config.toml",
    "CONTAINERD_UNIT": "/etc/systemd/system/containerd.service",
    "CONTAINERD_PROXY": "/etc/systemd/system/containerd.service.d/proxy.conf",
    "KUBELET_UNIT": "/etc/systemd/system/kubelet.service",
    "KUBELET_DROPIN": "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
    "HAPROXY_CFG": "/etc/haproxy/haproxy.cfg",
    "INGRESS_CFG": ingress.CONFIG,
    "INGRESS_UNIT": "/etc/systemd/system/kube-ha-ingress.service",
    "KEEPALIVED_CONF": "/etc/keepalived/keepalived.conf",
    "KEEPALIVED_DROPIN": "/etc/systemd/system/keepalived.service.d/kube-ha.conf",
    "ETCD_ENV": "/etc/kube-ha/etcd/etcd.env",
    "ETCD_UNIT": "/etc/systemd/system/etcd.service",
    "KUBEADM_CONFIG": "/etc/kube-ha/kubeadm.yaml",
    "AUDIT_POLICY": kubeadm.AUDIT_POLICY,
    "ADMISSION_CONFIG": kubeadm.ADMISSION,
    "OIDC_CA": kubeadm.OIDC_CA,
}
# Not there at all where their text is empty.
_OPTIONAL = ("AUDIT_POLICY", "ADMISSION_CONFIG", "OIDC_CA")

_WORKER_FILES = ("containerd", "runc", "cni-plugins", "kubeadm", "kubelet")
_MASTER_FILES = (*_WORKER_FILES, "kubectl")
_KUBERNETES_PACKAGES = (
    "haproxy conntrack socat ethtool iptables nftables iproute2 kmod curl jq openssl "
    "ca-certificates procps"
)
_ETCD_PACKAGES = "iproute2 curl ca-certificates procps"
_LOAD_BALANCER_PACKAGES = "haproxy socat iproute2 curl jq openssl ca-certificates procps"


def files(plan: Plan, node: Node) -> dict[str, str]:
    """Every file of ours on a node that holds no secret: path -> text, as the phases write it."""
    values = {
        name: text for phase in of_phases(plan, node).values() for name, text in phase.items()
    }
    found = {
        PATHS[name]: f"{text}\n"
        for name, text in values.items()
        if name in PATHS and (text or name not in _OPTIONAL)
    }
    if node.in_kubernetes:
        for host, text in containerd.hosts(plan).items():
            found[f"/etc/containerd/certs.d/{host}/hosts.toml"] = text
        # Empty without a proxy, and there all the same.
        found[PATHS["CONTAINERD_PROXY"]] = containerd.proxy(plan)
    return found


def of_phases(plan: Plan, node: Node) -> dict[str, dict[str, str]]:
    """Values of each phase that a node's roles bring, in the order of the phases."""
    found = {"node": of_node(plan, node)}
    if node.is_etcd:
        found["etcd-member"] = of_member(plan, node)
    if node.is_master:
        found["master"] = of_master(plan, node)
    if node in plan.holders:
        found["vip"] = front_door_values.of_holder(plan, node)
    elif plan.load_balancers and node.is_master:
        if plan.holders:
            found["vip-peers"] = front_door_values.of_peers(plan)
        found["vip-away"] = front_door_values.of_others(plan)
    if node in plan.ingress:
        found["ingress"] = front_door_values.of_ingress(plan)
    return found


def of_node(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the node phase, but for ARTEFACTS, CA_CRT and APPLIED."""
    values = {
        "ROLES": " ".join(node.roles),
        "PACKAGES": _packages(node),
        "GENERATION": str(plan.spec.converge.generation),
        **_os(plan),
    }
    if node.generation > 1:
        values["INCARNATION"] = str(node.generation)
    if node.is_etcd or node.is_master:
        values["ADDRESS"] = node.address
    if node.in_kubernetes:
        values |= {
            "KUBERNETES": plan.versions.kubernetes,
            "SYSCTL": value.of(sysctl.sysctl(plan)),
            "MODULES": value.of(sysctl.modules(plan)),
            "CONTAINERD_CONFIG": value.of(containerd.config(plan)),
            "CONTAINERD_UNIT": value.of(containerd.unit(plan)),
            "CONTAINERD_PROXY": value.of(containerd.proxy(plan)),
            "REGISTRY_HOSTS": _registry_hosts(plan),
            "KUBELET_UNIT": value.of(kubelet.unit()),
            "KUBELET_DROPIN": value.of(kubelet.drop_in(plan)),
            # Not used by the script: it makes a node read its settings from the cluster again when
            # they change.
            "KUBELET_SETTINGS": phases.digest(json.dumps(kubelet.configuration(plan))),
            **_serving(plan),
            "HAPROXY_CFG": value.of(haproxy.local_api(plan, node)),
            "PAUSE_IMAGE": images(plan)["pause"].ref,
            **_cluster_ca(plan),
        }
    if node.is_load_balancer:
        values |= {"HAPROXY_CFG": value.of(haproxy.local_api(plan, node)), **_cluster_ca(plan)}
    if node in plan.holders:
        values["PACKAGES"] += " keepalived"
    # Masters too where load balancers have both: phase vip-away ends them once those stand by.
    if plan.holders and plan.listens(node):
        values["VIP"] = plan.vip
    if plan.ingress and plan.listens(node):
        values["INGRESS"] = "1"
    return values | _proxy(plan)


def _packages(node: Node) -> str:
    if node.is_load_balancer:
        return _LOAD_BALANCER_PACKAGES
    return _KUBERNETES_PACKAGES if node.in_kubernetes else _ETCD_PACKAGES


def applied(values: Mapping[str, str]) -> str:
    """What a node announces when all values of the node phase are so: a hash of them."""
    return phases.digest(phases.script_sum("node"), *(values[name] for name in sorted(values)))


def of_member(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the etcd-member phase, but for ARTEFACTS and BOOTSTRAP."""
    return {
        "ADDRESS": node.address,
        "MEMBERS": " ".join(f"{member.name}={member.address}" for member in plan.etcd),
        "ARCH_DIR": f"etcd-v{plan.versions.etcd}-linux-{node.arch}",
        "GENERATION": str(plan.spec.converge.generation),
        "ETCD_ENV": value.of(etcd.environment(plan, node)),
        # Not used by the script: once the machine has rebooted it proves that the member is back.
        "OS_PACKAGES": plan.spec.os.packages or "",
        "ETCD_UNIT": value.of(etcd.unit(plan)),
        **_etcd_ca(plan),
        "BACKUP_EVERY_H": str(plan.spec.etcd.backup.every_hours),
        **_backups(plan),
    }


def snapshot(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the snapshot phase on an etcd machine, but for REASON."""
    members = " ".join(f"{member.name}={member.address}" for member in plan.etcd)
    return {"ADDRESS": node.address, "MEMBERS": members, **_backups(plan)}


def _os(plan: Plan) -> dict[str, str]:
    said = plan.spec.os
    return {
        "OS_PACKAGES": said.packages or "",
        "OS_REBOOT": said.reboot,
        "OS_HOLD": " ".join(said.hold),
    }


def _backups(plan: Plan) -> dict[str, str]:
    said = plan.spec.etcd.backup
    return {
        "BACKUP_KEEP": str(said.keep),
        "BACKUP_DIRECTORY": said.directory or "",
        "BACKUP_ENCRYPT": "1" if said.encrypt else "0",
        **object_store.values(said.object_store, plan.spec.proxy),
    }


def of_master(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the master phase, but for CERTIFICATES and APPLIED."""
    audited = plan.spec.control_plane.audit.enabled
    return {
        "ADDRESS": node.address,
        "KUBEADM_CONFIG": value.of(kubeadm.init(plan, node)),
        "AUDIT_POLICY": value.of(apiserver.audit_policy(plan)) if audited else "",
        "ADMISSION_CONFIG": value.of(apiserver.admission_configuration(plan)),
        "OIDC_CA": value.of(apiserver.oidc_ca(plan)),
        **_serving(plan),
        "KEYS": rotation.words(plan),
    }


def _serving(plan: Plan) -> dict[str, str]:
    # A cloud controller manager of AWS gives nodes other names to serve under.
    domain = clouds.inner_domain(plan.spec)
    named = {"CLOUD_DOMAIN": domain} if domain else {}
    return {"SERVING_ISSUED": "1" if serving.are_issued(plan) else "", **named}


def _cluster_ca(plan: Plan) -> dict[str, str]:
    """Which generations of the CA count; nothing as long as there is only that of the first day."""
    wanted = plan.spec.pki.rotation.kubernetes
    return {"CLUSTER_CA": rotation.listed(wanted)} if rotation.has_begun(wanted) else {}


def _etcd_ca(plan: Plan) -> dict[str, str]:
    # Which of them signs makes no difference to a member: it reads its own certificates anew for
    # every connection, and its CAs when it starts.
    wanted = plan.spec.pki.rotation.etcd
    trusted = ",".join(map(str, sorted(rotation.generations(wanted))))
    return {"ETCD_CA": trusted} if rotation.has_begun(wanted) else {}


def addons(plan: Plan) -> dict[str, str]:
    """Manifests of what runs in every cluster of ours, by name."""
    manifests = {
        "coredns": coredns.coredns(plan),
        "kube-proxy": kube_proxy.kube_proxy(plan),
        "lost-nodes": lost_nodes.lost_nodes(plan),
        "serving-certificates": approver.manifest(plan),
    }
    if plan.spec.network.plugin == "flannel":
        manifests["flannel"] = flannel.flannel(plan)
    return manifests


def manifests(plan: Plan, addon: Addon) -> dict[str, str]:
    """Values of the manifests phase: which files, and which objects are in them."""
    lines = [
        f"{shipped(addon, number)} {total} {path}"
        for number, (path, total) in enumerate(addon.files)
    ]
    groups: dict[tuple[str, str], list[str]] = {}
    for one in addon.objects:
        groups.setdefault((one.kind, one.namespace), []).append(one.name)
    return {
        "NAME": addon.name,
        "FILES": "\n".join(lines),
        "OBJECTS": "\n".join(" ".join([*where, *found]) for where, found in groups.items()),
        "GENERATION": str(plan.spec.converge.generation),
    }


def shipped(addon: Addon, number: int) -> str:
    """Name of one of its files on the master that applies it: another one for other content."""
    return f"addon.{addon.name}.{number + 1}.{addon.files[number][1][:12]}.yaml"


def preflight(plan: Plan, node: Node, files: Mapping[str, File]) -> dict[str, str]:
    """Values of the preflight phase; `make preflight` runs it with the same ones."""
    first = "kubelet" if node.in_kubernetes else "etcd"
    # Nothing is fetched to a load balancer but packages.
    sources = [] if node.is_load_balancer else [files[first].url]
    if plan.mirror and node.in_kubernetes:
        sources.append(f"{plan.mirror.registry}/v2/")
    # Everybody dials masters and members; nobody has to reach all workers. A load balancer may
    # stand where nothing of the cluster is to be reached but the API.
    peers = [
        f"{other.address}:{ports.API_PORT}" for other in plan.masters if node.is_load_balancer
    ] or [
        f"{other.address}:{other.ssh.port if other.ssh else 22}"
        for other in plan.nodes
        if (other.is_master or other.is_etcd) and other.name != node.name
    ]
    network, vip = plan.spec.network, plan.spec.front_doors.vip
    return {
        "ROLES": " ".join(node.roles),
        "ADDRESS": node.address,
        "ARCH": node.arch,
        "PORTS": " ".join(str(port) for port in sorted(_ports(plan, node))),
        "PEERS": " ".join(peers),
        "SOURCES": " ".join(sources),
        "VXLAN": "1" if network.plugin == "flannel" and network.backend == "vxlan" else "",
        "MTU": _mtu(plan) if node.in_kubernetes else "",
        **({"VIP_INTERFACE": vip.interface} if vip and node in plan.holders else {}),
        "MIN_CPUS": "2" if node.is_master else "1",
        "MIN_MEMORY_MIB": "1700" if node.is_master else "900" if node.in_kubernetes else "400",
        "MIN_DISK_GIB": "8" if node.in_kubernetes else "4",
        **({"MOUNT": clouds.DATA} if clouds.in_cloud(plan.spec) and node.is_etcd else {}),
        **_proxy(plan),
    }


def _ports(plan: Plan, node: Node) -> set[int]:
    vip = plan.spec.front_doors.vip
    etcd = plan.spec.front_doors.etcd
    return {
        *ports.of_roles(node.roles),
        *([vip.port] if vip and plan.listens(node) else []),
        *((ingress.HTTP_PORT, ingress.HTTPS_PORT) if node in plan.ingress else ()),
        *([etcd.port] if etcd and node.pool in etcd.pools else []),
    }


def downloads(node: Node) -> tuple[str, ...]:
    """Names of the files that the node phase fetches, as in artifacts/lock.yaml."""
    if not node.in_kubernetes:
        return ()
    if not node.is_master:
        return _WORKER_FILES
    # A member's own phase brings etcd with all its tools.
    return _MASTER_FILES if node.is_etcd else (*_MASTER_FILES, "etcd")


def artefacts(files: Mapping[str, File], names: tuple[str, ...]) -> str:
    """Lines `name url sum` for a phase's value ARTEFACTS.

    The sum is a SHA-256 of the mirror's manifest; without a mirror `published:<url>` of upstream's.
    """
    return "\n".join(
        f"{name} {file.url} {file.sha256 or f'published:{file.published}'}"
        for name, file in ((name, files[name]) for name in names)
    )


def _registry_hosts(plan: Plan) -> str:
    return "\n".join(
        f"{host}\t{base64.b64encode(text.encode()).decode()}"
        for host, text in containerd.hosts(plan).items()
    )


def _proxy(plan: Plan) -> dict[str, str]:
    lines = "\n".join(f"{key}={value}" for key, value in containerd.proxy_environment(plan))
    return {"PROXY_ENV": lines}


def _mtu(plan: Plan) -> str:
    """What an interface has to take for the packets of pods, in bytes; empty: any will do."""
    network = plan.spec.network
    if network.mtu is None:
        return ""
    return str(network.mtu + (flannel.VXLAN_HEADERS if network.backend == "vxlan" else 0))
