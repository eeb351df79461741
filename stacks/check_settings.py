"""Checks of the software's settings: timings and sizes that fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stacks import (
    check_control_plane,
    check_flags,
    check_kubelet,
    check_runtime,
    object_store,
    rotation,
)
from stacks.problems import Problem
from stacks.settings import API_SHUTDOWN_DELAY_S, CHECK_TIMEOUT_S, CHECKS_TO_FALL

if TYPE_CHECKING:
    from stacks.spec import Spec

# HAProxy opens two files for each, and some for itself; it does not start if it may not. Machines
# of the lab may open 20000.
_CONTAINER_CONNECTIONS = 9900


def problems(spec: Spec) -> list[Problem]:
    """Settings that no component would take, or that contradict each other."""
    return [
        *_load_balancing(spec),
        *_etcd(spec),
        *object_store.problems(spec),
        *check_control_plane.problems(spec),
        *check_flags.problems(spec),
        *check_kubelet.problems(spec),
        *check_runtime.problems(spec),
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
    containers = spec.machines.containers or spec.machines.provider == "lab"
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
    if directory is not None and not directory.startswith("/"):
        text = f"{directory!r} is no absolute path; write where it lies on the etcd machines"
        out.append(Problem("etcd.backup.directory", text))
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
