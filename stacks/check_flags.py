"""Checks of further flags of the control plane: those that are not the user's to give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stacks.problems import Problem

if TYPE_CHECKING:
    from stacks.spec import Spec

# Flags that kubeadm or this program writes: flag -> the config key to use, or why there is none.
_CERTIFICATES = "is set by the PKI; its files are made by this program"
_NETWORK = "follows from cluster.podCidr and cluster.serviceCidr"
_FEATURE_GATES = "use controlPlane.featureGates"
_KUBECONFIG = "is set by kubeadm"
_API_SERVER = {
    "admission-control-config-file": "use controlPlane.podSecurity",
    "advertise-address": "is the node's address",
    "allow-privileged": "is set by kubeadm",
    "anonymous-auth": "probes, HAProxy's checks and the node scripts ask without a certificate",
    "audit-log-maxage": "use controlPlane.audit.maxAgeDays",
    "audit-log-maxbackup": "use controlPlane.audit.maxBackups",
    "audit-log-maxsize": "use controlPlane.audit.maxSizeMib",
    "audit-log-path": "use controlPlane.audit.enabled",
    "audit-policy-file": "use controlPlane.audit.policy",
    "authentication-config": "its file is not shipped to masters; use controlPlane.oidc",
    "authorization-config": "its file is not shipped to masters",
    "authorization-mode": "is set by kubeadm (Node,RBAC)",
    "bind-address": "is every address of the node",
    "client-ca-file": _CERTIFICATES,
    "disable-admission-plugins": "would switch off what the cluster relies on",
    "enable-admission-plugins": "use controlPlane.admissionPlugins",
    "enable-bootstrap-token-auth": "is needed for workers to join",
    "encryption-provider-config": "use controlPlane.encryptSecrets",
    "etcd-cafile": _CERTIFICATES,
    "etcd-certfile": _CERTIFICATES,
    "etcd-keyfile": _CERTIFICATES,
    "etcd-servers": "follows from the machines with role etcd",
    "feature-gates": _FEATURE_GATES,
    "kubelet-certificate-authority": "use kubelet.servingCertificates",
    "kubelet-client-certificate": _CERTIFICATES,
    "kubelet-client-key": _CERTIFICATES,
    "oidc-ca-file": "use controlPlane.oidc.ca",
    "oidc-client-id": "use controlPlane.oidc.clientId",
    "oidc-groups-claim": "use controlPlane.oidc.groupsClaim",
    "oidc-groups-prefix": "use controlPlane.oidc.groupsPrefix",
    "oidc-issuer-url": "use controlPlane.oidc.issuerUrl",
    "oidc-required-claim": "use controlPlane.oidc.requiredClaims",
    "oidc-signing-algs": "use controlPlane.oidc.signingAlgs",
    "oidc-username-claim": "use controlPlane.oidc.usernameClaim",
    "oidc-username-prefix": "use controlPlane.oidc.usernamePrefix",
    "profiling": "use controlPlane.profiling",
    "proxy-client-cert-file": _CERTIFICATES,
    "proxy-client-key-file": _CERTIFICATES,
    "requestheader-client-ca-file": _CERTIFICATES,
    "secure-port": "is fixed; load balancers count on it",
    "service-account-issuer": "is set by kubeadm",
    "service-account-key-file": _CERTIFICATES,
    "service-account-signing-key-file": _CERTIFICATES,
    "service-cluster-ip-range": _NETWORK,
    "shutdown-delay-duration": "is fixed; load balancers count on it",
    "tls-cert-file": _CERTIFICATES,
    "tls-private-key-file": _CERTIFICATES,
}
_ELECTED = {
    "authentication-kubeconfig": _KUBECONFIG,
    "authorization-kubeconfig": _KUBECONFIG,
    "bind-address": "is set by this program",
    "feature-gates": _FEATURE_GATES,
    "kubeconfig": _KUBECONFIG,
    "leader-elect": "is always on",
    "leader-elect-lease-duration": "use controlPlane.leaderElection.leaseDurationS",
    "leader-elect-renew-deadline": "use controlPlane.leaderElection.renewDeadlineS",
    "leader-elect-retry-period": "use controlPlane.leaderElection.retryPeriodS",
    "profiling": "use controlPlane.profiling",
}
_CONTROLLER_MANAGER = _ELECTED | {
    "allocate-node-cidrs": _NETWORK,
    "client-ca-file": _CERTIFICATES,
    "cluster-cidr": _NETWORK,
    "cluster-name": "is set by kubeadm",
    "cluster-signing-cert-file": _CERTIFICATES,
    "cluster-signing-key-file": _CERTIFICATES,
    "node-cidr-mask-size": "use network.nodeCidrMask",
    "node-cidr-mask-size-ipv4": "use network.nodeCidrMask",
    "node-cidr-mask-size-ipv6": "pods have IPv4 addresses",
    "requestheader-client-ca-file": _CERTIFICATES,
    "root-ca-file": _CERTIFICATES,
    "service-account-private-key-file": _CERTIFICATES,
    "service-cluster-ip-range": _NETWORK,
    "terminated-pod-gc-threshold": "use controlPlane.terminatedPodGcThreshold",
    "use-service-account-credentials": "is set by kubeadm",
}


def problems(spec: Spec) -> list[Problem]:
    """Flags that kubeadm or this program writes, each with the config key to use."""
    control_plane = spec.control_plane
    given: list[tuple[str, Mapping[str, str], Mapping[str, str]]] = [
        ("apiServerArgs", control_plane.api_server_args, _API_SERVER),
        ("controllerManagerArgs", control_plane.controller_manager_args, _CONTROLLER_MANAGER),
        ("schedulerArgs", control_plane.scheduler_args, _ELECTED),
    ]
    return [
        Problem(f"controlPlane.{section}.{flag}", f"is not yours to set: {owned[flag]}")
        for section, flags, owned in given
        for flag in flags
        if flag in owned
    ]
