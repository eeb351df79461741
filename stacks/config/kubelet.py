"""Config section of the kubelet on every node."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import Ciphers, FeatureGate, Quantity, Section, Threshold

EvictionSignal = Literal[
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
]
Reservable = Literal["cpu", "memory", "ephemeral-storage"]
ServingCertificates = Literal["self-signed", "issued", "verified"]


class KubeletSpec(Section):
    max_pods: Annotated[int, Field(ge=10, le=1000)] = Field(
        110, description="pods a node takes, as far as network.nodeCidrMask has addresses"
    )
    serving_certificates: ServingCertificates = Field(
        "verified",
        description="of kubelets: issued by the cluster's CA, and verified by API servers. A "
        "cluster with self-signed ones gets to verified by way of issued, an update each, "
        "and so back",
    )
    feature_gates: dict[FeatureGate, bool] = Field(
        default_factory=dict, description="switched for the kubelet alone"
    )
    eviction_hard: dict[EvictionSignal, Threshold] = Field(
        default_factory=dict,
        description="what is left of a resource when pods are evicted; signals that are not named "
        "keep the kubelet's own thresholds",
    )
    system_reserved: dict[Reservable, Quantity] = Field(
        default_factory=dict, description="kept from pods for the operating system"
    )
    kube_reserved: dict[Reservable, Quantity] = Field(
        default_factory=dict, description="kept from pods for kubelet and containerd"
    )
    image_gc_high_percent: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="use of the disk at which unused images are deleted; default: 85"
    )
    image_gc_low_percent: Annotated[int, Field(ge=0, le=99)] | None = Field(
        None, description="use of the disk down to which they are deleted; default: 80"
    )
    container_log_max_size_mib: Annotated[int, Field(ge=1, le=10240)] | None = Field(
        None, description="size at which a container's log is rotated; default: 10"
    )
    container_log_max_files: Annotated[int, Field(ge=2, le=1000)] | None = Field(
        None, description="log files kept of a container; default: 5"
    )
    pod_pids_limit: Annotated[int, Field(ge=100, le=4_194_304)] | None = Field(
        None,
        description="processes that one pod may have; default: 4096 with cluster.defaults 2, else "
        "as many as the machine",
    )
    seccomp_default: bool | None = Field(
        None,
        description="containers that say nothing get the runtime's seccomp profile; default: true "
        "with cluster.defaults 2",
    )
    tls_ciphers: Ciphers | None = Field(
        None, description="of kubelets, for TLS 1.2; default: strong with cluster.defaults 2"
    )
    watchdog_s: Annotated[int, Field(ge=30, le=600)] | None = Field(
        None,
        description="seconds after which systemd restarts a kubelet that hangs; pods keep running; "
        "default: it is restarted only when it ends",
    )
    shutdown_grace_period_s: Annotated[int, Field(ge=0, le=3600)] | None = Field(
        None,
        description="time for pods to end when the machine is shut down, 0 for none; default: 60, "
        "none in containers",
    )
    shutdown_grace_period_critical_pods_s: Annotated[int, Field(ge=0, le=3600)] | None = Field(
        None, description="of that time the part for critical pods, which end last; default: 20"
    )

    @property
    def shutdown_s(self) -> int:
        said = self.shutdown_grace_period_s
        return 60 if said is None else said

    @property
    def shutdown_critical_s(self) -> int:
        said = self.shutdown_grace_period_critical_pods_s
        # Without any time there is none for critical pods either.
        return min(20, self.shutdown_s) if said is None else said

    @property
    def image_gc_percent(self) -> tuple[int, int]:
        """From which use of the disk to which, the kubelet's own numbers where none is said."""
        high, low = self.image_gc_high_percent, self.image_gc_low_percent
        return 85 if high is None else high, 80 if low is None else low
