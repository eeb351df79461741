"""Checks of further flags of the control plane: those that are not the user's to give."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.config.problems import Problem
from stacks.config.spec import Spec

# Flags that kubeadm or this program writes: flag -> the config key to use, or why there is none.
_CERTIFICATES = "is set by the PKI; its files are made by this program"
_NETWORK = "follows from cluster.podCidr and cluster.serviceCidr"
_FEATURE_GATES = "use controlPlane.featureGates"
_KUBECONFIG = "is set by kubeadm"
_DATA = "would show another data set, or none: every object would be gone from sight"
_ENDS = "prints something and ends"
_LEASE = "would make another lease, so that two would lead for a time"
_API_SERVER = {
    "admission-control-config-file": "use controlPlane.podSecurity",
    "advertise-address": "is the node's address",
    "allow-privileged": "is set by kubeadm",
    "anonymous-auth": "use controlPlane.anonymous: probes, HAProxy's checks and the node scripts "
    "ask for health without a certificate",
    "audit-log-maxage": "use controlPlane.audit.maxAgeDays",
    "audit-log-maxbackup": "use controlPlane.audit.maxBackups",
    "audit-log-maxsize": "use controlPlane.audit.maxSizeMib",
    "audit-log-path": "use controlPlane.audit.enabled",
    "audit-policy-file": "use controlPlane.audit.policy",
    "authentication-config": "use controlPlane.anonymous, controlPlane.oidc and "
    "controlPlane.oidcIssuers: its file is made of them",
    "authorization-config": "its file is not shipped to masters",
    "authorization-mode": "is set by kubeadm (Node,RBAC)",
    "bind-address": "is every address of the node",
    "cert-dir": _CERTIFICATES,
    "client-ca-file": _CERTIFICATES,
    "disable-admission-plugins": "would switch off what the cluster relies on",
    "emulated-version": "is that of cluster.kubernetes",
    "enable-admission-plugins": "use controlPlane.admissionPlugins",
    "enable-bootstrap-token-auth": "is needed for workers to join",
    "encryption-provider-config": "use controlPlane.encryptSecrets",
    "endpoint-reconciler-type": "is lease; the Service `kubernetes` has its endpoints by it",
    "etcd-cafile": _CERTIFICATES,
    "etcd-certfile": _CERTIFICATES,
    "etcd-keyfile": _CERTIFICATES,
    "etcd-prefix": _DATA,
    "etcd-servers": "follows from the machines with role etcd",
    "etcd-servers-overrides": _DATA,
    "external-hostname": "use cluster.endpoint",
    "feature-gates": _FEATURE_GATES,
    "help": _ENDS,
    "kubelet-certificate-authority": "use kubelet.servingCertificates",
    "kubelet-client-certificate": _CERTIFICATES,
    "kubelet-client-key": _CERTIFICATES,
    "kubernetes-service-node-port": "leads past HAProxy; use cluster.endpoint",
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
    "service-account-issuer": "use controlPlane.serviceAccountIssuers",
    "service-account-key-file": _CERTIFICATES,
    "service-account-signing-key-file": _CERTIFICATES,
    "service-cluster-ip-range": _NETWORK,
    "shutdown-delay-duration": "is fixed; load balancers count on it",
    "storage-backend": _DATA,
    "storage-media-type": "is read by every API server of the cluster, whatever its flags",
    "tls-cert-file": _CERTIFICATES,
    "tls-private-key-file": _CERTIFICATES,
    "token-auth-file": "its file is not shipped to masters",
    "version": _ENDS,
}
_ELECTED = {
    "authentication-kubeconfig": _KUBECONFIG,
    "authorization-kubeconfig": _KUBECONFIG,
    "bind-address": "is set by this program",
    "cert-dir": _CERTIFICATES,
    "client-ca-file": _CERTIFICATES,
    "config": "its file is not shipped to masters",
    "emulated-version": "is that of cluster.kubernetes",
    "feature-gates": _FEATURE_GATES,
    "help": _ENDS,
    "kubeconfig": _KUBECONFIG,
    "leader-elect": "is always on",
    "leader-elect-lease-duration": "use controlPlane.leaderElection.leaseDurationS",
    "leader-elect-renew-deadline": "use controlPlane.leaderElection.renewDeadlineS",
    "leader-elect-resource-lock": _LEASE,
    "leader-elect-resource-name": _LEASE,
    "leader-elect-resource-namespace": _LEASE,
    "leader-elect-retry-period": "use controlPlane.leaderElection.retryPeriodS",
    "master": "is the API server of the same master",
    "profiling": "use controlPlane.profiling",
    "requestheader-client-ca-file": _CERTIFICATES,
    "secure-port": "is fixed; probes ask there",
    "tls-cert-file": _CERTIFICATES,
    "tls-private-key-file": _CERTIFICATES,
    "version": _ENDS,
    "write-config-to": _ENDS,
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

OWNED: Mapping[str, Mapping[str, str]] = {
    "apiServerArgs": _API_SERVER,
    "controllerManagerArgs": _CONTROLLER_MANAGER,
    "schedulerArgs": _ELECTED,
}


def problems(spec: Spec) -> list[Problem]:
    """Flags that kubeadm or this program writes, each with the config key to use."""
    control_plane = spec.control_plane
    given: list[tuple[str, Mapping[str, str]]] = [
        ("apiServerArgs", control_plane.api_server_args),
        ("controllerManagerArgs", control_plane.controller_manager_args),
        ("schedulerArgs", control_plane.scheduler_args),
    ]
    return [
        Problem(f"controlPlane.{section}.{flag}", f"is not yours to set: {OWNED[section][flag]}")
        for section, flags in given
        for flag in flags
        if flag in OWNED[section]
    ]
