"""A cluster on Hetzner Cloud, as its resources see it: their names, labels and numbers."""

from __future__ import annotations

from dataclasses import dataclass

from stacks.config.clouds import HcloudSpec
from stacks.providers.resources import Ref, Text
from stacks.providers.site import Site


@dataclass(frozen=True, slots=True)
class Scope:
    """What the config says of Hetzner Cloud, and of which cluster."""

    site: Site
    said: HcloudSpec

    def called(self, what: str) -> str:
        """Behind the cluster's name."""
        return f"{self.site.cluster}-{what}"

    @property
    def labels(self) -> dict[str, str]:
        return {"kube-ha-cluster": self.site.cluster, **self.said.labels}


def number(name: str) -> Text:
    """The ID of a resource, as others take it: the engine knows it as a text."""
    return Text((Ref(name),), int)
