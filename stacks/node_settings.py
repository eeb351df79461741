"""Config sections of the software on every node: kubelet, containerd, where it comes from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.fields import (
    BaseUrl,
    Endpoint,
    FeatureGate,
    FilePath,
    NoProxy,
    Quantity,
    Section,
    Threshold,
    Url,
)

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
        "cluster with self-signed ones gets to verified by way of issued, an up each, and so back",
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
        None, description="processes that one pod may have; default: as many as the machine"
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


# Of every image that the product itself runs.
OWN_REGISTRIES = ("ghcr.io", "registry.k8s.io")


class RuntimeSpec(Section):
    registry_mirrors: dict[Endpoint, tuple[Url, ...]] = Field(
        default_factory=dict,
        description="by registry (docker.io) the mirrors that are asked first, in this order; a "
        "URL with a path ends with what stands before an image's name there",
    )
    max_concurrent_downloads: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="layers of one image that are fetched side by side; default: 3"
    )
    log_level: Literal["debug", "info", "warn", "error"] | None = Field(
        None, description="what containerd writes to the journal; default: info"
    )


class MirrorSpec(Section):
    url: Url = Field(description="serves files under <url>/<upstream host>/<path>")
    registry: BaseUrl = Field(description="OCI registry that holds the images, http(s)://host:port")
    manifest: FilePath = Field(description="manifest.json of the bundle, with the checksums")


class ProxySpec(Section):
    http: BaseUrl | None = Field(None, description="proxy for downloads over http")
    https: BaseUrl | None = Field(None, description="proxy for downloads over https and for images")
    no_proxy: tuple[NoProxy, ...] = Field(
        (), description="reached without proxy, besides pods, services and the mirror"
    )
