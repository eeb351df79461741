"""Which component versions belong to a Kubernetes version; read from artifacts/lock.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal

import yaml

LOCK = Path(__file__).resolve().parents[2] / "artifacts" / "lock.yaml"

Component = Literal["etcd", "containerd"]  # what can be chosen beside `cluster.kubernetes`
COMPONENTS: tuple[Component, ...] = ("etcd", "containerd")


class UnknownVersionError(ValueError):
    """A Kubernetes version that the lock has no set for; the text lists those it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    kubernetes: str
    etcd: str
    containerd: str
    runc: str
    cni_plugins: str
    coredns: str
    pause: str
    flannel: str
    cilium: str
    calico: str
    metrics_server: str
    local_path: str
    prometheus: str
    node_exporter: str
    toolbox: str
    agnhost: str
    # Of an add-on alone: a cluster without it is the same whatever this is.
    metallb: str = field(default="unknown", repr=False, metadata={"addon": "metallb"})
    opentelemetry_collector: str = field(default="unknown", repr=False, metadata={"addon": "logs"})
    loki: str = field(default="unknown", repr=False, metadata={"addon": "logs"})
    traefik: str = field(default="unknown", repr=False, metadata={"addon": "traefik"})


def for_kubernetes(
    version: str, *, etcd: str | None = None, containerd: str | None = None
) -> Versions:
    """The coherent set for a Kubernetes version, with another etcd or containerd where one is said.

    Raises UnknownVersionError for a Kubernetes version without a set; whether the others fit is
    `fitting`'s to say.
    """
    entry = _sets().get(version)
    if entry is None:
        raise UnknownVersionError(
            f"{version!r} is not in artifacts/lock.yaml; it has {', '.join(known())}"
        )
    return replace(entry, etcd=etcd or entry.etcd, containerd=containerd or entry.containerd)


def fitting(kubernetes: str, component: Component) -> tuple[str, ...]:
    """Versions of a component that may stand beside that Kubernetes version, newest first.

    etcd: what its kubeadm takes, up to the minor version of the set's own. containerd: what its
    makers name for it, within the minor version of the set's own, whose config file it reads.
    """
    made = mapping(mapping(lock().get("sets"), "sets")[kubernetes], f"sets.{kubernetes}")
    own = str(made[component])
    least = number(str(mapping(made["takes" if component == "etcd" else "fits"], "")[component]))
    found = [own]
    for version in choices(component):
        up_to = minor(version) <= minor(own)
        near = up_to if component == "etcd" else minor(version) == minor(own)
        if near and number(version) >= least and version not in found:
            found.append(version)
    return tuple(sorted(found, key=number, reverse=True))


def choices(component: Component) -> tuple[str, ...]:
    """Versions of the lock beside those of its sets."""
    listed = mapping(lock().get("choices"), "choices").get(component)
    return tuple(str(version) for version in listed) if isinstance(listed, list) else ()


def known() -> tuple[str, ...]:
    """Kubernetes versions of the lock, newest first."""
    return tuple(sorted(_sets(), key=number, reverse=True))


def number(version: str) -> tuple[int, ...]:
    """`1.36.3` as (1, 36, 3), for comparing."""
    return tuple(int(part) for part in version.split("."))


def minor(version: str) -> tuple[int, int]:
    """`1.36.3` as (1, 36)."""
    major, of_major, *_ = number(version)
    return major, of_major


def lock() -> Mapping[str, object]:
    """The whole lock, as parsed. Raises ValueError when it is not a mapping."""
    return _lock()


@cache
def _lock() -> Mapping[str, object]:
    parsed: object = yaml.load(LOCK.read_text(), _loader())  # noqa: S506 (a safe loader)
    return mapping(parsed, "lock")


@cache
def _sets() -> Mapping[str, Versions]:
    out: dict[str, Versions] = {}
    for version, entry in mapping(_lock().get("sets"), "sets").items():
        names = {key: str(value) for key, value in mapping(entry, f"sets.{version}").items()}
        out[version] = Versions(
            kubernetes=version,
            etcd=names["etcd"],
            containerd=names["containerd"],
            runc=names["runc"],
            cni_plugins=names["cniPlugins"],
            coredns=names["coredns"],
            pause=names["pause"],
            flannel=names["flannel"],
            cilium=names["cilium"],
            calico=names["calico"],
            metrics_server=names["metricsServer"],
            local_path=names["localPath"],
            prometheus=names["prometheus"],
            node_exporter=names["nodeExporter"],
            opentelemetry_collector=names["opentelemetryCollector"],
            loki=names["loki"],
            traefik=names["traefik"],
            toolbox=names["toolbox"],
            agnhost=names["agnhost"],
            metallb=names["metallb"],
        )
    return out


def mapping(value: object, where: str) -> Mapping[str, object]:
    """`value` as a mapping with text keys; ValueError names `where` in the lock it is not one."""
    if not isinstance(value, Mapping):
        raise ValueError(f"artifacts/lock.yaml: {where} is not a mapping")
    return {str(key): item for key, item in value.items()}


def _loader() -> type[yaml.SafeLoader] | type[yaml.CSafeLoader]:
    # The C parser reads the lock in a tenth of the time, where PyYAML was built with it.
    return yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
