"""Plans that the tests of stacks/render render, and the real programs that read the result."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from stacks.cluster.plan import Plan
from stacks.load import load, planned
from stacks.releases.versions import Versions
from stacks.render import haproxy

ROOT = Path(__file__).resolve().parents[3]
SNAPSHOTS = Path(__file__).resolve().parent / "snapshots"

# Not those of the lock: a new version there is no reason to look at every rendered file again.
VERSIONS = Versions(
    kubernetes="1.36.3",
    etcd="3.6.16",
    containerd="2.3.7",
    runc="1.4.3",
    cni_plugins="1.9.1",
    coredns="1.14.2",
    pause="3.10.2",
    flannel="0.28.4",
    cilium="1.20.2",
    calico="3.32.1",
    metrics_server="0.9.0",
    local_path="0.0.30",
    prometheus="3.16.0",
    node_exporter="1.12.1",
    opentelemetry_collector="0.165.0",
    loki="3.7.8",
    toolbox="0.15",
    agnhost="2.63.0",
)


def rendered_from(raw: Mapping[str, object]) -> Plan:
    """The plan of a config, with fixed versions."""
    return dataclasses.replace(planned(load(raw, read_keys=False)), versions=VERSIONS)


def lab(masters: int = 3, workers: int = 2, **sections: object) -> Plan:
    """Machines in the lab, each master with an etcd member; `sections` are further config keys."""
    pools: dict[str, object] = {"master": {"roles": ["etcd", "master"], "count": masters}}
    if workers:
        pools["worker"] = {"roles": ["worker"], "count": workers}
    base: dict[str, object] = {
        "cluster": {"name": "dev", "kubernetes": "1.36.3"},
        "machines": {"provider": "lab"},
        "pools": pools,
    }
    return rendered_from(base | sections)


def adopted(**sections: object) -> Plan:
    """Own machines: three for etcd, two masters, one worker with a label and a taint."""
    base: dict[str, object] = {
        "cluster": {
            "name": "prod",
            "kubernetes": "1.36.3",
            "endpoint": "api.prod.example.com",
        },
        "machines": {
            "provider": "adopt",
            "ssh": {"user": "ops", "agent": True, "insecureIgnoreHostKey": True},
        },
        "pools": {
            "etcd": {"roles": ["etcd"], "hosts": _hosts("etcd", 10, 3)},
            "master": {"roles": ["master"], "hosts": _hosts("master", 20, 2)},
            "worker": {
                "roles": ["worker"],
                "hosts": _hosts("worker", 30, 1),
                "labels": {"example.com/disk": "ssd", "topology.kubernetes.io/zone": "b"},
                "taints": [{"key": "example.com/gpu", "effect": "NoSchedule"}],
            },
        },
    }
    return rendered_from(base | sections)


def local_api(plan: Plan) -> str:
    """haproxy.cfg of the first worker, which is that of all; masters have their own. Without workers the first's."""
    return haproxy.local_api(plan, next(iter((*plan.workers, *plan.masters))))


def _hosts(name: str, offset: int, count: int) -> list[dict[str, str]]:
    return [
        {"name": f"{name}-{number}", "address": f"192.0.2.{offset + number}"}
        for number in range(1, count + 1)
    ]


def assert_snapshot(name: str, text: str) -> None:
    """`text` is what tests/unit/render/snapshots/`name` holds; KUBE_HA_SNAPSHOTS=write stores it."""
    path = SNAPSHOTS / name
    if os.environ.get("KUBE_HA_SNAPSHOTS") == "write":
        path.write_text(text)
    assert path.exists(), f"no {path}; store it with KUBE_HA_SNAPSHOTS=write"
    assert text == path.read_text(), (
        f"{path.name} changed: if it should, store it with KUBE_HA_SNAPSHOTS=write, see git diff"
    )


def program(name: str, into: Path) -> str:
    """Path of a real program, of PATH or unpacked from the bundle `into`; skips without either."""
    found = shutil.which(name)
    if found is not None:
        return found
    files = ROOT / ".local" / "bundle" / "files"
    for path in sorted(files.rglob("*")):
        if path.name == name and path.is_file():
            return _executable(path, into / name)
        if path.name.startswith(f"{name}-") and path.name.endswith((".tar.gz", ".tgz")):
            return _unpacked(path, name, into)
    pytest.skip(f"{name} is neither on PATH nor in .local/bundle")


def _executable(path: Path, target: Path) -> str:
    shutil.copyfile(path, target)
    target.chmod(0o755)
    return str(target)


def _unpacked(archive: Path, name: str, into: Path) -> str:
    with tarfile.open(archive) as tar:
        member = next(each for each in tar if each.isfile() and Path(each.name).name == name)
        member.name = name
        tar.extract(member, into, filter="data")
    return str(into / name)
