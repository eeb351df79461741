"""The kubelet: its units, its configuration, and the labels it may give its own node."""

from __future__ import annotations

import json
from collections.abc import Mapping

from stacks.catalogue import registry as catalogue
from stacks.cluster import clouds, serving_certificates
from stacks.cluster.plan import Node, Plan
from stacks.config.fields import STRONG_CIPHERS
from stacks.config.kubelet import KubeletSpec
from stacks.documents.yaml_text import documents
from stacks.providers import registry

# Reasons stand here: a unit's text lies in the state twice, for every node.
# Before kubeadm has written its files the kubelet cannot start: it is never given up. The folder is
# where static pods would be, on workers too: without it the kubelet complains every second.
_UNIT = """\
[Unit]
Description=kubelet, the Kubernetes node agent
Wants=network-online.target
After=network-online.target containerd.service haproxy.service
StartLimitIntervalSec=0

[Service]
ExecStartPre=/bin/mkdir -p /etc/kubernetes/manifests
ExecStart=/usr/local/bin/kubelet
Restart=always
RestartSec=3
CPUAccounting=yes
MemoryAccounting=yes

[Install]
WantedBy=multi-user.target
"""

# The first file is written by kubeadm init and join (KUBELET_KUBEADM_ARGS), the second is left to
# the machine's owner.
_DROP_IN = """\
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS \
$KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""

CLOUD_ARGS = "/etc/kube-ha/kubelet.env"
# Read after the settings that all nodes share.
OWN_FOLDER = "/etc/kube-ha/kubelet.d"
OWN = f"{OWN_FOLDER}/50-spot.conf"
# Who asks for logins at registries: named in the first, and a program in the second.
_PROVIDERS = "/etc/kube-ha/credential-providers.yaml"
_PROVIDER_FOLDER = "/usr/local/lib/kube-ha/credential-providers"
_PROVIDER = "kube-ha-registry-login"

# Labels of these domains are Kubernetes' own; a kubelet may set only those named here
# (admission plugin NodeRestriction, and the kubelet refuses to start with others).
_RESERVED = ("kubernetes.io", "k8s.io")
_ALLOWED_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_ALLOWED = frozenset({"topology.kubernetes.io/region", "topology.kubernetes.io/zone"})


def unit() -> str:
    """/etc/systemd/system/kubelet.service."""
    return _UNIT


def drop_in(plan: Plan, *, has_own: bool = False) -> str:
    """/etc/systemd/system/kubelet.service.d/10-kubeadm.conf; `has_own`: there is a file OWN."""
    watched, text = plan.spec.kubelet.watchdog_s, _DROP_IN
    shared = "--config=/var/lib/kubelet/config.yaml"
    if has_own:
        text = text.replace(shared, f"{shared} --config-dir={OWN_FOLDER}", 1)
    if catalogue.logins(plan.spec):
        flags = f"config={_PROVIDERS} --image-credential-provider-bin-dir={_PROVIDER_FOLDER}"
        text = text.replace(shared, f"{shared} --image-credential-provider-{flags}", 1)
    if watched is not None:
        # The kubelet tells systemd that its loop turns, from 1.32 on (feature SystemdWatchdog).
        text = text.replace("[Service]\n", f"[Service]\nWatchdogSec={watched}\n", 1)
    if not clouds.has_controller(plan.spec):
        return text
    # Which machine it is, phase node writes there: this file is the same for all nodes of a pool.
    with_file = text.replace("ExecStart=\n", f"EnvironmentFile=-{CLOUD_ARGS}\nExecStart=\n", 1)
    return f"{with_file.rstrip()} $KUBELET_CLOUD_ARGS\n"


def configuration(plan: Plan) -> dict[str, object]:
    """The KubeletConfiguration of all nodes; kubeadm keeps it in the cluster for those that join.

    resolvConf is left out: kubeadm finds on each node whether systemd-resolved runs there.
    """
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}},
        "cgroupDriver": "systemd",
        "maxPods": plan.spec.kubelet.max_pods,
        "rotateCertificates": True,
        "serverTLSBootstrap": serving_certificates.are_issued(plan),
        "serializeImagePulls": False,
        "maxParallelImagePulls": 4,
        **(_CONTAINER if plan.containers else _shutdown(plan.spec.kubelet)),
        **_other_than_the_kubelets_own(plan.spec.kubelet, _thresholds(plan)),
    }


def credential_providers(plan: Plan) -> str:
    """CredentialProviderConfig, JSON for its size; empty: no login is asked for.

    An answer counts for as long as the program says (components/scripts/registry-login.sh).
    """
    hosts = catalogue.logins(plan.spec)
    if not hosts:
        return ""
    whole = {
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": [
            {
                "name": _PROVIDER,
                "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
                "matchImages": [*hosts],
                "defaultCacheDuration": "10m",
            }
        ],
    }
    return json.dumps(whole, separators=(",", ":"))


def own(plan: Plan, node: Node) -> str:
    """Settings of this node alone; empty: it has none.

    A spot machine that is shut down ends before pods have had the time that others have.
    """
    said, cloud = plan.spec.kubelet, registry.cloud(plan.spec)
    if cloud is None or cloud.SPOT_SHUTDOWN_S is None or not plan.spec.pools[node.pool].spot:
        return ""
    least = zip((said.shutdown_s, said.shutdown_critical_s), cloud.SPOT_SHUTDOWN_S, strict=True)
    all_s, critical_s = (min(pair) for pair in least)
    if (all_s, critical_s) == (said.shutdown_s, said.shutdown_critical_s):
        return ""
    return documents(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "shutdownGracePeriod": f"{all_s}s",
            "shutdownGracePeriodCriticalPods": f"{critical_s}s",
        }
    )


def _thresholds(plan: Plan) -> dict[str, str]:
    """What is left of a resource, by eviction signal, when pods are evicted."""
    said = {str(signal): left for signal, left in plan.spec.kubelet.eviction_hard.items()}
    return (_DISK_OF_A_COMPUTER | said) if plan.containers else said


def _other_than_the_kubelets_own(
    spec: KubeletSpec, thresholds: Mapping[str, str]
) -> dict[str, object]:
    """Settings that are left out as long as nobody asks for them."""
    size = spec.container_log_max_size_mib
    wanted: dict[str, object] = {
        "featureGates": dict(sorted(spec.feature_gates.items())),
        "evictionHard": dict(sorted(thresholds.items())),
        # Without it a signal that is not named would have no threshold at all.
        "mergeDefaultEvictionSettings": True if thresholds else None,
        "systemReserved": dict(sorted(spec.system_reserved.items())),
        "kubeReserved": dict(sorted(spec.kube_reserved.items())),
        "imageGCHighThresholdPercent": spec.image_gc_high_percent,
        "imageGCLowThresholdPercent": spec.image_gc_low_percent,
        "containerLogMaxSize": None if size is None else f"{size}Mi",
        "containerLogMaxFiles": spec.container_log_max_files,
        "podPidsLimit": spec.pod_pids_limit,
        "seccompDefault": spec.seccomp_default or None,
        "tlsCipherSuites": list(STRONG_CIPHERS) if spec.tls_ciphers == "strong" else None,
    }
    return {key: value for key, value in wanted.items() if value not in (None, {})}


def _shutdown(spec: KubeletSpec) -> dict[str, object]:
    """Pods are ended in order when the machine is shut down; needs systemd-logind."""
    return {
        "shutdownGracePeriod": f"{spec.shutdown_s}s",
        "shutdownGracePeriodCriticalPods": f"{spec.shutdown_critical_s}s",
    }


_CONTAINER: dict[str, object] = {
    "failCgroupV1": False,
    "failSwapOn": False,  # the swap seen is that of the computer below
    "oomScoreAdj": 0,
}

# All machines of a lab see the one disk of the computer below, which holds other things too: a
# share of it (15 %) says nothing, and no pod that is evicted would free it.
_DISK_OF_A_COMPUTER = {"imagefs.available": "2Gi", "nodefs.available": "2Gi"}


def own_labels(node: Node) -> tuple[tuple[str, str], ...]:
    """Labels that the node's kubelet may set itself; sorted."""
    return tuple((key, value) for key, value in node.labels if _may_set(key))


def _may_set(key: str) -> bool:
    domain, slash, _ = key.rpartition("/")
    if not slash or key in _ALLOWED:
        return True
    if any(_is_within(domain, allowed) for allowed in _ALLOWED_DOMAINS):
        return True
    return not any(_is_within(domain, reserved) for reserved in _RESERVED)


def _is_within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")
