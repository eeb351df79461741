"""What nodes fetch: file URLs with checksums, image references; rewritten to the mirror.

Versions and upstream URLs come from artifacts/lock.yaml, checksums from the manifest of the bundle
that the mirror serves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from stacks import versions
from stacks.plan import Mirror, Plan
from stacks.versions import Versions

_LOCK_KEYS = {field.name: field.name for field in fields(Versions)} | {"cniPlugins": "cni_plugins"}


class ArtifactError(ValueError):
    """A bundle that does not hold what a plan needs; the text says how to make it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    name: str  # kubelet, etcd, containerd ...
    version: str
    url: str  # what the node fetches: at the mirror, or upstream
    upstream: str
    sha256: str | None  # None without a mirror: the node compares with `published`
    published: str  # upstream's own checksum: a file with "<sha256>" or "<sha256>  <name>" lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    name: str  # kube-apiserver, pause, coredns ...
    version: str
    ref: str  # upstream's reference, with tag; containerd's hosts.toml leads it to the mirror


def files(plan: Plan, arch: str, *, root: Path | None = None) -> dict[str, File]:
    """Every file of a node of `arch`, by name.

    With a mirror the manifest is read from below `root` (default: the current folder). Raises
    ArtifactError when it is missing or lacks a file.
    """
    sums = checksums(plan.mirror, root=root or Path()) if plan.mirror else {}
    out, missing = {}, []
    for name, entry in _entries("files").items():
        version = _version(plan, entry)
        upstream = _filled(entry, "url", version, arch)
        if plan.mirror and upstream not in sums:
            missing.append(upstream)
        out[name] = File(
            name=name,
            version=version,
            url=at_mirror(plan.mirror, upstream) if plan.mirror else upstream,
            upstream=upstream,
            sha256=sums.get(upstream),
            published=_filled(entry, "published", version, arch),
        )
    if plan.mirror and missing:
        raise ArtifactError(
            f"{plan.mirror.manifest} lacks {len(missing)} files, the first is {missing[0]}; make "
            f"the bundle for Kubernetes {plan.versions.kubernetes} on {arch}: `make bundle`"
        )
    return out


def by_arch(plan: Plan, *, root: Path | None = None) -> dict[str, dict[str, File]]:
    """The files of every architecture that the plan has machines of. Raises ArtifactError."""
    archs = sorted({node.arch for node in (*plan.nodes, *plan.away)})
    return {arch: files(plan, arch, root=root) for arch in archs}


def images(plan: Plan) -> dict[str, Image]:
    """Every image of the cluster, by name."""
    return {
        name: Image(
            name=name, version=version, ref=_text(entry, "ref").replace("{version}", version)
        )
        for name, entry in _entries("images").items()
        for version in [_version(plan, entry)]
    }


def at_mirror(mirror: Mirror, upstream: str) -> str:
    """`https://host/path` as the mirror serves it: `<mirror>/host/path`."""
    return f"{mirror.url}/{upstream.removeprefix('https://')}"


def checksums(mirror: Mirror, *, root: Path) -> dict[str, str]:
    """SHA-256 by upstream URL, from the bundle's manifest. Raises ArtifactError."""
    path = root / Path(mirror.manifest).expanduser()
    try:
        manifest: object = json.loads(path.read_text())
        entries = versions.mapping(versions.mapping(manifest, "manifest").get("files"), "files")
        return {url: str(versions.mapping(entry, url)["sha256"]) for url, entry in entries.items()}
    except (OSError, ValueError, KeyError) as error:
        raise ArtifactError(
            f"{path} is no manifest of a bundle ({error}); make one: `make bundle`"
        ) from None


@cache
def _entries(section: str) -> dict[str, Mapping[str, object]]:
    listed = versions.mapping(versions.lock().get(section), section)
    return {name: versions.mapping(listed[name], f"{section}.{name}") for name in sorted(listed)}


def _version(plan: Plan, entry: Mapping[str, object]) -> str:
    key = _text(entry, "version")
    return str(getattr(plan.versions, _LOCK_KEYS[key]))


def _filled(entry: Mapping[str, object], key: str, version: str, arch: str) -> str:
    return _text(entry, key).replace("{version}", version).replace("{arch}", arch)


def _text(entry: Mapping[str, object], key: str) -> str:
    return str(entry[key])
