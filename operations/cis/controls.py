"""All controls of the CIS Kubernetes benchmark 1.12, in their order.

Titles are in our own words. Where a deviation is meant, its reason stands beside it; it counts only
while the machine does deviate.
"""

from __future__ import annotations

from operations.cis.api_server import API_SERVER
from operations.cis.components import CONTROLLERS, ETCD, POLICY
from operations.cis.control import ETC, PKI, PODS, UNITS, Control
from operations.cis.facts import KUBELET_CONFIG
from operations.cis.files import FILES
from operations.cis.kubelet import KUBELET
from operations.cis.workload import WORKLOAD
from stacks.render import etcd

CONTROLS: tuple[Control, ...] = (
    *FILES,
    *API_SERVER,
    *CONTROLLERS,
    *ETCD,
    *POLICY,
    *KUBELET,
    *WORKLOAD,
)

# What a machine is asked for: patterns of a shell.
PATHS = (
    f"{PODS}/*.yaml",
    f"{ETC}/*.conf",
    PKI,
    f"{PKI}/*",
    f"{PKI}/etcd/*",
    "/etc/kube-ha/etcd/*.key",
    "/etc/cni/net.d/*",
    etcd.DATA,
    *UNITS,
    KUBELET_CONFIG,
    "/var/lib/kubelet/kubeadm-flags.env",
    "/var/lib/kube-proxy/kubeconfig.conf",
)
