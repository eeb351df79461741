"""Machines of configs that are made in a cloud: what fits together, for the rest is drawn from the model."""

from __future__ import annotations

from stacks.config.clouds import AwsSpec, GcpSpec, HcloudSpec
from tests.fuzz import draws
from tests.fuzz.dice import Dice
from tests.unit.cloud_shapes import DISK_KEYS

ALL = ("gcp", "aws", "hcloud")
_REGIONS = {"gcp": "europe-west3", "aws": "eu-central-1"}
_TYPES = {
    ("gcp", "amd64"): "n2-standard-4",
    ("gcp", "arm64"): "t2a-standard-2",
    ("aws", "amd64"): "m6i.xlarge",
    ("aws", "arm64"): "m7g.large",
    ("hcloud", "amd64"): "ccx23",
    ("hcloud", "arm64"): "cax21",
}
_SSH_FROM = (
    "203.0.113.0/24",
)  # each config has a list of its own: what breaks one changes it in place


def machines(dice: Dice, provider: str) -> dict[str, object]:
    """The section `machines` of a config that is meant to be accepted."""
    section = {"gcp": _gcp, "aws": _aws, "hcloud": _hcloud}[provider](dice)
    if dice.chance(80):
        section["fewZones"] = True
    return {"provider": provider, provider: section}


def pool(dice: Dice, provider: str, arch: str) -> dict[str, object]:
    """Zones and hardware of a pool; the default machine type is for amd64."""
    own: dict[str, object] = {"zones": _zones(provider)}
    if arch == "arm64" or dice.chance(20):
        own["machineType"] = _TYPES[provider, arch]
    for key in ("etcdDiskGib",) if provider == "hcloud" else ("diskGib", "etcdDiskGib"):
        if dice.chance(15):
            own[key] = dice.between(10, 200)
    return own


def named(dice: Dice, raw: dict[str, object]) -> None:
    """A record of the API's name, which is among the names of its zone."""
    machines, cluster = raw["machines"], raw["cluster"]
    assert isinstance(machines, dict)
    assert isinstance(cluster, dict)
    provider = machines["provider"]
    own = machines[provider]
    zone: dict[str, object] = {"domain": "example.com"}
    if dice.chance(30):
        zone |= {"domain": "k8s.test", "private": True}
    elif dice.chance(20):
        own["apiLoadBalancer"] = "external"
        if own.get("access") == "tunnel":
            own["apiFrom"] = own.get("apiFrom") or [*_SSH_FROM]
    elif own.get("access") == "public":
        own.setdefault("apiLoadBalancer", "none")
    if not zone.get("private") or dice.chance(30):
        zone["id"] = "my-zone" if provider == "gcp" else "Z0123456789"
        if provider == "gcp" and dice.chance(30):
            zone["project"] = "the-dns-project"
    cluster["endpoint"] = f"api.{zone['domain']}"
    raw["frontDoors"] = {"dns": "managed", "zone": zone}


def with_ingress(dice: Dice, raw: dict[str, object]) -> None:
    """A load balancer for what runs in the cluster, before workers."""
    doors, machines = raw.get("frontDoors"), raw["machines"]
    assert isinstance(machines, dict)
    provider = machines["provider"]
    wanted: dict[str, object] = {}
    if dice.chance(30):
        wanted["pools"] = ["worker"]
    if provider != "gcp" and dice.chance(30):
        wanted["proxyProtocol"] = True
    if provider != "hcloud" and dice.chance(30):
        machines[provider]["ingressFrom"] = ["198.51.100.0/24", "192.0.2.0/24"][
            : dice.between(1, 2)
        ]
    raw["frontDoors"] = {**(doors if isinstance(doors, dict) else {}), "ingress": wanted}


def with_identity(dice: Dice, raw: dict[str, object]) -> None:
    """Roles for service accounts; on AWS API servers sign in the name that IAM knows."""
    machines = raw["machines"]
    assert isinstance(machines, dict)
    own, accounts = machines[machines["provider"]], ["kube-system/csi", "shop/orders"]
    chosen = accounts[: dice.between(0, 2)]
    if machines["provider"] == "gcp":
        own["workloadIdentity"] = {"pool": "ours", "roles": {one: ["roles/viewer"] for one in chosen}}  # fmt: skip
        return
    control = raw.setdefault("controlPlane", {})
    assert isinstance(control, dict)
    made = dice.chance(60)
    issuer = "https://ours.s3.eu-central-1.amazonaws.com" if made else "https://id.example.com"
    listed = [issuer, "https://kubernetes.default.svc.cluster.local"]
    control["serviceAccountIssuers"] = listed if dice.chance(60) else listed[:1]
    own["workloadIdentity"] = {
        **({"bucket": "ours"} if made else {"issuer": issuer}),
        "policies": {one: ["arn:aws:iam::aws:policy/ReadOnlyAccess"] for one in chosen},
    }


def _zones(provider: str) -> list[str]:
    if provider == "hcloud":
        return ["fsn1", "nbg1", "hel1"]
    mark = "-" if provider == "gcp" else ""
    return [f"{_REGIONS[provider]}{mark}{zone}" for zone in "abc"]


