"""The lock file as typed values: what one set of versions consists of, and how to build it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

HERE = Path(__file__).parent
_ABOUT_THE_SET = ("fits", "takes", "sources")  # no versions of it
_PARTS = ("addon", "network", "tests", "tools")  # what `also` asks for beside versions
# What `also` has for files and images of upstream's own tests, and for programs of who plans.
TESTS = ("tests", "conformance")
TOOLS = ("tools", "helm")
_APART = ("=".join(TESTS), "=".join(TOOLS))  # in sections of their own
ARCHITECTURES = ("amd64", "arm64")


class LockError(ValueError):
    """The lock file lacks something; the text says what and where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """All binaries that come from one Go module."""

    name: str
    version: str
    folder: Path  # holds go.mod and go.sum
    packages: tuple[str, ...]
    rename: Mapping[str, str]  # what go calls the binary -> what it is called
    ldflags: str
    tags: str
    cgo: bool
    cold_s: int  # a build with empty caches, on 2 cores
    # Name -> folder below the module cache, beside the binaries.
    sources: Mapping[str, str] = field(default_factory=dict)
    tests: Mapping[str, str] = field(default_factory=dict)  # binary -> package whose tests it runs

    @property
    def binaries(self) -> int:
        return len(self.packages) + len(self.tests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Debian packages below the binaries of an image."""

    name: str
    packages: tuple[str, ...]
    links: Mapping[str, str]  # a path, or a name in /usr/sbin -> where to
    busybox: tuple[str, ...]  # applets, linked in /bin


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    name: str
    version: str
    url: str
    published: str  # URL of upstream's checksum
    module: Module
    members: Mapping[str, str]  # binary -> path in the tarball; empty for a plain binary
    binary: str  # the plain binary; empty for a tarball


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    name: str
    version: str
    ref: str
    module: Module | None  # None: an image of packages alone, without binary and path
    binary: str
    path: str  # of the binary in the image, without leading slash
    more: Mapping[str, str]  # what it holds of the module besides: name -> path
    base: Layer | None
    command: tuple[str, ...]
    user: str

    @property
    def is_upstreams_alone(self) -> bool:
        """Nothing says how to build it."""
        return self.module is None and self.base is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Everything for one Kubernetes version and architecture, all templates filled in."""

    kubernetes: str
    arch: str
    files: tuple[File, ...]
    images: tuple[Image, ...]

    @property
    def artefacts(self) -> tuple[File | Image, ...]:
        return (*self.files, *self.images)


def read(
    kubernetes: str | None,
    arch: str,
    *,
    path: Path = HERE / "lock.yaml",
    also: Sequence[tuple[str, str]] = (),
) -> Lock:
    """The set of `kubernetes` (None: the default one) for `arch`, and what is wanted beside it.

    `also`: ("kubernetes", version) for a whole further set, ("etcd", version) and the like for
    another version of one component, ("network", name) and ("addon", name) for the images of a pod
    network and of an add-on of the catalogue, TESTS, TOOLS. Raises LockError.
    """
    raw = _mapping(yaml.safe_load(path.read_text()), str(path))
    if arch not in ARCHITECTURES:
        raise LockError(f"architecture {arch}: must be one of {', '.join(ARCHITECTURES)}")
    chosen = kubernetes or _text(raw, "default")
    own = _versions(raw, chosen, str(path))
    parts = {f"{key}={name}" for key, name in also if key in _PARTS}
    _known(raw, parts)
    more = [
        _versions(raw, version, str(path))
        if key == "kubernetes"
        else _chosen(raw, own, key, version)
        for key, version in also
        if key not in _PARTS
    ]
    # The set itself last: the tools of this computer are taken of it.
    mine, *others = (
        _Reader(raw=raw, versions=versions, arch=arch, parts=frozenset(parts))
        for versions in (own, *more)
    )
    files = {file.url: file for file in mine.files()}
    images = {image.ref: image for image in mine.images()}
    further = {f.url: f for other in others for f in other.files() if f.url not in files}
    pulled = {i.ref: i for other in others for i in other.images() if i.ref not in images}
    return Lock(
        kubernetes=chosen,
        arch=arch,
        files=(*further.values(), *files.values()),
        images=(*pulled.values(), *images.values()),
    )


def licenses(path: Path = HERE / "lock.yaml") -> dict[str, str]:
    """SPDX identifier by name of a module. Raises LockError."""
    modules = _section(_mapping(yaml.safe_load(path.read_text()), str(path)), "modules")
    return {name: _text(_section(modules, name), "license") for name in modules}


def _versions(raw: Mapping[str, object], kubernetes: str, where: str) -> dict[str, str]:
    """Version by component of one set."""
    sets = _section(raw, "sets")
    if kubernetes not in sets:
        raise LockError(f"{where}: no set for Kubernetes {kubernetes}; there are {', '.join(sets)}")
    versions = {"kubernetes": kubernetes}
    for key, value in _mapping(sets[kubernetes], f"sets.{kubernetes}").items():
        if key in _ABOUT_THE_SET:
            continue
        if not isinstance(value, str):
            raise LockError(
                f"{where}: sets.{kubernetes}.{key}: quote {value!r}, it is not a string"
            )
        versions[key] = value
    return versions


def _known(raw: Mapping[str, object], parts: Iterable[str]) -> None:
    listed = _section(raw, "images")
    there = {_only(_section(listed, name)) for name in listed} | {*_APART}
    for part in sorted({*parts} - there):
        kind = part.partition("=")[0]
        own = ", ".join(sorted(word for word in there if word.startswith(f"{kind}="))) or "none"
        raise LockError(f"{part}: no image is its own; those that have some: {own}")


def _only(entry: Mapping[str, object]) -> str:
    return _text(entry, "only", "")


def _chosen(
    raw: Mapping[str, object], own: Mapping[str, str], key: str, version: str
) -> dict[str, str]:
    there = _list(_section(raw, "choices"), key) if key in _section(raw, "choices") else ()
    if version not in there:
        raise LockError(f"choices.{key}: has no {version}; there are {', '.join(there) or 'none'}")
    return {**own, key: version}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    raw: Mapping[str, object]
    versions: Mapping[str, str]
    arch: str
    parts: frozenset[str]  # whose own files and images are wanted too: "network=cilium"

    def files(self) -> Iterator[File]:
        return (self.file(name, entry) for name, entry in self._listed("files"))

    def images(self) -> Iterator[Image]:
        return (
            self.image(name, entry)
            for name, entry in self._listed("images")
            if _only(entry) in {"", *self.parts}
        )

    def file(self, name: str, entry: Mapping[str, object]) -> File:
        version, recipe = self._version(entry), _section(entry, "build")
        members = _texts(recipe, "archive")
        return File(
            name=name,
            version=version,
            url=self._fill(_text(entry, "url"), version),
            published=self._fill(_text(entry, "published"), version),
            module=self.module(_text(recipe, "module"), version),
            members={binary: self._fill(path, version) for binary, path in members.items()},
            binary=_text(recipe, "binary", ""),
        )

    def image(self, name: str, entry: Mapping[str, object]) -> Image:
        version, recipe = self._version(entry), _mapping(entry.get("build", {}), "build")
        module = _text(recipe, "module", "")
        base = _text(recipe, "base", "")
        return Image(
            name=name,
            version=version,
            ref=self._fill(_text(entry, "ref"), version),
            module=self.module(module, version) if module else None,
            binary=_text(recipe, "binary", None if module else ""),
            path=_text(recipe, "path", None if module else ""),
            more=_texts(recipe, "more"),
            base=self.layer(base) if base else None,
            command=_list(recipe, "command"),
            user=_text(recipe, "user", ""),
        )

    def module(self, name: str, of: str) -> Module:
        """`of`: the version of the artefact, of which the module may have another one.

        agnhost has a version of its own, but comes out of Kubernetes' modules.
        """
        recipe = _section(_section(self.raw, "modules"), name)
        version = self.versions.get(_text(recipe, "version", name), of)
        cold = recipe.get("cold")
        pinned = HERE / "build" / name / version
        return Module(
            name=name,
            version=version,
            # A program of this repository without dependencies is the same for every version.
            folder=pinned if pinned.is_dir() else pinned.parent,
            packages=_list(recipe, "packages"),
            rename=_texts(recipe, "rename"),
            ldflags=self._fill(_text(recipe, "ldflags", ""), version),
            tags=_text(recipe, "tags", ""),
            cgo=recipe.get("cgo") is True,
            sources={
                name: self._fill(folder, version)
                for name, folder in _texts(recipe, "sources").items()
            },
            tests=_texts(recipe, "tests"),
            cold_s=cold if isinstance(cold, int) else 0,
        )

    def layer(self, name: str) -> Layer:
        entry = _section(_section(self.raw, "layers"), name)
        return Layer(
            name=name,
            packages=_list(entry, "packages"),
            links=_texts(entry, "links"),
            busybox=_list(entry, "busybox"),
        )

    def _listed(self, kind: str) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Files or images by name; those of sections of their own last: tests replace others."""
        apart = [_section(self.raw, one.partition("=")[0]) for one in _APART if one in self.parts]
        for listed in (_section(place, kind) for place in (self.raw, *apart)):
            yield from ((name, _section(listed, name)) for name in listed)

    def _version(self, entry: Mapping[str, object]) -> str:
        if "tag" in entry:
            return _text(entry, "tag")
        key = _text(entry, "version")
        if key not in self.versions:
            raise LockError(f"sets.{self.versions['kubernetes']}: has no version of {key}")
        return self.versions[key]

    def _fill(self, template: str, version: str) -> str:
        major, minor = version.split(".")[:2]
        values = {"version": version, "major": major, "minor": minor, "arch": self.arch}
        for key, value in values.items():
            template = template.replace(f"{{{key}}}", value)
        return template


def _mapping(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise LockError(f"{where}: must be a mapping")
    return {str(key): inner for key, inner in value.items()}


def _section(parent: Mapping[str, object], key: str) -> dict[str, object]:
    if key not in parent:
        raise LockError(f"{key}: missing")
    return _mapping(parent[key], key)


def _text(parent: Mapping[str, object], key: str, default: str | None = None) -> str:
    value = parent.get(key, default)
    if not isinstance(value, str):
        raise LockError(f"{key}: must be a string, is {value!r}")
    return value


def _texts(parent: Mapping[str, object], key: str) -> dict[str, str]:
    entries = _mapping(parent.get(key, {}), key)
    return {name: _text(entries, name) for name in entries}


def _list(parent: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = parent.get(key, [])
    # An unquoted `true` or 1.20 is not a string to YAML, and would turn into another word here.
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise LockError(f"{key}: must be a list of strings, is {value!r}")
    return tuple(value)
