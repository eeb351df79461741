"""Machines on Google Cloud: one instance a node, and the bastion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stacks.config.clouds import GcpDisk
from stacks.providers.gcp import balancer, disks, ingress
from stacks.providers.gcp.scope import Scope
from stacks.providers.resources import (
    Kind,
    OfMachine,
    Options,
    Ref,
    Resource,
    UserData,
    Value,
)
from stacks.providers.site import Bastion, Group, Machine

_BASTION_DISK_GIB = 10
_DISK = "kube-ha"  # by which a machine finds etcd's below /dev/disk/by-id
# Of a machine that is there none of these changes: it would be stopped or replaced. A raised
# generation replaces it, with all of them as they then are.
_WHEN_MADE = (
    *("attached_disks", "boot_disk", "can_ip_forward", "machine_type", "metadata"),
    *("network_interfaces", "service_account", "shielded_instance_config", "zone"),
)

# One that is taken away is stopped: what the state knows of it is there, and can be started by
# hand. Of one that was deleted the provider's own deletion fails.
_SPOT: Value = {
    "provisioning_model": "SPOT",
    "preemptible": True,
    "automatic_restart": False,
    "on_host_maintenance": "TERMINATE",
    "instance_termination_action": "STOP",
}


def bastion(scope: Scope, said: Bastion, after: tuple[str, ...]) -> Iterator[Resource]:
    """Its machine, and what it has for itself. The last is what others wait for."""
    is_public = scope.said.access != "tunnel"
    if is_public:
        yield scope.address(said.name, "bastion")
    yield _instance(
        scope,
        said,
        "bastion",
        ("bastion",),
        is_public=is_public,
        after=after,
        mark=said.mark,
        boot_disk=_boot_disk(scope, said, _BASTION_DISK_GIB, None),
        metadata=_metadata(UserData(name=said.name, guest_agent=True)),
        # Nobody, without a service account: it is the machine that the internet reaches.
        attached_disks=[],
        deletion_protection=False,
    )


def machine(scope: Scope, said: Machine, after: tuple[str, ...]) -> OfMachine:
    """The instance of a node, and what it has for itself."""
    name, google, is_public = said.name, scope.said, scope.said.access == "public"
    own, etcd = f"{name}-machine", tuple(_etcd_disk(scope, said))
    paths = tuple(f"/dev/disk/by-id/google-{_DISK}" for _ in etcd)
    user_data = UserData(
        name=name, disks=paths or None, guest_agent=True, pod_metadata=google.pod_metadata
    )
    instance = _instance(
        scope,
        said,
        "machines",
        said.groups,
        is_public=is_public,
        after=after,
        mark=str(said.generation),
        boot_disk=_boot_disk(scope, said, said.disk_gib, google.disk_type),
        metadata=_metadata(user_data),
        # Else packets whose address is not the machine's are dropped, as those of pods that are
        # routed.
        can_ip_forward=True if google.pod_routes and "node" in said.groups else None,
        attached_disks=[
            {"source": Ref(disk.name, "self_link"), "device_name": _DISK} for disk in etcd
        ],
        service_account={
            "email": Ref("account", "email"),
            # What the account may do is said by its roles alone.
            "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        },
        deletion_protection=said.is_etcd and google.deletion_protection,
        scheduling=_SPOT if said.is_spot else None,
    )
    public = [scope.address(name, "machines")] if is_public else []
    behind = (*balancer.of_master(scope, said), *ingress.of_node(scope, said))
    return OfMachine(
        resources=(*etcd, *public, instance, *behind),
        machine=own,
        ready=own,
        address=Ref(public[0].name, "address") if public else said.address,
        id=scope.called(name),
    )


def _instance(
    scope: Scope,
    said: Machine | Bastion,
    kind: Kind,
    groups: Iterable[Group],
    *,
    is_public: bool,
    after: tuple[str, ...],
    mark: str | None,
    **own: Value,
) -> Resource:
    """The instance, without anything that a machine in a cluster has no use for."""
    outside = [{"nat_ip": Ref(f"{said.name}-address", "address")}] if is_public else []
    return Resource(
        said.name if kind == "bastion" else f"{said.name}-machine",
        kind,
        "gcp.compute.Instance",
        # Its name and its address can be given once.
        Options(after=after, ignores=_WHEN_MADE, trigger=mark, deleted_first=True),
    ).of(
        name=scope.called(said.name),
        zone=said.zone,
        machine_type=said.type,
        tags=[scope.called(group) for group in groups],
        labels=scope.labels,
        network_interfaces=[
            {
                "subnetwork": scope.subnetwork,
                "network_ip": said.address,
                "access_configs": outside,
            }
        ],
        shielded_instance_config={
            "enable_secure_boot": scope.said.secure_boot,
            "enable_vtpm": True,
            "enable_integrity_monitoring": True,
        },
        **own,
    )


def _metadata(user_data: UserData) -> dict[str, Value]:
    return {
        "user-data": user_data,
        "block-project-ssh-keys": "true",
        "enable-oslogin": "FALSE",
        "serial-port-enable": "false",
    }


def _boot_disk(
    scope: Scope, said: Machine | Bastion, gib: int, type_: GcpDisk | None
) -> dict[str, Value]:
    google = scope.said
    params: dict[str, Value] = {
        "image": google.image_arm64 if said.arch == "arm64" else google.image,
        "size": gib,
        "type": disks.boot(said.type, type_),
        "labels": scope.labels,
    }
    return {"initialize_params": params, "kms_key_self_link": google.disk_key}


def _etcd_disk(scope: Scope, said: Machine) -> Iterator[Resource]:
    name, key = f"{said.name}-etcd-disk", scope.said.disk_key
    if said.etcd_disk_gib is not None:
        yield Resource(
            name,
            "machines",
            "gcp.compute.Disk",
            # A bigger one grows where it is; another type or key is another disk.
            Options(ignores=("type", "disk_encryption_key"), deleted_first=True),
        ).of(
            name=scope.called(name),
            zone=said.zone,
            size=said.etcd_disk_gib,
            type=disks.etcd(said.type, scope.said.etcd_disk_type),
            disk_encryption_key={"kms_key_self_link": key} if key else None,
            labels=scope.labels,
        )
