"""Checks of the software's settings: timings that fit together, flags that are not ours to give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stacks.problems import Problem
from stacks.settings import API_SHUTDOWN_DELAY_S, CHECK_TIMEOUT_S, CHECKS_TO_FALL

if TYPE_CHECKING:
    from stacks.settings import AuditSpec
    from stacks.spec import Spec

# HAProxy opens two files for each, and some for itself; it does not start if it may not. Machines
# of the lab may open 20000.
_CONTAINER_CONNECTIONS = 9900

# Flags that kubeadm or this program writes: flag -> the config key to use, or why there is none.
_CERTIFICATES = "is set by the PKI; its files are made by this program"
_NETWORK = "follows from cluster.podCidr and cluster.serviceCidr"
_KUBECONFIG = "is set by kubeadm"
_API_SERVER = {
    "admission-control-config-file": "is not shipped to masters",
    "advertise-address": "is the node's address",
    "allow-privileged": "is set by kubeadm",
    "anonymous-auth": "probes, HAProxy's checks and the node scripts ask without a certificate",
    "audit-log-maxage": "use controlPlane.audit.maxAgeDays",
    "audit-log-maxbackup": "use controlPlane.audit.maxBackups",
    "audit-log-maxsize": "use controlPlane.audit.maxSizeMib",
    "audit-log-path": "use controlPlane.audit.enabled",
    "audit-policy-file": "use controlPlane.audit.policy",
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
    "kubelet-client-certificate": _CERTIFICATES,
    "kubelet-client-key": _CERTIFICATES,
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
    """Settings that no component would take, or that contradict each other."""
    return [
        *_load_balancing(spec),
        *_etcd(spec),
        *_leader_election(spec),
        *_admission(spec),
        *_flags(spec),
        *_audit(spec.control_plane.audit),
        *_lifetimes(spec),
    ]


def _load_balancing(spec: Spec) -> list[Problem]:
    path, wanted = "loadBalancing", spec.load_balancing
    out = []
    delay_ms = 1000 * API_SHUTDOWN_DELAY_S
    if wanted.detection_ms >= delay_ms:
        most = (delay_ms - 1000 * CHECK_TIMEOUT_S - 1) // CHECKS_TO_FALL
        text = (
            f"with {wanted.check_interval_ms} a node may take {wanted.detection_ms} ms to notice "
            f"that a master ends, which answers for {delay_ms} ms more; use at most {most}"
        )
        out.append(Problem(f"{path}.checkIntervalMs", text))
    containers = spec.machines.containers or spec.machines.provider == "lab"
    if containers and wanted.max_connections > _CONTAINER_CONNECTIONS:
        text = (
            f"{wanted.max_connections} need more files than machines that are containers may open; "
            f"use at most {_CONTAINER_CONNECTIONS}"
        )
        out.append(Problem(f"{path}.maxConnections", text))
    return out


def _etcd(spec: Spec) -> list[Problem]:
    least = 5 * spec.etcd.heartbeat_interval_ms  # etcd refuses to start below it
    if spec.etcd.election_timeout_ms >= least:
        return []
    text = f"{spec.etcd.election_timeout_ms} is under 5 x heartbeatIntervalMs; use {2 * least}"
    return [Problem("etcd.electionTimeoutMs", text)]


def _leader_election(spec: Spec) -> list[Problem]:
    """client-go refuses to start unless lease > renew > 1.2 x retry."""
    path, timing = "controlPlane.leaderElection", spec.control_plane.leader_election
    out = []
    if timing.lease_duration_s <= timing.renew_deadline_s:
        text = f"{timing.lease_duration_s} is not above renewDeadlineS {timing.renew_deadline_s}"
        out.append(Problem(f"{path}.leaseDurationS", f"{text}; a leader must give up first"))
    if 5 * timing.renew_deadline_s <= 6 * timing.retry_period_s:
        text = f"{timing.renew_deadline_s} is not above 1.2 x retryPeriodS {timing.retry_period_s}"
        out.append(Problem(f"{path}.renewDeadlineS", f"{text}; leave time for a second try"))
    return out


def _admission(spec: Spec) -> list[Problem]:
    path, plugins = "controlPlane.admissionPlugins", spec.control_plane.admission_plugins
    out = []
    if "NodeRestriction" not in plugins:
        text = "NodeRestriction is missing; without it one worker's kubelet can act on other nodes"
        out.append(Problem(path, text))
    if len(set(plugins)) != len(plugins):
        out.append(Problem(path, f"[{', '.join(plugins)}] names a plugin twice"))
    return out


def _flags(spec: Spec) -> list[Problem]:
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


def _audit(audit: AuditSpec) -> list[Problem]:
    path, policy = "controlPlane.audit.policy", audit.policy
    if policy is None:
        return []
    if not audit.enabled:
        return [Problem(path, "does nothing while controlPlane.audit.enabled is false")]
    out = []
    wanted = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
    for key, value in wanted.items():
        if policy.get(key) != value:
            out.append(Problem(f"{path}.{key}", f"must be {value!r}"))
    rules = policy.get("rules")
    levels = ("None", "Metadata", "Request", "RequestResponse")
    if not isinstance(rules, list) or not rules:
        out.append(Problem(f"{path}.rules", "is missing; list at least one rule with a level"))
    else:
        out += [
            Problem(f"{path}.rules[{index}].level", f"must be one of {', '.join(levels)}")
            for index, rule in enumerate(rules)
            if not isinstance(rule, dict) or rule.get("level") not in levels
        ]
    return out


def _lifetimes(spec: Spec) -> list[Problem]:
    pki, out = spec.pki, []
    if pki.leaf_validity_hours >= pki.ca_validity_hours:
        text = f"{pki.leaf_validity_hours} is not under caValidityHours {pki.ca_validity_hours}"
        out.append(Problem("pki.leafValidityHours", f"{text}; no certificate outlives its CA"))
    if pki.leaf_renewal_hours >= pki.leaf_validity_hours:
        text = f"{pki.leaf_renewal_hours} is not under leafValidityHours {pki.leaf_validity_hours}"
        out.append(Problem("pki.leafRenewalHours", f"{text}; every up would renew everything"))
    return out
