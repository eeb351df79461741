"""Kernel settings and modules that a Kubernetes node needs."""

from __future__ import annotations

from stacks.cluster.plan import Plan
from stacks.networks import registry

_NETWORK = {
    "net.ipv4.ip_forward": "1",
    # Traffic between pods of one node passes the service rules too.
    "net.bridge.bridge-nf-call-iptables": "1",
    "net.bridge.bridge-nf-call-ip6tables": "1",
}

# Belong to the whole computer: a machine that is a container shares them with its neighbours.
_COMPUTER = {
    "fs.inotify.max_user_instances": "8192",
    "fs.inotify.max_user_watches": "524288",
    "kernel.panic": "10",
    "kernel.panic_on_oops": "1",
    "net.ipv4.neigh.default.gc_thresh1": "4096",
    "net.ipv4.neigh.default.gc_thresh2": "8192",
    "net.ipv4.neigh.default.gc_thresh3": "16384",
    "vm.overcommit_memory": "1",
}
OF_NODES = frozenset({*_NETWORK, *_COMPUTER})


def sysctl(plan: Plan) -> str:
    """/etc/sysctl.d/90-kube-ha.conf."""
    values = {**_NETWORK, **registry.of(plan.spec).SYSCTLS}
    if not plan.containers:
        values |= _COMPUTER
    return "".join(f"{key} = {value}\n" for key, value in sorted(values.items()))


def modules(plan: Plan) -> str:
    """/etc/modules-load.d/kube-ha.conf; in containers empty, the computer below has them loaded."""
    if plan.containers:
        return ""
    names = ["br_netfilter", "nf_conntrack", "overlay", *registry.backend(plan.spec).modules]
    return "".join(f"{name}\n" for name in names)
