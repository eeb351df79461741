"""What each phase makes of a node: its values by name, none of them secret, and the files they are.

Commands send these values, the change plan compares them, and the drift probe looks for the
files. What cannot be known from the config alone is added where the command is made: the sums of
downloads (ARTEFACTS), certificates, and what a node announces (APPLIED).
"""

from __future__ import annotations

from collections.abc import Mapping

from stacks.cluster import digests
from stacks.cluster.plan import Node, Plan
from stacks.phases import etcd_member, front_doors, scripts
from stacks.phases.master import of_master
from stacks.phases.node import of_node
from stacks.render import containerd, firewall, hooks, ingress, kubeadm, kubelet

# Where a value is on the node. The phases know these paths; the lab's stories compare both.
PATHS: Mapping[str, str] = {
    "SYSCTL": "/etc/sysctl.d/90-kube-ha.conf",
    "MODULES": "/etc/modules-load.d/kube-ha.conf",
    "CONTAINERD_CONFIG": "/etc/containerd/config.toml",
    "CONTAINERD_UNIT": "/etc/systemd/system/containerd.service",
    "CONTAINERD_PROXY": "/etc/systemd/system/containerd.service.d/proxy.conf",
    "KUBELET_UNIT": "/etc/systemd/system/kubelet.service",
    "KUBELET_DROPIN": "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
    "KUBELET_OWN": kubelet.OWN,
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
    "AUDIT_WEBHOOK": kubeadm.AUDIT_WEBHOOK,
    "AUTHENTICATION": kubeadm.AUTHENTICATION,
    "HOOKS": hooks.CONFIG,
    "FIREWALL": firewall.RULES,
}
# Not there at all where their text is empty.
_OPTIONAL = (
    "AUDIT_POLICY",
    "ADMISSION_CONFIG",
    "OIDC_CA",
    "AUDIT_WEBHOOK",
    "AUTHENTICATION",
    "HOOKS",
)


def files(plan: Plan, node: Node) -> dict[str, str]:
    """Every file of kube-ha on a node that holds no secret: path -> text, as phases write it."""
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
        found["etcd-member"] = etcd_member.of_member(plan, node)
    if node.is_master:
        found["master"] = of_master(plan, node)
    if node in plan.holders:
        found["vip"] = front_doors.of_holder(plan, node)
    elif plan.load_balancers and node.is_master:
        if plan.holders:
            found["vip-peers"] = front_doors.of_peers(plan)
        found["vip-away"] = front_doors.of_others(plan)
    if node in plan.ingress:
        found["ingress"] = front_doors.of_ingress(plan)
    return found


def applied(values: Mapping[str, str]) -> str:
    """What a node announces when all values of the node phase are so: a hash of them."""
    return digests.digest(scripts.script_sum("node"), *(values[name] for name in sorted(values)))
