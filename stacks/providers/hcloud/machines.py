"""Machines on Hetzner Cloud: one server a node, with an address outside that stays."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.providers.hcloud import balancer
from stacks.providers.hcloud.network import SUBNET, firewalls_of
from stacks.providers.hcloud.scope import Scope, number
from stacks.providers.resources import (
    LoginKey,
    OfMachine,
    Options,
    Ref,
    Resource,
    Text,
    UserData,
)
from stacks.providers.site import Machine

# Of a machine that is there none of these changes: it would be switched off or replaced. A raised
# generation replaces it, with all of them as they then are.
_WHEN_MADE = (
    *("image", "location", "networks", "placement_group_id", "public_nets", "server_type"),
    *("ssh_keys", "user_data"),
)
_LOGIN = "login"


def around(scope: Scope) -> Iterator[Resource]:
    """The login key, and in each location a group whose servers share no host."""
    # Without a key Hetzner makes a password for root, and sends it by mail.
    yield Resource(_LOGIN, "account", "hcloud.SshKey").of(
        name=scope.site.cluster, public_key=LoginKey(), labels=scope.labels
    )
    for zone in sorted({one.zone for one in scope.site.machines if one.is_etcd}):
        yield Resource(_apart(zone), "account", "hcloud.PlacementGroup").of(
            name=scope.called(_apart(zone)), type="spread", labels=scope.labels
        )


def machine(scope: Scope, said: Machine) -> OfMachine:
    """The server of a node, and what it has for itself."""
    own, address = f"{said.name}-machine", f"{said.name}-address"
    disks = tuple(_etcd_disk(scope, said))
    public = Resource(address, "machines", "hcloud.PrimaryIp", Options(deleted_first=True)).of(
        name=scope.called(said.name),
        type="ipv4",
        location=said.zone,
        auto_delete=False,
        labels=scope.labels,
    )
    there = (_server(scope, said, disks), *(_attached(disk.name, own) for disk in disks))
    return OfMachine(
        resources=(*disks, public, *there, *balancer.of_machine(scope, said)),
        machine=own,
        ready=there[-1].name,
        address=Ref(address, "ip_address"),
        id=Ref(own),
    )


def _server(scope: Scope, said: Machine, disks: tuple[Resource, ...]) -> Resource:
    paths = tuple(Text((Ref(disk.name),), _path) for disk in disks)
    protected = said.is_etcd and scope.said.deletion_protection
    user_data = UserData(name=said.name, disks=paths or None, pod_metadata=scope.said.pod_metadata)
    # Its name and its addresses can be given once.
    opts = Options(ignores=_WHEN_MADE, trigger=str(said.generation), deleted_first=True)
    return Resource(f"{said.name}-machine", "machines", "hcloud.Server", opts).of(
        name=scope.called(said.name),
        server_type=said.type,
        image=scope.said.image,
        location=said.zone,
        ssh_keys=[Ref(_LOGIN)],
        user_data=user_data,
        public_nets=[
            {
                "ipv4_enabled": True,
                "ipv4": number(f"{said.name}-address"),
                "ipv6_enabled": False,
            }
        ],
        networks=[{"subnet_id": SUBNET, "ip": said.address, "alias_ips": []}],
        firewall_ids=firewalls_of(said),
        placement_group_id=number(_apart(said.zone)) if said.is_etcd else None,
        # It takes both or none.
        delete_protection=protected,
        rebuild_protection=protected,
        labels=scope.labels,
    )


def _etcd_disk(scope: Scope, said: Machine) -> Iterator[Resource]:
    name = f"{said.name}-etcd-disk"
    if said.etcd_disk_gib is not None:
        # A bigger one grows where it is.
        yield Resource(name, "machines", "hcloud.Volume", Options(deleted_first=True)).of(
            name=scope.called(name),
            location=said.zone,
            size=said.etcd_disk_gib,
            labels=scope.labels,
        )


def _attached(disk: str, server: str) -> Resource:
    opts = Options(deleted_with=server, deleted_first=True)
    return Resource(f"{disk}-attached", "machines", "hcloud.VolumeAttachment", opts).of(
        # cloud-init mounts it, by its label.
        volume_id=number(disk),
        server_id=number(server),
        automount=False,
    )


def _apart(zone: str) -> str:
    return f"etcd-apart-{zone}"


def _path(volume: str) -> str:
    """Where udev shows a volume (the provider's output linux_device)."""
    return f"/dev/disk/by-id/scsi-0HC_Volume_{volume}"
