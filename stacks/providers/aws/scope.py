"""A cluster on AWS, as its resources see it: their names and tags, and the network they are in."""

from __future__ import annotations

from dataclasses import dataclass

from stacks.config.clouds import AwsSpec
from stacks.providers.resources import Ref, Value
from stacks.providers.site import Site


@dataclass(frozen=True, slots=True)
class Scope:
    """What the config says of AWS, and of which cluster."""

    site: Site
    said: AwsSpec

    def called(self, what: str) -> str:
        """Behind the cluster's name."""
        return f"{self.site.cluster}-{what}"

    def tags(self, name: str, *, owned: bool = False) -> dict[str, str]:
        """Tags of a resource, whose name is one of them.

        `owned`: a cloud controller manager takes it for the cluster's, where one is waited for; by
        the tag of its own machine it knows which cluster that is (cloud-provider-aws, tags.go).
        """
        cluster = self.site.cluster
        own = {f"kubernetes.io/cluster/{cluster}": "owned"} if owned and self.has_controller else {}
        return {"Name": name, "kube-ha-cluster": cluster, **own, **self.said.labels}

    @property
    def has_controller(self) -> bool:
        return self.said.cloud_controller == "external"

    @property
    def vpc(self) -> Value:
        """ID of the one that is there, or is made."""
        return self.said.vpc_id or Ref("vpc")

    def subnet(self, zone: str) -> Value:
        """The machines' one."""
        return Ref(f"subnet-{zone}") if self.said.vpc_id is None else self.said.subnets[zone].id

    def public(self, zone: str) -> Value:
        """The one for whatever faces the internet."""
        made = self.said.vpc_id is None
        return Ref(f"public-{zone}") if made else self.said.subnets[zone].public_id
