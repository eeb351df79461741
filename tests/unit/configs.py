"""Configs to start a test from, and edits of them by config path."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping

from stacks import load
from stacks.cluster.plan import Plan
from stacks.config.problems import SpecError

GONE = object()  # as an edit's value: take the key out


STORE = {"endpoint": "https://s3.example.com", "bucket": "acme", "accessKey": "AKIAEXAMPLE"}


def with_store(**others: object) -> dict[str, object]:
    """Edits: snapshots of etcd go to an object store too."""
    secret = {"backupSecretKey": {"secure": "a-secret-of-the-object-store"}}
    return {"etcd.backup": {"objectStore": {**STORE, **others}}, **secret}


_STORES = {
    "gcp": {"endpoint": "https://storage.googleapis.com", "region": "auto"},
    "aws": {"endpoint": "https://s3.eu-central-1.amazonaws.com", "region": "eu-central-1"},
}


def by_identity(provider: str, **others: object) -> dict[str, object]:
    """Edits: snapshots of etcd go to the cloud's own object store, which knows its machines."""
    said = {**_STORES[provider], "bucket": "acme-etcd", "prefix": "clusters"}
    return {"etcd.backup": {"objectStore": {**said, **others}}}


def lab(edits: Mapping[str, object] | None = None) -> dict[str, object]:
    """3 masters with etcd, 2 workers in the lab; then `edits`, path -> value."""
    raw: dict[str, object] = {
        "cluster": {"name": "dev", "kubernetes": "1.36.3"},
        "machines": {"provider": "lab"},
        "pools": {
            "master": {"roles": ["etcd", "master"], "count": 3},
            "worker": {"roles": ["worker"], "count": 2},
        },
    }
    return edited(raw, edits or {})


def adopted(edits: Mapping[str, object] | None = None) -> dict[str, object]:
    """The same topology on adopted machines, with the agent's keys."""
    raw: dict[str, object] = {
        "cluster": {"name": "prod", "kubernetes": "1.36.3"},
        "machines": {"provider": "adopt", "ssh": {"agent": True}},
        "pools": {
            "master": {
                "roles": ["etcd", "master"],
                "hosts": [host("master", i) for i in (1, 2, 3)],
            },
            "worker": {"roles": ["worker"], "hosts": [host("worker", i) for i in (1, 2)]},
        },
    }
    return edited(raw, edits or {})


def gcp(edits: Mapping[str, object] | None = None) -> dict[str, object]:
    """The same topology on Google Cloud, over three zones."""
    settings = {
        "project": "my-project",
        "region": "europe-west3",
        "sshFrom": ["203.0.113.0/24"],
    }
    return edited(_cloud("gcp", settings, [f"europe-west3-{z}" for z in "abc"]), edits or {})


def aws(edits: Mapping[str, object] | None = None) -> dict[str, object]:
    """The same topology on AWS, over three zones."""
    settings = {
        "region": "eu-central-1",
        "sshFrom": ["203.0.113.0/24"],
        "subnets": {
            f"eu-central-1{zone}": {
                "cidr": f"10.20.{16 * number}.0/20",
                "publicCidr": f"10.20.{240 + number}.0/24",
            }
            for number, zone in enumerate("abc")
        },
    }
    return edited(_cloud("aws", settings, [f"eu-central-1{z}" for z in "abc"]), edits or {})


def hcloud(edits: Mapping[str, object] | None = None) -> dict[str, object]:
    """The same topology on Hetzner Cloud, over three locations."""
    settings = {"sshFrom": ["203.0.113.0/24"]}
    return edited(_cloud("hcloud", settings, ["fsn1", "nbg1", "hel1"]), edits or {})


def of_region(region: str, **more: object) -> dict[str, object]:
    """Edits: the same on AWS in another region."""
    zones = [f"{region}{zone}" for zone in "abc"]
    subnets = {zone: {"cidr": f"10.20.{16 * n}.0/20", "publicCidr": f"10.20.{240 + n}.0/24"} for n, zone in enumerate(zones)}  # fmt: skip
    pools = {f"pools.{pool}.zones": zones for pool in ("master", "worker")}
    return {"machines.aws.region": region, "machines/aws/subnets": subnets, **pools, **more}


def behind_tunnel(provider: str) -> dict[str, object]:
    """Edits: the bastion has no public address, and nobody outside is let in."""
    return {f"machines.{provider}.access": "tunnel", f"machines.{provider}.sshFrom": GONE}


def _cloud(provider: str, settings: Mapping[str, object], zones: list[str]) -> dict[str, object]:
    return {
        "cluster": {"name": "prod", "kubernetes": "1.36.3"},
        "machines": {"provider": provider, provider: settings},
        "pools": {
            "master": {"roles": ["etcd", "master"], "count": 3, "zones": zones},
            "worker": {"roles": ["worker"], "count": 2, "zones": zones},
        },
    }


def host(pool: str, ordinal: int) -> dict[str, object]:
    """One adopted machine: master-1 is 192.0.2.11, worker-1 is 192.0.2.101."""
    address = {"master": 10, "edge": 30, "etcd": 50, "worker": 100, "x": 150}[pool] + ordinal
    return {
        "name": f"{pool}-{ordinal}",
        "address": f"192.0.2.{address}",
        "hostKey": host_key(address),
    }


def host_key(number: int) -> str:
    """A well-formed ECDSA public key; another one for each number."""
    kind = "ecdsa-sha2-nistp256"
    parts = (kind.encode(), b"nistp256", b"\4" + number.to_bytes(64))
    blob = b"".join(len(part).to_bytes(4) + part for part in parts)
    return f"{kind} {base64.b64encode(blob).decode()}"


def edited(raw: Mapping[str, object], edits: Mapping[str, object]) -> dict[str, object]:
    """A copy of `raw` with the value at each path (`pools.worker.count`, `a.0.b`) replaced."""
    out = copy.deepcopy(dict(raw))
    for path, value in edits.items():
        *parents, last = path.split("/") if "/" in path else path.split(".")
        at: object = out
        for part in parents:
            if isinstance(at, list):
                at = at[int(part)]
            elif isinstance(at, dict):
                at = at.setdefault(part, {})
        _put(at, last, value if value is GONE else copy.deepcopy(value))
    return out


def _put(parent: object, key: str, value: object) -> None:
    if isinstance(parent, dict) and value is GONE:
        del parent[key]
    elif isinstance(parent, dict):
        parent[key] = value
    elif isinstance(parent, list) and value is GONE:
        del parent[int(key)]
    elif isinstance(parent, list):
        parent[int(key)] = value
    else:
        raise TypeError(f"{key!r} is below a plain value")


def planned(raw: Mapping[str, object]) -> Plan:
    return load.planned(load.load(raw))


def problems(raw: Mapping[str, object]) -> list[tuple[str, str]]:
    """What a config is refused for, as (config path, text) pairs; asserts that it is refused."""
    try:
        load.load(raw)
    except SpecError as error:
        return [(path, text) for path, text in error.problems]
    raise AssertionError("the config was accepted")
