"""Checks of machines made in a cloud: what the provider would refuse, or place badly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network

from stacks.checks import cloud_grants, machine_types
from stacks.cluster import clouds, inventory, ports
from stacks.cluster.inventory import Place
from stacks.config.clouds import (
    DEFAULT_BASTION_IMAGE,
    DEFAULT_TUNNEL_PORT,
    AwsSpec,
    CloudSpec,
    GcpSpec,
)
from stacks.config.pools import PoolSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec

AWS_MASKS = (16, 28)  # of a VPC and of its subnets (Amazon VPC user guide, "Subnet CIDR blocks")
GCP_MASKS = (8, 29)  # of a subnet's primary range (Google VPC documentation, "Subnets")
_NAME_LIMIT = 63  # of most names at Google (RFC 1035)
_LONGEST_SUFFIX = len("-etcd-disk")


def problems(spec: Spec, places: Sequence[Place]) -> list[Problem]:
    """Everything about clouds that makes the config unusable."""
    provider, machines = spec.machines.provider, spec.machines
    out = []
    for name, section in (("gcp", machines.gcp), ("aws", machines.aws)):
        if section is not None and provider != name:
            out.append(Problem(f"machines.{name}", f"is for provider {name}; leave it out"))
        if section is None and provider == name:
            out.append(Problem(f"machines.{name}", f"is missing; provider {name} needs it"))
    if clouds.settings(spec) is None:
        return [*out, *_elsewhere(spec)]
    return [
        *out,
        *_access(spec),
        *_controller(spec),
        *_pools(spec),
        *_addresses(spec),
        *_quorum(spec, places),
        *_balancer(spec, places),
        *_hardware(spec),
        *_labels(spec),
        *(_gcp(machines.gcp) if machines.gcp and provider == "gcp" else ()),
        *(_aws(spec, machines.aws) if machines.aws and provider == "aws" else ()),
    ]


def warnings(spec: Spec) -> list[Problem]:
    """Kubelets that wait for what nobody brings."""
    if not clouds.has_controller(spec) or spec.addons:
        return []
    text = (
        "is external, and no add-on brings a cloud controller manager: until one runs, new nodes "
        "take no pods, and the gate fails; see addons"
    )
    return [Problem(f"machines.{spec.machines.provider}.cloudController", text)]


def _controller(spec: Spec) -> Iterator[Problem]:
    cloud, provider = clouds.settings(spec), spec.machines.provider
    signed = spec.kubelet.serving_certificates != "self-signed"
    if clouds.has_controller(spec) and cloud is not None and cloud.access == "public" and signed:
        text = (
            "is external, and machines have public addresses: kubelets would ask for certificates "
            "for addresses that no config knows; take another access, or set "
            "kubelet.servingCertificates: self-signed"
        )
        yield Problem(f"machines.{provider}.cloudController", text)


def _elsewhere(spec: Spec) -> Iterator[Problem]:
    """Settings of clouds beside machines that are in none."""
    if clouds.in_cloud(spec):
        return
    for name, pool in spec.pools.items():
        given = {
            "machineType": pool.machine_type,
            "diskGib": pool.disk_gib,
            "etcdDiskGib": pool.etcd_disk_gib,
        }
        for key, value in given.items():
            if value is not None:
                yield Problem(f"pools.{name}.{key}", "is for providers gcp and aws; leave it out")


def _access(spec: Spec) -> Iterator[Problem]:
    cloud, where = clouds.settings(spec), f"machines.{spec.machines.provider}"
    if cloud is not None:
        yield from _way_in(cloud, where)
    if spec.network.plugin == "flannel" and spec.network.backend == "host-gw":
        text = "host-gw needs one layer 2, which no network of a cloud is; use vxlan"
        yield Problem("network.backend", text)


def _way_in(cloud: CloudSpec, where: str) -> Iterator[Problem]:
    if cloud.access != "tunnel":
        if not cloud.ssh_from:
            text = "is empty; name the networks that you and the CI system come from"
            yield Problem(f"{where}.sshFrom", text)
        if cloud.tunnel_port != DEFAULT_TUNNEL_PORT:
            text = f"is for access tunnel, and access is {cloud.access}; leave it out"
            yield Problem(f"{where}.tunnelPort", text)
        return
    if cloud.ssh_from:
        text = "lets nobody in: with access tunnel there is no SSH from outside; leave it out"
        yield Problem(f"{where}.sshFrom", text)
    if cloud.api_load_balancer == "external" and not cloud.api_from:
        text = (
            "is missing: without sshFrom nobody would reach the external load balancer; name the "
            "networks that clients come from, and the one that runs pulumi"
        )
        yield Problem(f"{where}.apiFrom", text)


def _pools(spec: Spec) -> Iterator[Problem]:
    provider = spec.machines.provider
    region = spec.machines.gcp.region if provider == "gcp" and spec.machines.gcp else None
    if provider == "aws" and spec.machines.aws:
        region = spec.machines.aws.region
    named: list[tuple[str, str]] = []
    for name, pool in spec.pools.items():
        if not pool.zones:
            text = f"is missing; name zones of {region}, better three of them"
            yield Problem(f"pools.{name}.zones", text)
        named += [(f"pools.{name}.zones", zone) for zone in pool.zones]
        longest = f"{spec.cluster.name}-{name}-{pool.count or 1}"
        if len(longest) + _LONGEST_SUFFIX > _NAME_LIMIT:
            text = f"machines would be called {longest}; use a shorter name, of the cluster too"
            yield Problem(f"pools.{name}", text)
    named += [(f"nodes.{name}.zone", node.zone) for name, node in spec.nodes.items() if node.zone]
    form = re.compile(re.escape(region or "") + ("-[a-z]" if provider == "gcp" else "[a-z]"))
    for path, zone in named:
        if not form.fullmatch(zone):
            example = f"{region}-b" if provider == "gcp" else f"{region}a"
            yield Problem(path, f"{zone} is not a zone of region {region}; write it as {example!r}")
        elif provider == "aws" and spec.machines.aws and zone not in spec.machines.aws.subnets:
            yield Problem(path, f"{zone} has no subnet; add machines.aws.subnets.{zone}")


def _addresses(spec: Spec) -> Iterator[Problem]:
    """First and last machine of each pool within every subnet; pools apart from each other."""
    provider = spec.machines.provider
    taken: list[tuple[str, int, int]] = []
    for name, pool in sorted(spec.pools.items()):
        if not pool.count:
            continue
        first = inventory.offset(pool) + 1
        last = first + pool.count - 1
        path = f"pools.{name}.addressOffset"
        if first < clouds.FIRST_OFFSET:
            yield Problem(path, f"{first - 1} is too small; at least {clouds.FIRST_OFFSET - 1}")
        for zone in pool.zones:
            network = clouds.subnet(spec, zone)
            # Both keep the last address, Google the last but one too.
            if network is not None and last > network.num_addresses - 3:
                where = "machines.gcp.cidr" if provider == "gcp" else f"the subnet of {zone}"
                text = f"machine {pool.count} would be address {last} of {network}"
                yield Problem(path, f"{text}; lower it, or make {where} wider")
                break
        for other, start, end in taken:
            if first <= end and start <= last:
                text = f"numbers {first} to {last} meet the addresses of pool {other}"
                yield Problem(path, f"{text}; move it by {end - first + 1}")
        taken.append((name, first, last))


def _quorum(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """Three members or more are there to outlive a zone."""
    cloud = clouds.settings(spec)
    present = [p for p in places if p.state in ("active", "maintenance")]
    members = [place for place in present if "etcd" in spec.pools[place.pool].roles]
    if cloud is None or cloud.few_zones or len(members) < 3:
        return
    zone, count = Counter(place.zone for place in members).most_common(1)[0]
    if zone is None:
        return  # no zones at all; said by _pools
    may_go = (len(members) - 1) // 2
    if count > may_go:
        text = (
            f"{zone} would hold {count} of {len(members)} etcd members, and its loss stop etcd; "
            f"name {-(-len(members) // may_go)} zones or more, or accept it with "
            f"machines.{spec.machines.provider}.fewZones: true"
        )
        yield Problem(f"pools.{members[0].pool}.zones", text)


def _balancer(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    masters = sum("master" in spec.pools[place.pool].roles for place in places)
    kind, endpoint = clouds.balancer(spec, masters), spec.cluster.endpoint
    host, _, port = (endpoint or "").partition(":")
    if kind != "none" and port and int(port) != ports.API_PORT:
        text = f"the load balancer listens on {ports.API_PORT}; leave the port {port} out"
        yield Problem("cluster.endpoint", text)
    if spec.front_doors.vip is not None:
        text = "no network of a cloud carries an address that moves by itself; leave it out for"
        way = f"machines.{spec.machines.provider}.apiLoadBalancer"
        yield Problem("frontDoors.vip", f"{text} {way}")
    if kind == "external" and spec.front_doors.dns == "unmanaged":
        text = "the external load balancer's address is only known once it is made; write managed,"
        yield Problem("frontDoors.dns", f"{text} or none and see the stack's output apiAddress")
    if kind == "external" and not re.search(r"[a-z]", host):
        text = (
            "is needed as a name: the load balancer's address is not known before it is made; make "
            "a DNS record of that name for the stack's output apiAddress, or have it made by "
            "frontDoors.dns: managed"
        )
        yield Problem("cluster.endpoint", text)


def _hardware(spec: Spec) -> Iterator[Problem]:
    provider = spec.machines.provider
    for name, pool in spec.pools.items():
        found = clouds.machine_type(spec, pool)
        owner = f"pools.{name}" if pool.machine_type else f"machines.{provider}"
        path = f"{owner}.machineType"
        if ("." in found) != (provider == "aws"):
            example = "m6i.large" if provider == "aws" else "e2-standard-2"
            yield Problem(path, f"{found} is not a type of {provider}; write it as {example!r}")
        elif clouds.arch(found) != pool.arch:
            text = f"{found} is a machine of {clouds.arch(found)}, the pool says {pool.arch}"
            yield Problem(f"pools.{name}.arch", f"{text}; set arch, or another machineType")
        elif reason := machine_types.unfit(found, provider, pool.roles):
            yield Problem(path, f"{found} {reason}")
        yield from _image(spec, name, pool)


# With the stack's own tags the program finds its machines.
_OWN_LABELS = ("name", "kube-ha-cluster", "kube-ha-node", "kube-ha-stack")


def _labels(spec: Spec) -> Iterator[Problem]:
    cloud = clouds.settings(spec)
    for key in cloud.labels if cloud is not None else ():
        if key in _OWN_LABELS or key.startswith(("kube-ha-", "aws", "goog")):
            text = f"`{key}` belongs to this program or to the cloud; choose another key"
            yield Problem(f"machines.{spec.machines.provider}.labels", text)


def _image(spec: Spec, name: str, pool: PoolSpec) -> Iterator[Problem]:
    """By its name, an image is for one architecture; the newest of AWS's owner is for any."""
    gcp = spec.machines.gcp
    if spec.machines.provider != "gcp" or gcp is None:
        return
    image = gcp.image_arm64 if pool.arch == "arm64" else gcp.image
    if ("arm64" in image) != (pool.arch == "arm64"):
        path = "image" + ("Arm64" if pool.arch == "arm64" else "")
        text = f"{image} is not an image for {pool.arch}, which pool {name} needs"
        yield Problem(f"machines.gcp.{path}", text)


