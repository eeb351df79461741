"""Config sections of where software comes from: containerd, the mirror, the proxy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import BaseUrl, Endpoint, FilePath, NoProxy, Section, Url, is_unsaid

# Of every image that the product itself runs, whatever the pod network.
OWN_REGISTRIES = ("ghcr.io", "registry.k8s.io")


class RuntimeSpec(Section):
    registry_mirrors: dict[Endpoint, tuple[Url, ...]] = Field(
        default_factory=dict,
        description="by registry (docker.io) the mirrors that are asked first, in this order; a "
        "URL with a path ends with what stands before an image's name there",
    )
    max_concurrent_downloads: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="layers of one image that are fetched in parallel; default: 3"
    )
    log_level: Literal["debug", "info", "warn", "error"] | None = Field(
        None, description="what containerd writes to the journal; default: info"
    )
    watchdog_s: Annotated[int, Field(ge=30, le=600)] | None = Field(
        None,
        exclude_if=is_unsaid,
        description="seconds after which systemd restarts a containerd that answers nothing; "
        "containers keep running; default: it is restarted only when it ends",
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
