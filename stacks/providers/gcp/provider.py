"""Machines that are made on Google Cloud."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network

from stacks.config.addresses import nth
from stacks.config.cloud_values import AWS_ZONE
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import cloud
from stacks.providers import places as pools
from stacks.providers.gcp import checks, disks, refusals, store
from stacks.providers.gcp import resources as made
from stacks.providers.places import Place
from stacks.providers.provider import OwnNetwork, Said, Way
from stacks.providers.site import Balancer
from stacks.providers.store_identity import StoreIdentity

NAME = "gcp"
MADE = True
LOCAL = False
MAKER = NAME
PLACE = f"on {NAME}"
FIXED: Mapping[str, str] = {
    "access": "machines that are there have a public address, or have none",
    "project": "machines are made in it",
    "region": "machines and their addresses are of it",
    "cidr": "machines have their addresses of it",
    "addressOffset": "certificates hold the load balancer's address",
}
TYPE = (re.compile(r"[^.]*"), "e2-standard-2")
ARM = re.compile(r"(t2a|[cn]4a)(-.*)?")  # axion's successors end in a
DNS_ZONE = "'my-zone'"
DNS_ZONE_PROJECT = True
# From where IAP comes (Google Cloud, "Using IAP for TCP forwarding").
TUNNEL_FROM: tuple[str, ...] = ("35.235.240.0/20",)
# By kind of load balancer (Google Cloud documentation, "Health checks overview", probe IP ranges
# and firewall rules).
HEALTH_CHECKS: Mapping[Balancer, tuple[str, ...]] = {
    "internal": ("130.211.0.0/22", "35.191.0.0/16"),
    "external": ("209.85.152.0/22", "209.85.204.0/22", "35.191.0.0/16"),
}
OWN_LABELS = "goog"
PROTECTED_BY = "Google"
STORE: StoreIdentity | None = store.IDENTITY
# 30 from the ACPI signal on (Compute Engine, "Spot VMs", preemption process), and the machine
# itself needs some of them.
SPOT_SHUTDOWN_S: tuple[int, int] | None = (25, 10)
SPOT = True
PROXY_PROTOCOL = False
SPOT_NOTICE = False  # it comes together with that signal
# From addressOffset on. Another for a tunnel than the bastion's: with a change of access both are
# there for a time.
_TUNNEL, _BASTION, _BALANCER = 0, 1, 2
_BASTION_TYPE = "e2-micro"

problems = checks.problems
unfit = checks.unfit
resources = made.resources
explained = refusals.explained


def said(spec: Spec) -> Said | None:
    """What its section says; None: it is missing."""
    found = spec.machines.gcp
    if found is None:
        return None
    return Said(
        region=found.region,
        machine_type=found.machine_type,
        etcd_disk={
            "etcdDiskType": disks.etcd(found.machine_type, found.etcd_disk_type),
            "diskKey": found.disk_key,
        },
        machines=(
            *(found.image, found.image_arm64, found.disk_type),
            *(found.disk_key, found.secure_boot),
        ),
    )


def places(spec: Spec, name: str) -> list[Place]:
    """So many machines, all in one subnet."""
    return pools.counted(spec, name, lambda zone: subnet(spec, zone) or cloud.NOWHERE)


def network(spec: Spec) -> OwnNetwork | None:
    """The subnet, which all zones of a region share."""
    found = spec.machines.gcp
    return OwnNetwork(path="machines.gcp.cidr", cidr=found.cidr) if found else None


def mirror(_spec: Spec) -> None:
    """None comes with them."""


def subnet(spec: Spec, _zone: str | None) -> IPv4Network | None:
    """One of all zones."""
    found = spec.machines.gcp
    return IPv4Network(found.cidr) if found else None


def subnet_words(_zone: str) -> str:
    """Config path of its range."""
    return "machines.gcp.cidr"


def zone_form(region: str) -> tuple[str, str]:
    """As europe-west3-b."""
    return f"{region}-[a-z]", f"{region}-b"


def zones(_spec: Spec) -> None:
    """All of the region."""


def balancer_addresses(spec: Spec) -> tuple[str, ...]:
    """One, of the subnet."""
    found = spec.machines.gcp
    return (nth(found.cidr, found.address_offset + _BALANCER),) if found else ()


def bastion_address(spec: Spec, *, tunnel: bool) -> str | None:
    """In the subnet, where machines are too."""
    found, which = spec.machines.gcp, _TUNNEL if tunnel else _BASTION
    return nth(found.cidr, found.address_offset + which) if found else None


def first_offset(spec: Spec) -> int:
    """Behind those three."""
    found = spec.machines.gcp
    return found.address_offset + _BALANCER + 1 if found else cloud.FIRST_OFFSET


def ground(spec: Spec) -> Mapping[str, object]:
    """What machines are in, for life."""
    found = spec.machines.gcp
    if found is None:
        return {}
    said = {"network": found.network, "subnetwork": found.subnetwork}
    said["networkProject"] = found.network_project
    return {f"machines.gcp.{key}": value for key, value in said.items()}


def bastion_type(spec: Spec) -> str:
    """The smallest, where none is said."""
    found = spec.machines.gcp
    return (found.bastion_machine_type if found else None) or _BASTION_TYPE


def inner_domain(_spec: Spec) -> str:
    """Nodes keep their own names."""
    return ""


def machine_id(spec: Spec, zone: str | None, instance: str) -> str:
    """As gce.go of cloud-provider-gcp writes it; `instance`: its name."""
    found = spec.machines.gcp
    return f"gce://{found.project if found else ''}/{zone}/{instance}"


def warnings(_spec: Spec, _places: Sequence[Place]) -> Sequence[Problem]:
    """None: what a default project has is enough for some dozens of machines."""
    return ()


def is_dns_zone(text: str) -> bool:
    """The name of a zone of Cloud DNS, and no ID of another cloud's."""
    return AWS_ZONE.fullmatch(text) is None


def way(spec: Spec, bastion: str) -> Way | None:
    """By Identity-Aware Proxy."""
    found = spec.machines.gcp
    if found is None:
        return None
    project, gcloud = f"--project={found.project}", ("gcloud", "compute")
    labelled = f"labels.kube-ha-cluster={spec.cluster.name}"
    wanted = f"name={bastion} AND {labelled} AND status=RUNNING"
    return Way(
        bastion=bastion,
        port=found.tunnel_port,
        programs=(("gcloud", "https://cloud.google.com/sdk/docs/install"),),
        log_in="gcloud auth login",
        find=(
            *(*gcloud, "instances", "list", project, "--quiet"),
            *(f"--filter={wanted}", "--format=json(zone)"),
        ),
        read=_zones,
        lead=(
            *(*gcloud, "start-iap-tunnel", bastion, str(cloud.SSH_PORT), project, "--quiet"),
            f"--local-host-port={cloud.LOCAL}:{found.tunnel_port}",
        ),
    )


def _zones(found: object) -> list[str]:
    # gcloud gives zones as addresses.
    rows = found if isinstance(found, list) else []
    return [f"--zone={row['zone'].rpartition('/')[2]}" for row in rows]
