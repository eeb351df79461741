"""Clusters in clouds that differ in what they have there: ways in, load balancers, networks, names, disks."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.configs import aws, behind_tunnel, by_identity, gcp, hcloud

_ETCD = {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}
_NAMED = {"cluster.endpoint": "api.example.com"}
_SUBNETS = {
    f"eu-central-1{zone}": {
        "cidr": f"10.20.{number}.0/24",
        "id": f"subnet-0123456789abcde{number}",
        "publicId": f"subnet-0123456789abcdf{number}",
    }
    for number, zone in enumerate("abc")
}
DISK_KEYS = {
    "gcp": "projects/my-keys-1/locations/europe-west3/keyRings/ours/cryptoKeys/disks",
    "aws": "arn:aws:kms:eu-central-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef",
}
ISSUER = "https://our-keys.s3.eu-central-1.amazonaws.com"
_OWN_ISSUER = "https://kubernetes.default.svc.cluster.local"
IDENTITIES: Mapping[str, Mapping[str, object]] = {
    "gcp": {
        "machines.gcp.workloadIdentity": {
            "pool": "prod",
            "roles": {
                "kube-system/csi-gce-pd-controller-sa": [
                    "roles/compute.viewer",
                    "roles/compute.storageAdmin",
                ]
            },
        }
    },
    "aws": {
        "controlPlane.serviceAccountIssuers": [ISSUER, _OWN_ISSUER],
        "machines.aws.workloadIdentity": {
            "bucket": "our-keys",
            "policies": {
                "kube-system/ebs-csi-controller-sa": [
                    "arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"
                ],
                "shop/orders.of-a-name-that-is-far-too-long-for-a-role-on-aws": [],
            },
        },
    },
}
_ZONES = {"gcp": [f"europe-west3-{zone}" for zone in "abc"], "aws": [*_SUBNETS]}
_IDS = {"gcp": "my-zone", "aws": "Z0123456789"}
_GIVEN: Mapping[str, Mapping[str, object]] = {
    "gcp": {"machines.gcp.network": "mine", "machines.gcp.subnetwork": "mine"},
    "aws": {"machines.aws.vpcId": "vpc-0123456789abcdef0", "machines/aws/subnets": _SUBNETS},
}


def _record(**zone: object) -> dict[str, object]:
    return {**_NAMED, "frontDoors": {"dns": "managed", "zone": {"domain": "example.com", **zone}}}


def _of(provider: str) -> dict[str, Mapping[str, object]]:
    section = f"machines.{provider}"
    away = {"state": "decommissioned"}
    public = {f"{section}.access": "public"}
    alone = {"pools.master.count": 1}
    outside = {f"{section}.apiLoadBalancer": "external", **_NAMED}
    controlled = {f"{section}.cloudController": "external", f"{section}.labels": {"team": "a"}}
    return {
        "bastion": {},
        "tunnel": behind_tunnel(provider),
        "public": public,
        "balancer outside": outside,
        "balancer outside of one master, without a name": {**alone, f"{section}.apiLoadBalancer": "external"},
        "no balancer": alone,
        "public, no balancer, a zone that is there": {**public, **alone, **_record(id=_IDS[provider])},
        "a network that is there": _GIVEN[provider],
        "a network that is there, tunnel, balancer outside": {
            **_GIVEN[provider], **behind_tunnel(provider), **outside, f"{section}.apiFrom": ["203.0.113.0/24"]
        },
        "a zone is made": _record(private=True),
        "a zone that is there, balancer outside": {**outside, **_record(id=_IDS[provider])},
        "ingress": {"frontDoors.ingress": {}, f"{section}.ingressFrom": ["203.0.113.0/24", "198.51.100.0/24"]},
        "workload identity": IDENTITIES[provider],
        "spot machines": {"pools.worker.spot": True},
        "snapshots by identity": by_identity(provider),
        "etcd on machines of its own": {**_ETCD, "pools.etcd.zones": _ZONES[provider]},
        "cloud controller": controlled,
        "decommissioned ones": {"pools.master.count": 4, "nodes": {"master-4": away, "worker-2": away}},
    }  # fmt: skip


_OUTSIDE = {"machines.hcloud.apiLoadBalancer": "external", "machines.hcloud.apiFrom": ["0.0.0.0/0"]}
_HETZNER: Mapping[str, Mapping[str, object]] = {
    "usual": {},
    "balancer outside": _OUTSIDE,
    "no balancer": {"pools.master.count": 1},
    "ingress": {"frontDoors.ingress": {}},
    "etcd on machines of its own": {**_ETCD, "pools.etcd.zones": ["fsn1", "nbg1", "hel1"]},
    "decommissioned ones": {"nodes": {"worker-2": {"state": "decommissioned"}}},
}

SHAPES = {
    f"{provider}, {name}": make(edits)
    for provider, make in (("gcp", gcp), ("aws", aws))
    for name, edits in _of(provider).items()
} | {f"hcloud, {name}": hcloud(edits) for name, edits in _HETZNER.items()}
