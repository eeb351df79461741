"""Checks of the software's settings: timings and sizes that fit together."""

from __future__ import annotations

from stacks.checks import (
    audit_policy,
    control_plane,
    flags,
    known_flags,
    kubelet,
    object_store,
    rotation,
    runtime,
)
from stacks.config.network import API_SHUTDOWN_DELAY_S, CHECK_TIMEOUT_S, CHECKS_TO_FALL
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import registry

# HAProxy opens two files for each, and some for itself; it does not start if it may not. Machines
# of the lab may open 20000.
_CONTAINER_CONNECTIONS = 9900


def problems(spec: Spec) -> list[Problem]:
    """Settings that no component would take, or that contradict each other."""
    return [
        *_load_balancing(spec),
        *_etcd(spec),
        *object_store.problems(spec),
        *control_plane.problems(spec),
        *flags.problems(spec),
        *known_flags.problems(spec),
        *kubelet.problems(spec),
        *runtime.problems(spec),
        *_proxy(spec),
        *audit_policy.problems(spec.control_plane.audit.policy),
        *_lifetimes(spec),
        *rotation.problems(spec),
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
    containers = spec.machines.containers or registry.of(spec).LOCAL
    if containers and wanted.max_connections > _CONTAINER_CONNECTIONS:
        text = (
            f"{wanted.max_connections} need more files than machines that are containers may open; "
            f"use at most {_CONTAINER_CONNECTIONS}"
        )
        out.append(Problem(f"{path}.maxConnections", text))
    return out


def _etcd(spec: Spec) -> list[Problem]:
    out = []
    least = 5 * spec.etcd.heartbeat_interval_ms  # etcd refuses to start below it
    if spec.etcd.election_timeout_ms < least:
        text = f"{spec.etcd.election_timeout_ms} is under 5 x heartbeatIntervalMs; use {2 * least}"
        out.append(Problem("etcd.electionTimeoutMs", text))
    directory = spec.etcd.backup.directory
    if directory is not None:
        reason = _no_place_for_backups(directory)
        out += [Problem("etcd.backup.directory", f"{directory!r} {reason}")] if reason else []
    return out


# Of the machine and of what runs on it; what is there is lost with the machine.
_OF_MACHINE = (
    *("/tmp", "/var/tmp"),  # noqa: S108 (nothing is written there)
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/opt/cni", "/proc", "/root", "/run"),
    *("/sbin", "/sys", "/usr", "/var/cache", "/var/lib", "/var/log", "/var/run"),
    "/var/spool",
)


def _no_place_for_backups(directory: str) -> str:
    if not directory.startswith("/"):
        return "is not an absolute path; write where it is on the etcd machines"
    if {".", ".."} & set(directory.split("/")) or "//" in directory:
        return "goes by . or .. or //; write the path that it comes to"
    if not directory.strip("/") or directory.startswith(("/home", "~")):
        return (
            "is not a mount of its own; name where NFS or another disk is mounted, as '/mnt/etcd'"
        )
    for own in _OF_MACHINE:
        if directory == own or directory.startswith(f"{own}/"):
            return f"is in {own}, which is the machine's own; name a mount that is elsewhere"
    return ""


def _proxy(spec: Spec) -> list[Problem]:
    proxy = spec.proxy
    if proxy.http or proxy.https or not proxy.no_proxy:
        return []
    return [Problem("proxy.noProxy", "does nothing without proxy.http or proxy.https")]


def _lifetimes(spec: Spec) -> list[Problem]:
    pki, out = spec.pki, []
    if pki.leaf_validity_hours >= pki.ca_validity_hours:
        text = f"{pki.leaf_validity_hours} is not under caValidityHours {pki.ca_validity_hours}"
        out.append(Problem("pki.leafValidityHours", f"{text}; no certificate outlives its CA"))
    if pki.leaf_renewal_hours >= pki.leaf_validity_hours:
        text = f"{pki.leaf_renewal_hours} is not under leafValidityHours {pki.leaf_validity_hours}"
        out.append(Problem("pki.leafRenewalHours", f"{text}; every update would renew everything"))
    return out
