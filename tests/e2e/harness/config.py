"""Configs of the stories, without the `kube-ha:` prefix."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.e2e.harness.lab import ROOT

Config = dict[str, dict[str, object]]


def kubernetes() -> str:
    """The version that set-up made a bundle of."""
    lock = yaml.safe_load((ROOT / "artifacts/lock.yaml").read_text())
    return str(lock["default"])


def lab(name: str, subnet: str, *, masters: int, workers: int) -> Config:
    """Masters with an etcd member each, and workers, on lab machines."""
    pools: dict[str, object] = {
        "master": {"roles": ["etcd", "master"], "count": masters},
        "worker": {"roles": ["worker"], "count": workers},
    }
    return {
        "cluster": {"name": name, "kubernetes": kubernetes()},
        "machines": {"provider": "lab", "lab": {"subnet": subnet}},
        "pools": pools,
    }


def separate_etcd(name: str, subnet: str, *, etcd: int, masters: int, workers: int) -> Config:
    """etcd members on machines of their own."""
    config = lab(name, subnet, masters=masters, workers=workers)
    config["pools"] = {
        "etcd": {"roles": ["etcd"], "count": etcd},
        "master": {"roles": ["master"], "count": masters},
        "worker": {"roles": ["worker"], "count": workers},
    }
    return config


def adopted(
    name: str, mirror: str, key_file: Path, hosts: dict[str, list[dict[str, object]]]
) -> Config:
    """Machines that are there, with a mirror at `mirror`; hosts by pool (master, worker)."""
    roles = {"master": ["etcd", "master"], "worker": ["worker"]}
    return {
        "cluster": {"name": name, "kubernetes": kubernetes()},
        "machines": {
            "provider": "adopt",
            "containers": True,
            "ssh": {"user": "admin", "privateKeyFile": str(key_file)},
        },
        "pools": {pool: {"roles": roles[pool], "hosts": listed} for pool, listed in hosts.items()},
        "mirror": {
            "url": f"http://{mirror}:8080",
            "registry": f"http://{mirror}:5000",
            "manifest": ".local/bundle/manifest.json",
        },
    }
