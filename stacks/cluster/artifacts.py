"""What nodes fetch: file URLs with checksums, image references; rewritten to the mirror.

Versions and upstream URLs come from artifacts/lock.yaml, checksums from the manifest of the bundle
that the mirror serves; what upstream's own are comes from artifacts/pins.json, where it has them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

from artifacts import pins
from stacks.catalogue import registry as catalogue
from stacks.cluster.plan import Mirror, Node, Plan
from stacks.config import local_file
from stacks.releases import versions
from stacks.releases.versions import Versions

IMAGE = "image/"  # before the names of images among files
_LOCK_KEYS = {field.name: field.name for field in fields(Versions)} | {
    "cniPlugins": "cni_plugins",
    "metricsServer": "metrics_server",
    "localPath": "local_path",
    "nodeExporter": "node_exporter",
    "opentelemetryCollector": "opentelemetry_collector",
    "prometheus": "prometheus",
}


class ArtifactError(ValueError):
    """A bundle that does not hold what a plan needs; the text says how to make it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    name: str  # kubelet, etcd, containerd ...
    version: str
    url: str  # what the node fetches: at the mirror, or upstream
    upstream: str
    # Of an image url is its reference, and this its digest.
    sha256: str | None  # None without a mirror and a pin: the node compares with `published`
    published: str  # upstream's own checksum: a file with "<sha256>" or "<sha256>  <name>" lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    name: str  # kube-apiserver, pause, coredns ...
    version: str
    ref: str  # upstream's reference, with tag; containerd's hosts.toml leads it to the mirror


def files(plan: Plan, arch: str, *, root: Path | None = None) -> dict[str, File]:
    """Every file of a node of `arch` by name, and every image that has a digest, as `image/<name>`.

    With a mirror the manifest is read from below `root` (default: the current folder). Raises
    ArtifactError when it is missing, lacks a file or an image, or has another release of upstream
    than the one that is pinned.
    """
    known = _pins()
    sums = checksums(plan.mirror, root=root or Path()) if plan.mirror else known.files
    out, missing = {}, []
    for name, entry in _entries("files").items():
        version = _version(plan.versions, entry)
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
    if plan.mirror is None:
        return out | _pinned_images(plan, known.images.get(arch, {}))
    pinned = _pinned_images(plan, digests(plan.mirror, root=root or Path()))
    missing += [image.ref for image in images(plan).values() if _key(image) not in pinned]
    out |= pinned
    if missing:
        raise ArtifactError(
            f"{plan.mirror.manifest} lacks {len(missing)} files or images, the first is "
            f"{missing[0]}; make the bundle for Kubernetes {plan.versions.kubernetes} on {arch}: "
            f"`make bundle{_also(plan)}`"
        )
    _compare(
        plan.mirror, known, {file.upstream: file.name for file in out.values()}, root or Path()
    )
    return out


def also(plan: Plan) -> tuple[str, ...]:
    """What a bundle has to be asked for beside the default: `addon=logs`, `kubernetes=1.36.1`."""
    own = plan.versions
    of = {_text(_entries("images")[name], "only", "") for name in images(plan)} - {""}
    if own.kubernetes != versions.lock()["default"]:
        of.add(f"kubernetes={own.kubernetes}")
    usual = versions.for_kubernetes(own.kubernetes)
    of |= {
        f"{name}={getattr(own, name)}"
        for name in ("etcd", "containerd")
        if getattr(own, name) != getattr(usual, name)
    }
    if any(said.chart for said in plan.spec.addons.values()):
        of.add("tools=helm")  # of who plans, where no network is
    return tuple(sorted(of))


def _also(plan: Plan) -> str:
    of = also(plan)
    words = " ".join(of)
    return f' ALSO="{words}"' if len(of) > 1 else f" ALSO={words}" if of else ""


def _pinned_images(plan: Plan, known: Mapping[str, str]) -> dict[str, File]:
    """Images with their digests, of those that have one: a registry may say others."""
    return {
        _key(image): File(
            name=_key(image),
            version=image.version,
            url=image.ref,
            upstream=image.ref,
            sha256=known[image.ref],
            published="",
        )
        for image in images(plan).values()
        if image.ref in known
    }


def _key(image: Image) -> str:
    return f"{IMAGE}{image.name}"


def _compare(mirror: Mirror, known: pins.Pins, keys: Mapping[str, str], root: Path) -> None:
    """Raises ArtifactError where the bundle has another release of upstream than the pinned one."""
    names = {what: key.removeprefix(IMAGE) for what, key in keys.items()}
    lines = pins.differences(known, pins.of_bundle(_manifest(mirror, root), names))
    if lines:
        raise ArtifactError(
            f"{mirror.manifest} differs from artifacts/pins.json: {'; '.join(lines)}; find out who "
            "published what, then make the bundle again: `make bundle`"
        )


