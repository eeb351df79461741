"""One instance on AWS: of a node, or the bastion."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi_aws as aws
from pulumi import Input, Output, ResourceOptions

from components.machines.aws.security_groups import Doors
from stacks.cluster import cloud_machines
from stacks.cluster.plan import Plan
from stacks.providers.site import Group

IOPS = 3000  # of io2, which needs a number; gp3 has these by itself
# Of a machine that is there none of these changes: it would be stopped or replaced. A raised
# generation replaces it, with all of them as they then are.
_WHEN_MADE = (
    *("ami", "associatePublicIpAddress", "instanceType", "metadataOptions"),
    *("placementGroup", "privateIp", "rootBlockDevice", "sourceDestCheck", "subnetId", "userData"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceArgs:
    """What tells one instance from the others."""

    name: str
    subnet: Input[str]
    groups: tuple[Group, ...]
    address: str | None  # inner one; None: AWS's choice
    machine_type: str
    disk_gib: int
    image: Input[str]
    profile: aws.iam.InstanceProfile | None  # None: it may do nothing, and has no name there
    user_data: Output[str]
    placement: Input[str] | None = None
    pod_metadata: bool = False  # pods may ask it
    protected: bool = False
    owned: bool = False  # by the cluster, for its cloud controller manager


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """What all of a cluster have in common."""

    plan: Plan
    doors: Doors
    disk_type: str
    pod_routes: bool
    opts: ResourceOptions

    def make(self, resource: str, args: InstanceArgs, *, opts: ResourceOptions) -> aws.ec2.Instance:
        """The instance, without anything that a machine in a cluster has no use for."""
        # Its address can be given once.
        once = ResourceOptions(delete_before_replace=True, ignore_changes=list(_WHEN_MADE))
        return aws.ec2.Instance(
            resource,
            ami=args.image,
            instance_type=args.machine_type,
            subnet_id=args.subnet,
            private_ip=args.address,
            # A static one is given to those that have one.
            associate_public_ip_address=False,
            vpc_security_group_ids=[self.doors.groups[group].id for group in args.groups],
            # It drops packets whose address is not the machine's, as those of pods that are routed.
            source_dest_check=False if self.pod_routes and "node" in args.groups else None,
            iam_instance_profile=args.profile.name if args.profile else None,
            user_data=args.user_data,
            placement_group=args.placement,
            # Only with a token, which comes one hop far: to no pod, unless they may.
            metadata_options=aws.ec2.InstanceMetadataOptionsArgs(
                http_endpoint="enabled",
                http_tokens="required",
                http_put_response_hop_limit=2 if args.pod_metadata else 1,
            ),
            root_block_device=self._root_disk(args),
            disable_api_termination=args.protected,
            # The protection is against people; a stack that lets a machine go deletes it.
            force_destroy=True,
            tags=cloud_machines.tags(self.plan, args.name, owned=args.owned),
            opts=ResourceOptions.merge(self.opts, ResourceOptions.merge(opts, once)),
        )

    def _root_disk(self, args: InstanceArgs) -> aws.ec2.InstanceRootBlockDeviceArgs:
        return aws.ec2.InstanceRootBlockDeviceArgs(
            volume_size=args.disk_gib,
            volume_type=self.disk_type,
            iops=IOPS if self.disk_type == "io2" else None,
            encrypted=True,
            delete_on_termination=True,
            tags=cloud_machines.tags(self.plan, args.name),
        )