def _gcp(dice: Dice) -> dict[str, object]:
    chosen = (
        "project",
        "region",
        *_WAY_IN,
        "cidr",
        "network",
        "subnetwork",
        "networkProject",
        "diskType",
        "etcdDiskType",
        "addressOffset",
    )
    own = draws.section(dice, GcpSpec, without=(*chosen, *_CHOSEN))
    own |= {"project": "my-project-1", "region": _REGIONS["gcp"], **_way_in(dice)}
    own |= {"cidr": "10.92.0.0/20", **_common(dice)}
    if dice.chance(10):
        own |= {"network": "mine", "subnetwork": "mine"}
        if dice.chance(50):
            own["networkProject"] = "my-networks-1"
    for key, value in (
        ("diskType", "pd-ssd"),
        ("etcdDiskType", "pd-balanced"),
        ("addressOffset", 5),
    ):
        if dice.chance(10):
            own[key] = value
    if dice.chance(10):
        own["diskKey"] = DISK_KEYS["gcp"]
    if own.get("access") != "public" and dice.chance(10):
        own["bastionMachineType"] = "e2-small"
    if dice.chance(10):
        own |= {"image": "ubuntu-os-cloud/ubuntu-2204-lts", "imageArm64": "mine/debian-arm64"}
    if dice.chance(10):
        own["machineType"] = "e2-standard-2"
    return own


def _aws(dice: Dice) -> dict[str, object]:
    disks = ("etcdDiskType", "etcdDiskIops", "etcdDiskThroughput")
    chosen = ("account", "region", *_WAY_IN, "bastionImage", "cidr", "vpcId", "subnets", *disks)
    own = draws.section(dice, AwsSpec, without=(*chosen, *_CHOSEN))
    own |= {"region": _REGIONS["aws"], **_way_in(dice), "cidr": "10.92.0.0/16"}
    own |= _common(dice)
    if own.get("access") == "tunnel" and dice.chance(20):
        own["bastionImage"] = "amazon/al2023-ami-2023"
    there = dice.chance(20)
    if there:
        own["vpcId"] = "vpc-0123456789abcdef0"
    own["subnets"] = {
        zone: {"cidr": f"10.92.{16 * number}.0/20"}
        | (
            {"id": f"subnet-0123456789abcde{number}", "publicId": f"subnet-0123456789abcdf{number}"}
            if there
            else {"publicCidr": f"10.92.{240 + number}.0/24"}
        )
        for number, zone in enumerate(_zones("aws"))
    }
    if dice.chance(10):
        own["image"] = "self/mine"
    if dice.chance(10):
        own["account"] = "123456789012"
    if dice.chance(10):
        own["diskKey"] = DISK_KEYS["aws"]
    if dice.chance(20):
        # Of the smallest disk there is.
        iops, kind = dice.between(3000, 5000), dice.one_of(("gp3", "io2"))
        own |= {"etcdDiskType": kind, "etcdDiskIops": iops}
        if kind == "gp3":
            own["etcdDiskThroughput"] = dice.between(125, iops // 4)
    if own.get("access") != "public" and dice.chance(10):
        own["bastionMachineType"] = "t3.small"
    if dice.chance(10):
        own["machineType"] = "m6i.large"
    return own


def _hcloud(dice: Dice) -> dict[str, object]:
    chosen = ("networkZone", *_WAY_IN, "cidr", "diskGib", "podRoutes")
    own = draws.section(dice, HcloudSpec, without=(*chosen, *_CHOSEN))
    own |= {"sshFrom": [*_SSH_FROM], "cidr": "10.92.0.0/20", **_common(dice)}
    if own.get("apiLoadBalancer") == "external":
        own["apiFrom"] = ["0.0.0.0/0"]
    if own.get("cloudController") == "external" and dice.chance(80):
        own["cloudController"] = "none"  # it needs another setting of kubelets
    if dice.chance(10):
        own |= {"image": "ubuntu-24.04", "loadBalancerType": "lb31", "machineType": "cpx32"}
    for key, value in (("access", "public"), ("networkZone", "eu-central")):
        if dice.chance(10):
            own[key] = value
    return own


_WAY_IN = ("access", "tunnelPort", "sshFrom")


def _way_in(dice: Dice) -> dict[str, object]:
    if not dice.chance(25):
        access = {"access": dice.one_of(("bastion", "public"))} if dice.chance(50) else {}
        return {**access, "sshFrom": [*_SSH_FROM]}
    port = {"tunnelPort": dice.between(1024, 65535)} if dice.chance(30) else {}
    return {"access": "tunnel", **port}


# Of both, where what is drawn alone would seldom fit.
_CHOSEN = (
    "image",
    "imageArm64",
    "machineType",
    "bastionMachineType",
    "diskKey",
    "apiPort",
    "apiLoadBalancer",
    "fewZones",
    "labels",
    "ingressFrom",
    "workloadIdentity",
)


def _common(dice: Dice) -> dict[str, object]:
    labels = {"labels": {"team": "a"}} if dice.chance(20) else {}
    kinds = ("none", "internal", "external")
    balancer: dict[str, object] = {"apiLoadBalancer": dice.one_of(kinds)} if dice.chance(30) else {}
    if "external" in balancer.values():
        balancer["apiFrom"] = [*_SSH_FROM]
    port: dict[str, object] = {"apiPort": 36443} if dice.chance(10) else {}
    return {**labels, **balancer, **port}
