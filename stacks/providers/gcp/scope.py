"""A cluster on Google Cloud, as its resources see it: their names and labels, their network."""

from __future__ import annotations

from dataclasses import dataclass

from stacks.config.clouds import GcpSpec
from stacks.providers.gcp import networks
from stacks.providers.resources import Kind, Ref, Resource, Value
from stacks.providers.site import Site


@dataclass(frozen=True, slots=True)
class Scope:
    """What the config says of Google Cloud, and of which cluster."""

    site: Site
    said: GcpSpec

    def called(self, what: str) -> str:
        """Behind the cluster's name."""
        return f"{self.site.cluster}-{what}"

    @property
    def labels(self) -> dict[str, str]:
        return {"kube-ha-cluster": self.site.cluster, **self.said.labels}

    @property
    def network(self) -> Value:
        """The one that is there, or is made."""
        return networks.network(self.said) or Ref("network")

    @property
    def subnetwork(self) -> Value:
        """The one that is there, or is made."""
        return networks.subnetwork(self.said) or Ref("subnet")

    def address(self, name: str, kind: Kind) -> Resource:
        """A static address outside, `<name>-address`."""
        return Resource(f"{name}-address", kind, "gcp.compute.Address").of(
            name=self.called(name),
            address_type="EXTERNAL",
            region=self.said.region,
            labels=self.labels,
        )