def _pins() -> pins.Pins:
    try:
        return pins.read()
    except pins.PinError as error:
        raise ArtifactError(str(error)) from None


def by_arch(plan: Plan, *, root: Path | None = None) -> dict[str, dict[str, File]]:
    """The files of every architecture that the plan has machines of. Raises ArtifactError."""
    archs = sorted({node.arch for node in (*plan.nodes, *plan.away)})
    return {arch: files(plan, arch, root=root) for arch in archs}


def fetched_again(then: Plan, plan: Plan, node: Node, name: str) -> bool:
    """Whether a file of the same version counts as another one: it is known by another sum.

    Without a mirror that is the pin, or what upstream publishes when a node asks; with one its
    manifest's, which equals the pin where there is one.
    """
    if (then.mirror is None) == (plan.mirror is None):
        return False
    return files(replace(plan, mirror=None), node.arch)[name].sha256 is None


def outlined(plan: Plan) -> dict[str, dict[str, File]]:
    """The same without the manifest of a mirror, which need not be on this computer: pinned sums.

    What differs between two of them is what two plans fetch otherwise.
    """
    found, mirror = by_arch(replace(plan, mirror=None)), plan.mirror
    if mirror is None:
        return found
    return {
        arch: {
            name: file if name.startswith(IMAGE) else replace(file, url=at_mirror(mirror, file.url))
            for name, file in files.items()
        }
        for arch, files in found.items()
    }


def images(plan: Plan) -> Mapping[str, Image]:
    """Every image of the cluster, by name; none that only others use."""
    return _images_of(_users(plan), plan.versions)


def at_mirror(mirror: Mirror, upstream: str) -> str:
    """`https://host/path` as the mirror serves it: `<mirror>/host/path`."""
    return f"{mirror.url}/{upstream.removeprefix('https://')}"


def checksums(mirror: Mirror, *, root: Path) -> dict[str, str]:
    """SHA-256 by upstream URL, from the bundle's manifest. Raises ArtifactError."""
    try:
        entries = versions.mapping(_manifest(mirror, root).get("files"), "files")
        return {url: str(versions.mapping(entry, url)["sha256"]) for url, entry in entries.items()}
    except ArtifactError:
        raise
    except (ValueError, KeyError) as error:
        raise _no_manifest(root / mirror.manifest, error) from None


def digests(mirror: Mirror, *, root: Path) -> dict[str, str]:
    """Digest by image reference, from the bundle's manifest. Raises ArtifactError."""
    found = _manifest(mirror, root).get("images")
    entries = found if isinstance(found, Mapping) else {}
    return {str(ref): str(digest) for ref, digest in entries.items()}


def _manifest(mirror: Mirror, root: Path) -> Mapping[str, object]:
    path = root / mirror.manifest
    try:
        path = local_file.place(mirror.manifest, root)
        found: object = json.loads(local_file.read(path, local_file.MANIFEST_MOST))
        return versions.mapping(found, "manifest")
    except (OSError, ValueError, RecursionError) as error:
        raise _no_manifest(path, error) from None


def _no_manifest(path: Path, error: Exception) -> ArtifactError:
    return ArtifactError(f"{path} is not a manifest of a bundle ({error}); make one: `make bundle`")


@cache
def _entries(section: str) -> dict[str, Mapping[str, object]]:
    listed = versions.mapping(versions.lock().get(section), section)
    return {name: versions.mapping(listed[name], f"{section}.{name}") for name in sorted(listed)}


def _users(plan: Plan) -> frozenset[str]:
    """What a cluster has that images may be for alone, as the lock's `only` says it."""
    addons = (f"addon={name}" for name in catalogue.chosen(plan.spec))
    return frozenset({f"network={plan.spec.network.plugin}", *addons})


@cache  # asked for once a node
def _images_of(users: frozenset[str], chosen: Versions) -> Mapping[str, Image]:
    return {
        name: Image(
            name=name, version=version, ref=_text(entry, "ref").replace("{version}", version)
        )
        for name, entry in _entries("images").items()
        for version in [_version(chosen, entry)]
        if "only" not in entry or entry["only"] in users
    }


def _version(chosen: Versions, entry: Mapping[str, object]) -> str:
    key = _text(entry, "version")
    return str(getattr(chosen, _LOCK_KEYS[key]))


def _filled(entry: Mapping[str, object], key: str, version: str, arch: str) -> str:
    return _text(entry, key).replace("{version}", version).replace("{arch}", arch)


def _text(entry: Mapping[str, object], key: str, default: str | None = None) -> str:
    return str(entry[key] if default is None else entry.get(key, default))
