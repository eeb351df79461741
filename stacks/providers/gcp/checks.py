"""What Google would refuse of its section, or place badly."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from ipaddress import IPv4Network

from stacks.config import cloud_values
from stacks.config.clouds import GcpSpec
from stacks.config.fields import Role
from stacks.config.pools import PoolSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import cloud
from stacks.providers.gcp import disks, identity
from stacks.providers.places import Place

_MASKS = (8, 29)  # of a subnet's primary range (Google VPC documentation, "Subnets")
# Family, kind, size (cloud.google.com/compute/docs/machine-resource).
_TYPE = re.compile(
    r"(?P<family>[a-z][0-9]{1,2}[a-z]?|t2[ad])-"
    r"((?P<shared>micro|small|medium)|custom-[0-9]+-[0-9]+(-ext)?"
    r"|(standard|highmem|highcpu|megamem|ultramem|hypermem|highgpu|megagpu|ultragpu|edgegpu"
    r"|maxgpu)-[0-9]+(g|t)?(-(lssd|standardlssd|highlssd|metal|nolssd))?)"
)


def problems(spec: Spec, _places: Sequence[Place]) -> Iterator[Problem]:
    """What is wrong in its section, and with settings that are for other providers."""
    yield from cloud.idle(spec)
    if spec.machines.gcp is not None:
        yield from _section(spec.machines.gcp)
        yield from identity.problems(spec, spec.machines.gcp.workload_identity)
        for name, pool in spec.pools.items():
            yield from _image(spec.machines.gcp, name, pool)
            yield from _disks(spec.machines.gcp, pool)


def unfit(type_: str, roles: Collection[Role]) -> str:
    """Why no machine of these roles should be of a type; empty: nothing is against it."""
    found = _TYPE.fullmatch(type_)
    if found is None:
        return "is not a machine type of Google; write family-kind-size, as 'e2-standard-4'"
    return cloud.too_little(roles) if found["shared"] == "micro" else ""


def _section(said: GcpSpec) -> Iterator[Problem]:
    for key, image in (("image", said.image), ("imageArm64", said.image_arm64)):
        if image.startswith("ami-") or image.count("/") != 1:
            text = f"{image} is not an image of Google; write project/family"
            yield Problem(f"machines.gcp.{key}", text)
        if image.startswith("debian-cloud/"):
            text = f"{image} has no cloud-init, by which machines get their keys; take Ubuntu's"
            yield Problem(f"machines.gcp.{key}", text)
    if said.subnetwork is not None and said.network is None:
        yield Problem("machines.gcp.network", "is missing; it is the network of subnetwork")
    if said.network_project is not None and said.subnetwork is None:
        text = "is missing; of a network that another project shares, the subnet is there too"
        yield Problem("machines.gcp.subnetwork", text)
    bits = IPv4Network(said.cidr).prefixlen
    if not _MASKS[0] <= bits <= _MASKS[1]:
        text = f"/{bits} does not fit; use /{_MASKS[0]} to /{_MASKS[1]}"
        yield Problem("machines.gcp.cidr", text)
    place = said.disk_key.split("/")[3] if said.disk_key else ""
    # Of several regions, and of all (`global`), there are keys too.
    if cloud_values.REGION.fullmatch(place) and place != said.region:
        text = f"is a key of {place}; disks of {said.region} take one of there, or of `global`"
        yield Problem("machines.gcp.diskKey", text)
    roles = said.service_account_roles
    yield from cloud.same_names("machines.gcp.serviceAccountRoles", roles, cloud.role_name)


def _disks(said: GcpSpec, pool: PoolSpec) -> Iterator[Problem]:
    type_ = pool.machine_type or said.machine_type
    if said.disk_type and (reason := disks.trouble(type_, said.disk_type)):
        yield Problem("machines.gcp.diskType", reason)
    of_etcd = said.etcd_disk_type if "etcd" in pool.roles else None
    if of_etcd and (reason := disks.trouble(type_, of_etcd)):
        yield Problem("machines.gcp.etcdDiskType", reason)


def _image(said: GcpSpec, name: str, pool: PoolSpec) -> Iterator[Problem]:
    """By its name, an image is for one architecture."""
    image = said.image_arm64 if pool.arch == "arm64" else said.image
    if ("arm64" in image) != (pool.arch == "arm64"):
        path = "image" + ("Arm64" if pool.arch == "arm64" else "")
        text = f"{image} is not an image for {pool.arch}, which pool {name} needs"
        yield Problem(f"machines.gcp.{path}", text)
