"""Machines that are made on AWS."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from ipaddress import IPv4Network

from stacks.config.addresses import nth
from stacks.config.cloud_values import AWS_ZONE
from stacks.config.spec import Spec
from stacks.providers import cloud
from stacks.providers import places as pools
from stacks.providers.aws import bastions, checks, quotas, refusals, store
from stacks.providers.aws import resources as made
from stacks.providers.places import Place
from stacks.providers.provider import OwnNetwork, Said, Way
from stacks.providers.site import Balancer
from stacks.providers.store_identity import StoreIdentity

NAME = "aws"
MADE = True
LOCAL = False
MAKER = NAME
PLACE = f"on {NAME}"
FIXED: Mapping[str, str] = {
    "access": "machines that are there have a public address, or have none",
    "account": "everything that the stack has made is in it",
    "region": "machines and their addresses are of it",
    "cidr": "machines have their addresses of it",
}
TYPE = (re.compile(r".*\..*"), "m6i.large")
ARM = bastions.ARM
DNS_ZONE = "'Z0123456789ABCDEFGHIJ'"
DNS_ZONE_PROJECT = False
TUNNEL_FROM: tuple[str, ...] = ()  # SSM's agent on the bastion dials out, and then itself
HEALTH_CHECKS: Mapping[Balancer, tuple[str, ...]] = {}  # they come from the load balancer's group
OWN_LABELS = "aws"
PROTECTED_BY = ""
STORE: StoreIdentity | None = store.IDENTITY
SPOT_SHUTDOWN_S: tuple[int, int] | None = None
SPOT = True
PROXY_PROTOCOL = True
SPOT_NOTICE = True  # two minutes before (EC2 user guide, "Spot Instance interruption notices")
# Another than the bastion's: with a change of access both are there for a time. The first four of a
# subnet are taken.
_TUNNEL_OFFSET = 4

problems = checks.problems
unfit = checks.unfit
resources = made.resources
explained = refusals.explained
warnings = quotas.warnings


def said(spec: Spec) -> Said | None:
    """What its section says; None: it is missing."""
    found = spec.machines.aws
    if found is None:
        return None
    return Said(
        region=found.region,
        machine_type=found.machine_type,
        etcd_disk={"diskKey": found.disk_key},
        machines=(found.image, found.disk_type, found.disk_key),
    )


def places(spec: Spec, name: str) -> list[Place]:
    """So many machines, in a subnet a zone."""
    return pools.counted(spec, name, lambda zone: subnet(spec, zone) or cloud.NOWHERE)


def network(spec: Spec) -> OwnNetwork | None:
    """The VPC."""
    found = spec.machines.aws
    return OwnNetwork(path="machines.aws.cidr", cidr=found.cidr) if found else None


def mirror(_spec: Spec) -> None:
    """None comes with them."""


def subnet(spec: Spec, zone: str | None) -> IPv4Network | None:
    """The zone's own."""
    found = spec.machines.aws.subnets.get(zone or "") if spec.machines.aws else None
    return IPv4Network(found.cidr) if found else None


def subnet_words(zone: str) -> str:
    """Config path of its range."""
    return f"the subnet of {zone}"


def zone_form(region: str) -> tuple[str, str]:
    """As eu-central-1a."""
    return f"{region}[a-z]", f"{region}a"


def zones(spec: Spec) -> Collection[str] | None:
    """Those that have a subnet."""
    return spec.machines.aws.subnets if spec.machines.aws else None


def balancer_addresses(spec: Spec) -> tuple[str, ...]:
    """One in each zone."""
    found = spec.machines.aws
    if found is None:
        return ()
    cidrs = (found.subnets[zone].cidr for zone in cloud.zones(spec, found.subnets))
    return tuple(nth(cidr, cloud.BALANCER_OFFSET) for cidr in cidrs)


def bastion_address(spec: Spec, *, tunnel: bool) -> str | None:
    """Of a tunnel, where machines are; another bastion has the public subnet for itself."""
    found = subnet(spec, cloud.zones(spec, zones(spec))[0])
    return nth(str(found), _TUNNEL_OFFSET) if tunnel and found else None


def bastion_type(spec: Spec) -> str:
    """Of AWS's own words."""
    return bastions.machine_type(spec)


def first_offset(_spec: Spec) -> int:
    """AWS takes the first four, then come the bastion of a tunnel and the load balancer."""
    return cloud.FIRST_OFFSET


def ground(spec: Spec) -> Mapping[str, object]:
    """What machines, bastion and ways out are in, for life."""
    found = spec.machines.aws
    if found is None:
        return {}
    out: dict[str, object] = {"machines.aws.vpcId": found.vpc_id}
    for zone in cloud.zones(spec, found.subnets):
        said = found.subnets[zone].model_dump(by_alias=True)
        out |= {f"machines.aws.subnets.{zone}.{key}": value for key, value in said.items()}
    return out


def inner_domain(spec: Spec) -> str:
    """As the controller manager names nodes, ip-10-20-0-11.<domain>."""
    found = spec.machines.aws
    if found is None or found.cloud_controller != "external":
        return ""
    # Amazon VPC user guide, "DNS attributes for your VPC".
    return "ec2.internal" if found.region == "us-east-1" else f"{found.region}.compute.internal"


def machine_id(_spec: Spec, zone: str | None, instance: str) -> str:
    """As instances.go of cloud-provider-aws writes it; `instance`: its ID."""
    return f"aws:///{zone}/{instance}"


def is_dns_zone(text: str) -> bool:
    """The ID of a hosted zone of Route 53."""
    return AWS_ZONE.fullmatch(text) is not None


def way(spec: Spec, bastion: str) -> Way | None:
    """By Session Manager."""
    found = spec.machines.aws
    if found is None:
        return None
    region, docs = f"--region={found.region}", "https://docs.aws.amazon.com"
    cluster = f"Name=tag:kube-ha-cluster,Values={spec.cluster.name}"
    return Way(
        bastion=bastion,
        port=found.tunnel_port,
        programs=(
            ("aws", f"{docs}/cli/latest/userguide/getting-started-install.html"),
            (
                "session-manager-plugin",
                f"{docs}/systems-manager/latest/userguide/"
                "session-manager-working-with-install-plugin.html",
            ),
        ),
        log_in="aws sso login, or AWS_PROFILE=...",
        find=(
            *("aws", "ec2", "describe-instances", region, "--output=json"),
            *("--query=Reservations[].Instances[].InstanceId", "--filters"),
            *(f"Name=tag:Name,Values={bastion}", cluster),
            "Name=instance-state-name,Values=running",
        ),
        read=lambda listed: [f"--target={one}" for one in _listed(listed)],
        lead=(
            *("aws", "ssm", "start-session", region),
            "--document-name=AWS-StartPortForwardingSession",
            f"--parameters=portNumber={cloud.SSH_PORT},localPortNumber={found.tunnel_port}",
        ),
    )


def _listed(found: object) -> list[str]:
    return [str(one) for one in found] if isinstance(found, list) else []
