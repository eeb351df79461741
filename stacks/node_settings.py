"""Config sections of the software on every node: kubelet, and where it is fetched from."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stacks.fields import BaseUrl, FilePath, NoProxy, Section, Url


class KubeletSpec(Section):
    max_pods: Annotated[int, Field(ge=10, le=1000)] = Field(
        110, description="pods a node takes, as far as network.nodeCidrMask has addresses"
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
