"""What a change of each value means on the node: what restarts, and what users see of it.

The table is read by whoever reviews a change, so it says what the phases really do: restarts are
`settle` lines of components/scripts/, and everything that is not named keeps running.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Restart = Literal["etcd", "kube-apiserver"]  # what clients would notice where it is the only one


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    what: str  # the thing that changes, as a reader knows it
    then: str  # what follows from it
    restarts: Restart | None = None


_QUIET = "nothing restarts"
_CONTAINERD = "containerd restarts, containers keep running"
_HAPROXY = "HAProxy reloads, open connections stay"
_KUBELET = "kubelet restarts, pods keep running"
_API_SERVER = "the apiserver drains and restarts"
_ETCD = "etcd restarts, after its leadership has moved"
_ETCD_BESIDE = (
    "the apiserver beside it drains, etcd restarts after its leadership has moved, then both serve"
)

# By phase and name of a value, as in desired.py.
OF_VALUE: Mapping[tuple[str, str], Effect] = {
    ("node", "ROLES"): Effect(what="roles", then=_QUIET),
    ("node", "KUBERNETES"): Effect(what="Kubernetes", then="said with its versions"),
    ("node", "PACKAGES"): Effect(what="packages", then="missing ones are installed"),
    ("node", "GENERATION"): Effect(
        what="converge.generation", then="every phase runs again, what is right stays"
    ),
    ("node", "INCARNATION"): Effect(what="generation", then="the node is recreated"),
    ("node", "ADDRESS"): Effect(what="address", then=_QUIET),
    ("node", "DISK_GIB"): Effect(
        what="size of etcd's disk", then="its file system grows, etcd keeps running"
    ),
    ("node", "OS_PACKAGES"): Effect(
        what="packages of the operating system",
        then="it steps aside, packages are brought up to date, and it reboots if os.reboot says so",
        restarts="kube-apiserver",
    ),
    ("node", "OS_REBOOT"): Effect(what="os.reboot", then="read when os.packages changes"),
    ("node", "OS_HOLD"): Effect(what="held packages", then=_QUIET),
    ("node", "SYSCTL"): Effect(what="kernel settings", then=_QUIET),
    ("node", "MODULES"): Effect(what="kernel modules", then=_QUIET),
    ("node", "CONTAINERD_CONFIG"): Effect(what="containerd's config.toml", then=_CONTAINERD),
    ("node", "CONTAINERD_UNIT"): Effect(what="containerd's unit", then=_CONTAINERD),
    ("node", "CONTAINERD_PROXY"): Effect(what="containerd's proxy", then=_CONTAINERD),
    ("node", "REGISTRY_HOSTS"): Effect(what="registry mirrors", then="used by the next pull"),
    ("node", "KUBELET_UNIT"): Effect(what="kubelet's unit", then=_KUBELET),
    ("node", "KUBELET_DROPIN"): Effect(what="kubelet's unit", then=_KUBELET),
    ("node", "KUBELET_SETTINGS"): Effect(what="kubelet settings", then=_KUBELET),
    ("node", "KUBELET_OWN"): Effect(what="kubelet settings of a spot machine", then=_KUBELET),
    ("node", "CREDENTIAL_PROVIDERS"): Effect(
        what="registries that the node logs in at", then=_KUBELET
    ),
    ("node", "SPOT_NOTICE"): Effect(what="looking for the cloud's notice", then=_QUIET),
    ("node", "SERVING_ISSUED"): Effect(what="the kubelet's serving certificate", then=_KUBELET),
    ("node", "CLOUD_DOMAIN"): Effect(what="names that the cloud gives nodes", then=_QUIET),
    ("master", "CLOUD_DOMAIN"): Effect(what="names that the cloud gives nodes", then=_QUIET),
    ("node", "HAPROXY_CFG"): Effect(what="haproxy.cfg", then=_HAPROXY),
    ("node", "PAUSE_IMAGE"): Effect(what="pause image", then="used by new pods"),
    ("node", "KUBERNETES_CA"): Effect(
        what="CA of the cluster", then="HAProxy reloads, kubelet restarts, pods keep running"
    ),
    ("node", "VIP"): Effect(what="VIP", then=_HAPROXY),
    ("node", "HOOKS"): Effect(what="the webhook of hooks", then=_QUIET),
    ("node", "METRICS"): Effect(what="kube-ha's own metrics", then=_QUIET),
    ("node", "METRICS_VIP"): Effect(what="kube-ha's own metrics", then=_QUIET),
    ("node", "ADDON_FOLDERS"): Effect(what="folders of add-ons", then=_QUIET),
    **{
        ("vip", name): Effect(what=what, then="keepalived reloads, the VIP stays where it is")
        for name, what in (
            ("ADDRESS", "address"),
            ("VIP", "VIP"),
            ("INTERFACE", "interface of the VIP"),
            ("KEEPALIVED_CONF", "keepalived.conf"),
            ("KEEPALIVED_DROPIN", "keepalived's unit"),
            ("GENERATION_HERE", "generation"),
            ("RESTING", "maintenance"),
        )
    },
    ("node", "INGRESS"): Effect(what="ingress tier", then=_QUIET),
    ("node", "FIREWALL"): Effect(
        what="firewall",
        then="new connections that its rules do not name are dropped, open ones stay",
    ),
    ("ingress", "INGRESS_CFG"): Effect(what="ingress.cfg", then=_HAPROXY),
    ("ingress", "HOSTS"): Effect(what="certificate of the ingress tier", then=_HAPROXY),
    ("ingress", "GIVEN"): Effect(what="certificates of the ingress tier", then=_HAPROXY),
    ("ingress", "INGRESS_UNIT"): Effect(what="the ingress tier's unit", then=_HAPROXY),
    ("ingress", "GENERATION"): Effect(
        what="converge.generation", then="every phase runs again, what is right stays"
    ),
    **{
        ("vip-away", name): Effect(what=what, then=_QUIET)
        for name, what in (("VIP", "VIP"), ("OWN_FAILOVER", "failover of the VIP"))
    },
    ("vip-peers", "PEERS"): Effect(what="list of load balancers", then=_QUIET),
    ("vip-away", "GENERATION"): Effect(
        what="converge.generation", then="every phase runs again, what is right stays"
    ),
    ("vip", "GENERATION"): Effect(
        what="converge.generation", then="every phase runs again, what is right stays"
    ),
    ("node", "PROXY_ENV"): Effect(what="proxy for downloads", then=_QUIET),
    ("etcd-member", "ADDRESS"): Effect(what="address", then=_QUIET),
    ("etcd-member", "MEMBERS"): Effect(what="list of etcd members", then=_QUIET),
    ("etcd-member", "ARCH_DIR"): Effect(what="etcd's binaries", then=_ETCD, restarts="etcd"),
    ("etcd-member", "GENERATION"): Effect(
        what="converge.generation", then="every phase runs again, what is right stays"
    ),
    ("etcd-member", "ETCD_ENV"): Effect(what="etcd.env", then=_ETCD, restarts="etcd"),
    ("etcd-member", "ETCD_UNIT"): Effect(what="etcd's unit", then=_ETCD, restarts="etcd"),
    ("etcd-member", "OS_PACKAGES"): Effect(
        what="packages of the operating system",
        then="etcd's leadership is handed over before a reboot, and the member is back after it",
        restarts="etcd",
    ),
    ("etcd-member", "ETCD_CA"): Effect(what="CA of etcd", then=_ETCD, restarts="etcd"),
    **{
        ("etcd-member", f"BACKUP_{name}"): Effect(what="backups of etcd", then=_QUIET)
        for name in (
            *("EVERY_H", "KEEP", "DIRECTORY", "ENCRYPT"),
            *("STORE", "REGION", "ACCESS_KEY", "IDENTITY", "CA", "PRUNE", "PROXY"),
        )
    },
    ("master", "ADDRESS"): Effect(what="address", then=_QUIET),
    ("master", "KUBEADM_CONFIG"): Effect(
        what="kubeadm.yaml",
        then="the apiserver drains and restarts, then controller manager and scheduler where "
        "their part differs",
        restarts="kube-apiserver",
    ),
    ("master", "AUDIT_POLICY"): Effect(
        what="audit policy", then=_API_SERVER, restarts="kube-apiserver"
    ),
    ("master", "ADMISSION_CONFIG"): Effect(
        what="Pod Security Standards", then=_API_SERVER, restarts="kube-apiserver"
    ),
    ("master", "AUDIT_WEBHOOK"): Effect(
        what="collector of the audit log", then=_API_SERVER, restarts="kube-apiserver"
    ),
    ("master", "AUTHENTICATION"): Effect(
        what="identity providers, and what needs no credential",
        then=_API_SERVER,
        restarts="kube-apiserver",
    ),
    ("master", "OIDC_CA"): Effect(
        what="CA of the identity provider", then=_API_SERVER, restarts="kube-apiserver"
    ),
    ("master", "SERVING_ISSUED"): Effect(what="the kubelet's serving certificate", then=_KUBELET),
    ("master", "KEYS"): Effect(what="CAs and keys", then=_API_SERVER, restarts="kube-apiserver"),
}

# A word that is taken out: nobody is asked to update any more.
OS_LEFT = Effect(what="packages of the operating system", then="left as they are")
# Of a member: only a reboot ends etcd.
OS_STAYS_UP = Effect(what="packages of the operating system", then="etcd keeps running")
# The kubelet's part of kubeadm.yaml restarts no API server.
KUBELET_PART = Effect(
    what="kubelet settings", then="stored in the cluster; kubelet restarts, pods keep running"
)

# By the name of a component, as in versions.Versions: which nodes have it is changes.py's.
OF_VERSION: Mapping[str, Effect] = {
    "kubernetes": Effect(
        what="Kubernetes", then="kubelet restarts as the new version, pods keep running"
    ),
    "etcd": Effect(what="etcd", then=_ETCD, restarts="etcd"),
    "containerd": Effect(what="containerd", then=_CONTAINERD),
    "runc": Effect(what="runc", then="used by new containers"),
    "cni_plugins": Effect(what="CNI plugins", then="used by new pods"),
}
# Containers may not outlive a kubelet of another minor version.
OTHER_MINOR = Effect(
    what="Kubernetes", then="pods are evicted, then kubelet restarts as the new version"
)
# Of a master, whose kubelet waits for its own API server.
CONTROL_PLANE = Effect(
    what="Kubernetes",
    then="images are fetched while it serves, then the apiserver drains, kubelet and control plane "
    "change, and it serves again",
    restarts="kube-apiserver",
)
ETCD_CLIENT = Effect(what="etcd's client", then=_QUIET)
CERTIFICATES = Effect(
    what="certificates",
    then="apiserver and etcd read them while they run; controller manager and scheduler restart",
)
LOAD_BALANCER_CERTIFICATES = Effect(
    what="certificates", then="read whenever keepalived asks the cluster, nothing restarts"
)
INGRESS_CERTIFICATES = OF_VALUE["ingress", "GIVEN"]
CONNECTION = Effect(what="way of login", then="commands run again by it, nothing restarts")


def of_value(phase: str, name: str, was: str | None, now: str, *, reboots: bool) -> Effect:
    """What another value means; `reboots`: os.reboot allows it. Raises KeyError."""
    if name == "OS_PACKAGES" and not now:
        return OS_LEFT
    if (phase, name) == ("etcd-member", "OS_PACKAGES") and not reboots:
        return OS_STAYS_UP
    if name == "KUBEADM_CONFIG" and was and _control_plane(was) == _control_plane(now):
        return KUBELET_PART
    return OF_VALUE[phase, name]


def beside_api_server(effect: Effect) -> Effect:
    """The same on a master, while others serve: an API server asks the member beside it alone."""
    return replace(effect, then=_ETCD_BESIDE) if effect.then == _ETCD else effect


def _control_plane(kubeadm: str) -> str:
    return kubeadm.partition("apiVersion: kubelet.config")[0]
