"""One instance on Google Cloud: of a node, or the bastion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi_gcp as gcp
from pulumi import Input, Output, ResourceOptions

from stacks.config.clouds import GcpDisk
from stacks.providers.gcp import disks
from stacks.providers.site import Group

DISK = "kube-ha"  # by which the machine finds it below /dev/disk/by-id
# Of a machine that is there none of these changes: it would be stopped or replaced. A raised
# generation replaces it, with all of them as they then are.
_WHEN_MADE = (
    *("attachedDisks", "bootDisk", "canIpForward", "machineType", "metadata"),
    *("networkInterfaces", "serviceAccount", "shieldedInstanceConfig", "zone"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceArgs:
    """What tells one instance from the others."""

    name: str
    zone: str
    groups: tuple[Group, ...]
    address: str | None  # inner one
    public: gcp.compute.Address | None
    machine_type: str
    disk_type: GcpDisk | None  # None: the usual of the machine type
    disk_gib: int
    image: str
    user_data: Output[str]
    account: gcp.serviceaccount.Account | None  # None: it may do nothing, and is nobody there
    etcd_disk: gcp.compute.Disk | None = None
    protected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """What all of a cluster have in common."""

    cluster: str
    labels: Mapping[str, str]
    subnetwork: Input[str]
    secure_boot: bool
    pod_routes: bool
    opts: ResourceOptions

    def make(
        self, resource: str, args: InstanceArgs, *, opts: ResourceOptions
    ) -> gcp.compute.Instance:
        """The instance, without anything that a machine in a cluster has no use for."""
        # Its name and its address can be given once.
        once = ResourceOptions(delete_before_replace=True, ignore_changes=list(_WHEN_MADE))
        return gcp.compute.Instance(
            resource,
            name=args.name,
            zone=args.zone,
            machine_type=args.machine_type,
            tags=[f"{self.cluster}-{group}" for group in args.groups],
            labels=self.labels,
            # Else packets whose address is not the machine's are dropped, as those of pods that are
            # routed.
            can_ip_forward=True if self.pod_routes and "node" in args.groups else None,
            boot_disk=self._boot_disk(args),
            attached_disks=_attached(args.etcd_disk),
            network_interfaces=[self._interface(args)],
            metadata={
                "user-data": args.user_data,
                "block-project-ssh-keys": "true",
                "enable-oslogin": "FALSE",
                "serial-port-enable": "false",
            },
            service_account=_identity(args.account),
            shielded_instance_config=gcp.compute.InstanceShieldedInstanceConfigArgs(
                enable_secure_boot=self.secure_boot,
                enable_vtpm=True,
                enable_integrity_monitoring=True,
            ),
            deletion_protection=args.protected,
            opts=ResourceOptions.merge(self.opts, ResourceOptions.merge(opts, once)),
        )

    def _boot_disk(self, args: InstanceArgs) -> gcp.compute.InstanceBootDiskArgs:
        return gcp.compute.InstanceBootDiskArgs(
            initialize_params=gcp.compute.InstanceBootDiskInitializeParamsArgs(
                image=args.image,
                size=args.disk_gib,
                type=disks.boot(args.machine_type, args.disk_type),
                labels=self.labels,
            )
        )

    def _interface(self, args: InstanceArgs) -> gcp.compute.InstanceNetworkInterfaceArgs:
        outside = []
        if args.public:
            address = args.public.address
            outside = [gcp.compute.InstanceNetworkInterfaceAccessConfigArgs(nat_ip=address)]
        return gcp.compute.InstanceNetworkInterfaceArgs(
            subnetwork=self.subnetwork, network_ip=args.address, access_configs=outside
        )


def _identity(
    account: gcp.serviceaccount.Account | None,
) -> gcp.compute.InstanceServiceAccountArgs | None:
    if account is None:
        return None
    return gcp.compute.InstanceServiceAccountArgs(
        email=account.email,
        # What the account may do is said by its roles alone.
        scopes=["https://www.googleapis.com/auth/cloud-platform"],
    )


def _attached(disk: gcp.compute.Disk | None) -> list[gcp.compute.InstanceAttachedDiskArgs]:
    if disk is None:
        return []
    return [gcp.compute.InstanceAttachedDiskArgs(source=disk.self_link, device_name=DISK)]