def _gcp(gcp: GcpSpec) -> Iterator[Problem]:
    for key, image in (("image", gcp.image), ("imageArm64", gcp.image_arm64)):
        if image.startswith("ami-") or image.count("/") != 1:
            text = f"{image} is not an image of Google; write project/family"
            yield Problem(f"machines.gcp.{key}", text)
        if image.startswith("debian-cloud/"):
            text = f"{image} has no cloud-init, by which machines get their keys; take Ubuntu's"
            yield Problem(f"machines.gcp.{key}", text)
    if gcp.subnetwork is not None and gcp.network is None:
        yield Problem("machines.gcp.network", "is missing; it is the network of subnetwork")
    bits = IPv4Network(gcp.cidr).prefixlen
    if not GCP_MASKS[0] <= bits <= GCP_MASKS[1]:
        text = f"/{bits} does not fit; use /{GCP_MASKS[0]} to /{GCP_MASKS[1]}"
        yield Problem("machines.gcp.cidr", text)
    yield from cloud_grants.problems(
        "machines.gcp.serviceAccountRoles", gcp.service_account_roles, "role"
    )


def _aws(spec: Spec, aws: AwsSpec) -> Iterator[Problem]:
    image = aws.image
    for key, name in (("image", image), ("bastionImage", aws.bastion_image)):
        if not name.startswith("ami-") and not re.match(
            r"([0-9]{12}|amazon|self|aws-marketplace)/", name
        ):
            text = f"{name} names no owner of images; write 12 digits, amazon or self before '/'"
            yield Problem(f"machines.aws.{key}", text)
    if aws.access != "tunnel" and aws.bastion_image != DEFAULT_BASTION_IMAGE:
        text = f"is for access tunnel, and access is {aws.access}; leave it out"
        yield Problem("machines.aws.bastionImage", text)
    arches = {pool.arch for pool in spec.pools.values()}
    if image.startswith("ami-") and len(arches) > 1:
        text = f"{image} is for one architecture, and pools have two; write owner/prefix"
        yield Problem("machines.aws.image", text)
    yield from _aws_ids(aws)
    yield from cloud_grants.problems("machines.aws.policies", aws.policies, "policy")
    vpc = IPv4Network(aws.cidr)
    yield from _aws_masks("machines.aws.cidr", vpc)
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
        if not public and (ours or aws.api_load_balancer == "external"):
            key = "publicId" if aws.vpc_id else "publicCidr"
            text = "is missing; NAT, bastion and external load balancer are in a public subnet"
            yield Problem(f"{path}.{key}", text)
        given = {"cidr": said.cidr, "publicCidr": said.public_cidr}
        for key, cidr in given.items():
            if cidr is None:
                continue
            network, where = IPv4Network(cidr), f"{path}.{key}"
            yield from _aws_masks(where, network)
            if not network.subnet_of(vpc):
                yield Problem(where, f"{network} is not within machines.aws.cidr {vpc}")
            for other, there in seen:
                if network.overlaps(there):
                    yield Problem(where, f"{network} overlaps {other} {there}")
            seen.append((where, network))


def _aws_ids(aws: AwsSpec) -> Iterator[Problem]:
    """An ID says by its first word what it is of."""
    given = [("machines.aws.vpcId", aws.vpc_id, "vpc")]
    for zone, said in sorted(aws.subnets.items()):
        path = f"machines.aws.subnets.{zone}"
        given += [(f"{path}.id", said.id, "subnet"), (f"{path}.publicId", said.public_id, "subnet")]
    for path, id_, kind in given:
        if id_ is not None and not id_.startswith(f"{kind}-"):
            yield Problem(path, f"{id_} is no {kind}; its ID begins with {kind}-")


def _aws_masks(path: str, network: IPv4Network) -> Iterator[Problem]:
    low, high = AWS_MASKS
    if not low <= network.prefixlen <= high:
        yield Problem(path, f"/{network.prefixlen} does not fit; use /{low} to /{high}")
