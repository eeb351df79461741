"""What AWS would refuse of its section, or place badly."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from ipaddress import IPv4Network

from stacks.config.clouds import DEFAULT_IMAGE, AwsSpec
from stacks.config.fields import Role
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import cloud
from stacks.providers.aws import bastions, disks, identity, regions
from stacks.providers.places import Place

_MASKS = (16, 28)  # of a VPC and of its subnets (Amazon VPC user guide, "Subnet CIDR blocks")
# Family and generation, then size (docs.aws.amazon.com/ec2, "Instance types").
_TYPE = re.compile(
    r"(?P<family>[a-z]+-?[0-9]+[a-z0-9-]*)\."
    r"(?P<size>nano|micro|small|medium|large|xlarge|[0-9]+xlarge|metal(-[a-z0-9]+)?)"
)
# Built on Xen: disks come under other names, and this program finds etcd's by that of Nitro.
_XEN = re.compile(r"c[134]|cc2|cg1|cr1|d2|f1|g[23]s?|h1|hs1|i[23]|m[1234]|p[23]|r[34]|t[12]|x1e?")
_LITTLE = ("nano", "micro")  # 1 GiB of memory or less


def problems(spec: Spec, _places: Sequence[Place]) -> Iterator[Problem]:
    """What is wrong in its section, and with settings that are for other providers."""
    yield from cloud.idle(spec)
    if spec.machines.aws is not None:
        yield from _name(spec)
        yield from _region(spec.machines.aws)
        yield from _images(spec, spec.machines.aws)
        yield from _ids(spec.machines.aws)
        yield from disks.problems(spec, spec.machines.aws)
        has_ingress = spec.front_doors.ingress is not None
        yield from _subnets(spec.machines.aws, has_ingress=has_ingress)
        grants = spec.machines.aws.policies
        yield from cloud.same_names("machines.aws.policies", grants, cloud.policy_name)
        yield from identity.problems(spec, spec.machines.aws.workload_identity)


def unfit(type_: str, roles: Collection[Role]) -> str:
    """Why no machine of these roles should be of a type; empty: nothing is against it."""
    found = _TYPE.fullmatch(type_)
    if found is None:
        return "is not an instance type of AWS; write family.size, as 'm6i.large'"
    if _XEN.fullmatch(found["family"]) and not found["size"].startswith("metal"):
        return "is not a Nitro type, and disks of others have other names; take one as 'm6i.large'"
    return cloud.too_little(roles) if found["size"] in _LITTLE else ""


def _name(spec: Spec) -> Iterator[Problem]:
    """Security groups are called `<cluster>-...`, and load balancers too."""
    for begins, of in (("sg-", "security groups"), ("internal-", "load balancers")):
        if f"{spec.cluster.name}-".startswith(begins):
            text = f"{spec.cluster.name} begins names of {of}, and AWS takes none that begins with"
            yield Problem("cluster.name", f"{text} {begins}; choose another name")


def _region(aws: AwsSpec) -> Iterator[Problem]:
    """Owners of images have other numbers in partitions of their own."""
    if regions.partition(aws.region) == "aws":
        return
    said = {"image": aws.image == DEFAULT_IMAGE}
    said["bastionImage"] = aws.access == "tunnel" and aws.bastion_image is None
    for key, usual in said.items():
        if usual:
            text = f"is missing: in {aws.region} the usual owner of images has none; name one there"
            yield Problem(f"machines.aws.{key}", text)


def _images(spec: Spec, aws: AwsSpec) -> Iterator[Problem]:
    image = aws.image
    for key, name in (("image", image), ("bastionImage", aws.bastion_image)):
        if (
            name
            and not name.startswith("ami-")
            and not re.match(r"([0-9]{12}|amazon|self|aws-marketplace)/", name)
        ):
            text = f"{name} names no owner of images; write 12 digits, amazon or self before '/'"
            yield Problem(f"machines.aws.{key}", text)
    if aws.access == "public" and aws.bastion_image is not None:
        text = "is for a bastion, which access public has not; leave it out"
        yield Problem("machines.aws.bastionImage", text)
    arches = {pool.arch for pool in spec.pools.values()}
    if image.startswith("ami-") and len(arches) > 1:
        text = f"{image} is for one architecture, and pools have two; write owner/prefix"
        yield Problem("machines.aws.image", text)
    elif image.startswith("ami-") and aws.access == "bastion" and aws.bastion_image is None:
        type_ = bastions.machine_type(spec)
        if bastions.arch(type_) not in arches:
            text = (
                f"{type_} is a machine of {bastions.arch(type_)}, and the bastion's image {image} "
                f"is for {arches.pop()}; take another type, or name a bastionImage"
            )
            yield Problem("machines.aws.bastionMachineType", text)


def _subnets(aws: AwsSpec, *, has_ingress: bool) -> Iterator[Problem]:
    vpc = IPv4Network(aws.cidr)
    yield from _masks("machines.aws.cidr", vpc)
    seen: list[tuple[str, IPv4Network]] = []
    for zone, said in sorted(aws.subnets.items()):
        path = f"machines.aws.subnets.{zone}"
        if (said.id is None) != (aws.vpc_id is None):
            what = (
                "is missing; vpcId is given" if aws.vpc_id else "stands without machines.aws.vpcId"
            )
            yield Problem(f"{path}.id", f"{what}; give both or none")
        public = said.public_cidr is not None or said.public_id is not None
        # In a VPC that is there the egress, by which SSM's agent is reached too, is its owner's.
        ours = aws.access == "bastion" or (aws.access == "tunnel" and aws.vpc_id is None)
        if not public and (ours or aws.api_load_balancer == "external" or has_ingress):
            key = "publicId" if aws.vpc_id else "publicCidr"
            text = "is missing; NAT, bastion and external load balancers are in a public subnet"
            yield Problem(f"{path}.{key}", text)
        given = {"cidr": said.cidr, "publicCidr": said.public_cidr}
        for key, cidr in given.items():
            if cidr is None:
                continue
            network, where = IPv4Network(cidr), f"{path}.{key}"
            yield from _masks(where, network)
            if not network.subnet_of(vpc):
                yield Problem(where, f"{network} is not within machines.aws.cidr {vpc}")
            for other, there in seen:
                if network.overlaps(there):
                    yield Problem(where, f"{network} overlaps {other} {there}")
            seen.append((where, network))


def _ids(aws: AwsSpec) -> Iterator[Problem]:
    """An ID says by its first word what it is of."""
    given = [("machines.aws.vpcId", aws.vpc_id, "vpc")]
    for zone, said in sorted(aws.subnets.items()):
        path = f"machines.aws.subnets.{zone}"
        given += [(f"{path}.id", said.id, "subnet"), (f"{path}.publicId", said.public_id, "subnet")]
    for path, id_, kind in given:
        if id_ is not None and not id_.startswith(f"{kind}-"):
            yield Problem(path, f"{id_} is no {kind}; its ID begins with {kind}-")


def _masks(path: str, network: IPv4Network) -> Iterator[Problem]:
    low, high = _MASKS
    if not low <= network.prefixlen <= high:
        yield Problem(path, f"/{network.prefixlen} does not fit; use /{low} to /{high}")
