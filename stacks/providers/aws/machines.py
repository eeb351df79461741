"""Machines on AWS: one instance a node, and the bastion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stacks.providers.aws import balancer, bastions, disks, ingress, regions, store
from stacks.providers.aws.account import account, profile
from stacks.providers.aws.images import image
from stacks.providers.aws.scope import Scope
from stacks.providers.aws.security_groups import group
from stacks.providers.resources import (
    Kind,
    OfMachine,
    Options,
    Ref,
    Resource,
    Text,
    UserData,
    Value,
)
from stacks.providers.site import Bastion, Group, Machine

_BASTION_DISK_GIB = 10
_DEVICE = "/dev/sdf"  # asked for; on Nitro machines the disk is found by its volume's ID
# Of a machine that is there none of these changes: it would be stopped or replaced. A raised
# generation replaces it, with all of them as they then are.
_WHEN_MADE = (
    *("ami", "associate_public_ip_address", "instance_type", "metadata_options"),
    *("placement_group", "private_ip", "root_block_device", "source_dest_check", "subnet_id"),
    "user_data",
)

# A request that is persistent outlives its machine: it would start another one, at the same
# address, that no state knows.
_SPOT: Value = {
    "market_type": "spot",
    "spot_options": {
        "spot_instance_type": "one-time",
        "instance_interruption_behavior": "terminate",
    },
}


@dataclass(frozen=True, slots=True)
class Ground:
    """What machines stand on, by names."""

    scope: Scope
    ways: tuple[str, ...]  # by which they reach anybody outside
    rules: tuple[str, ...]  # by which anybody reaches them


def bastion(ground: Ground, said: Bastion) -> Iterator[Resource]:
    """Its machine, and what it has for itself. The last is what others wait for."""
    scope, name, tunnel = ground.scope, said.name, ground.scope.said.access == "tunnel"
    if tunnel:
        yield from account(scope, name, (regions.ssm_policy(scope.said.region),))
    yield _instance(
        scope,
        name,
        "bastion",
        ("bastion",),
        called=scope.called(name),
        disk_gib=_BASTION_DISK_GIB,
        after=(*ground.ways, *ground.rules),
        mark=said.mark,
        ami=image(bastions.image(scope.site.spec), said.arch),
        instance_type=said.type,
        subnet_id=scope.subnet(said.zone) if tunnel else scope.public(said.zone),
        private_ip=said.address,
        # Nothing: it is the machine that the internet reaches.
        iam_instance_profile=profile(name) if tunnel else None,
        user_data=UserData(name=name, ssm=tunnel),
        disable_api_termination=False,
        force_destroy=True,
    )
    if not tunnel:
        yield _public_address(ground, name, "bastion", name)


def machine(ground: Ground, said: Machine, after: tuple[str, ...]) -> OfMachine:
    """The instance of a node, and what it has for itself; `after`: the rest that it waits for."""
    scope, aws, name = ground.scope, ground.scope.said, said.name
    own, disks = f"{name}-machine", tuple(_etcd_disk(scope, said))
    paths = tuple(Text((Ref(disk.name),), _path) for disk in disks)
    instance = _instance(
        scope,
        own,
        "machines",
        said.groups,
        called=scope.called(name),
        disk_gib=said.disk_gib,
        after=(*ground.ways, *ground.rules, *after),
        mark=str(said.generation),
        ami=image(aws.image, said.arch),
        instance_type=said.type,
        subnet_id=scope.subnet(said.zone),
        private_ip=said.address,
        # It drops packets whose address is not the machine's, as those of pods that are routed.
        source_dest_check=False if aws.pod_routes and "node" in said.groups else None,
        iam_instance_profile=profile(store.whose(scope, is_etcd=said.is_etcd)),
        user_data=UserData(name=name, disks=paths or None, pod_metadata=aws.pod_metadata),
        placement_group=Ref("etcd-apart", "name") if said.is_etcd else None,
        # AWS has no such protection of spot machines, and takes no word about it.
        disable_api_termination=None if said.is_spot else said.is_etcd and aws.deletion_protection,
        instance_market_options=_SPOT if said.is_spot else None,
        # The protection is against people; a stack that lets a machine go deletes it.
        force_destroy=None if said.is_spot else True,
    )
    there = (instance, *(_attached(disk.name, own) for disk in disks))
    public = [_public_address(ground, name, "machines", own)] if aws.access == "public" else []
    return OfMachine(
        resources=(
            *disks,
            *there,
            *public,
            *balancer.of_master(scope, said),
            *ingress.of_node(scope, said),
        ),
        machine=own,
        ready=there[-1].name,
        address=Ref(public[0].name, "public_ip") if public else said.address,
        id=Ref(own),
    )


def _instance(
    scope: Scope,
    name: str,
    kind: Kind,
    groups: Iterable[Group],
    *,
    called: str,
    disk_gib: int,
    after: tuple[str, ...],
    mark: str | None,
    **own: Value,
) -> Resource:
    """The instance, without anything that a machine in a cluster has no use for."""
    is_node = kind == "machines"
    return Resource(
        name,
        kind,
        "aws.ec2.Instance",
        # Its address can be given once.
        Options(after=after, ignores=_WHEN_MADE, trigger=mark, deleted_first=True),
    ).of(
        # A static one is given to those that have one.
        associate_public_ip_address=False,
        vpc_security_group_ids=[group(one) for one in groups],
        # Only with a token, which comes one hop far: to no pod, unless they may.
        metadata_options={
            "http_endpoint": "enabled",
            "http_tokens": "required",
            "http_put_response_hop_limit": 2 if is_node and scope.said.pod_metadata else 1,
        },
        root_block_device={
            "volume_size": disk_gib,
            "volume_type": scope.said.disk_type,
            "iops": disks.IOPS if scope.said.disk_type == "io2" else None,
            "encrypted": True,
            "kms_key_id": scope.said.disk_key,
            "delete_on_termination": True,
            "tags": scope.tags(called),
        },
        tags=scope.tags(called, owned=is_node),
        **own,
    )


def _public_address(ground: Ground, name: str, kind: Kind, instance: str) -> Resource:
    return Resource(f"{name}-address", kind, "aws.ec2.Eip", Options(after=ground.ways)).of(
        domain="vpc", instance=Ref(instance), tags=ground.scope.tags(ground.scope.called(name))
    )


def _etcd_disk(scope: Scope, said: Machine) -> Iterator[Resource]:
    name, aws = f"{said.name}-etcd-disk", scope.said
    if said.etcd_disk_gib is not None:
        yield Resource(
            name,
            "machines",
            "aws.ebs.Volume",
            # All else changes where it is; another key is another disk.
            Options(ignores=("kms_key_id",), deleted_first=True),
        ).of(
            availability_zone=said.zone,
            size=said.etcd_disk_gib,
            type=aws.etcd_disk_type,
            iops=aws.etcd_disk_iops or (disks.IOPS if aws.etcd_disk_type == "io2" else None),
            throughput=aws.etcd_disk_throughput,
            encrypted=True,
            kms_key_id=aws.disk_key,
            tags=scope.tags(scope.called(name), owned=True),
        )


def _attached(disk: str, instance: str) -> Resource:
    return Resource(
        f"{disk}-attached",
        "machines",
        "aws.ec2.VolumeAttachment",
        # It ends with its machine. Asked for by itself, AWS would be told to stop that one, and
        # refuse for one that it has terminated.
        Options(deleted_with=instance, deleted_first=True),
    ).of(
        device_name=_DEVICE,
        volume_id=Ref(disk),
        instance_id=Ref(instance),
        # A disk in use cannot be taken away.
        stop_instance_before_detaching=True,
    )


def _path(volume: str) -> str:
    """Where udev shows a volume of a Nitro machine: its serial number is the ID without hyphen."""
    return f"/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{volume.replace('-', '')}"
