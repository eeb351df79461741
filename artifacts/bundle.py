"""Make the bundle: everything a cluster fetches, for one Kubernetes version and architecture, and
for those that it is to become.

    python -m artifacts.bundle [--kubernetes V] [--also etcd=V ...] [--arch amd64] [--out DIR]
                               [--link .local/bundle]

    files/<host>/<path>   files in upstream's URL layout, to be served over HTTP
    registry/             storage of an OCI registry with all images
    bin/                  kubectl and etcdctl for this computer
    manifest.json         SHA-256 by upstream URL, digest by image reference, origin by name
    sbom.cdx.json         bill of materials, CycloneDX

What is downloaded has to be what artifacts/pins.json says of it, where it says something.

A bundle is kept under a key of its lock entries and of everything that builds them; a second run
finds it. Progress goes to stderr, the path is the one line on stdout.
"""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from artifacts import build, contents, pins, sbom, sources
from artifacts.download import DownloadError, Upstream, file_sha256
from artifacts.layers import LayerError
from artifacts.lock import ARCHITECTURES, HERE, Lock, LockError, Module, read
from artifacts.progress import say
from artifacts.registry import RegistryError

# Sources that decide what a bundle holds, beside the lock and the modules' own folders.
_BUILDERS = ("build.py", "contents.py", "layers.py", "oci.py")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is wanted, and from where."""

    lock: Lock
    source: sources.Source
    upstream: Upstream
    cache: Path


def key(order: Order) -> str:
    """Hash of everything that decides the bundle's content, 16 hex digits."""
    digest = hashlib.sha256()
    for artefact in order.lock.artefacts:
        # A folder's place differs from checkout to checkout; what is in it counts.
        fields = {
            field.name: getattr(artefact, field.name)
            for field in dataclasses.fields(artefact)
            if field.name != "module"
        }
        digest.update(f"{fields} {_module_identity(artefact.module)}\n".encode())
    for name in _BUILDERS:
        digest.update((HERE / name).read_bytes())
    wanted = (order.lock.kubernetes, order.lock.arch)
    # `auto` finds what it made before, whichever hosts answer today.
    forced = () if order.source == "auto" else (order.source, order.upstream)
    digest.update(repr((wanted, forced)).encode())
    return digest.hexdigest()[:16]


def make(order: Order, target: Path) -> None:
    """Make `target` the bundle, at once and whole, unless it is one already."""
    if (target / "manifest.json").exists():
        return
    with _lock(order.cache):
        if (target / "manifest.json").exists():
            return  # another process made it while this one waited
        start = time.monotonic()
        wanted = f"Kubernetes {order.lock.kubernetes} for {order.lock.arch}"
        say(f"{wanted}: making {target}")
        work = target.with_name(f".{target.name}.new")
        shutil.rmtree(work, ignore_errors=True)  # of a run that was killed
        work.mkdir(parents=True)
        _fill(order, work)
        shutil.rmtree(target, ignore_errors=True)  # without manifest: no bundle of kube-ha
        work.rename(target)
        shutil.rmtree(order.cache / "bundle" / ".downloads", ignore_errors=True)
        say(f"{wanted}: done in {time.monotonic() - start:.0f} s, {_size_mib(target)} MiB")


def _fill(order: Order, work: Path) -> None:
    origins = sources.origins(order.lock, order.source, order.upstream)
    shop = contents.Workshop(
        lock=order.lock, cache=order.cache, upstream=order.upstream, origins=origins
    )
    contents.build_modules(shop)
    files = contents.fill_files(shop, work / "files")
    images = contents.fill_images(shop, work / "registry")
    contents.fill_bin(files, order.lock, work / "bin")
    manifest = {
        "arch": order.lock.arch,
        "kubernetes": order.lock.kubernetes,
        "files": {
            url: {"sha256": file_sha256(path), "size": path.stat().st_size}
            for url, path in sorted(files.items())
        },
        "images": dict(sorted(images.items())),
        "origin": dict(sorted(origins.items())),
    }
    (work / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def _list_materials(lock: Lock, target: Path) -> None:
    """Write the bill of materials, of a bundle too that was made by a version without one."""
    text = sbom.document(lock, sbom.of_manifest(target / "manifest.json"))
    new = target / f".{sbom.NAME}.new"
    new.write_text(text)
    new.replace(target / sbom.NAME)


def _pin(lock: Lock, target: Path, *, record: bool) -> None:
    """Compare with what upstream gave before, a bundle too that was made long ago.

    Raises PinError.
    """
    names = {file.url: file.name for file in lock.files}
    names |= {image.ref: image.name for image in lock.images}
    found = pins.of_bundle(json.loads((target / "manifest.json").read_bytes()), names)
    if not record:
        pins.compare(pins.read(), found)
    elif added := pins.record(found):
        say(f"{added} releases of upstream are pinned now: commit {pins.FILE}")


def _module_identity(module: Module | None) -> str:
    return f"{module.name} {module.version} {build.key(module)}" if module else ""


def _size_mib(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) >> 20


@contextmanager
def _lock(cache: Path) -> Iterator[None]:
    """One bundle at a time: two builds of one module would take each other's processors."""
    path = cache / "bundle" / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process makes a bundle; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cache_folder() -> Path:
    """$KUBE_HA_CACHE, or kube-ha in the user's cache folder."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("KUBE_HA_CACHE") or user / "kube-ha").absolute()


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    new = link.with_name(f".{link.name}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(link)  # readers see the old bundle or the new one


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m artifacts.bundle", description="Make a bundle")
    parser.add_argument("--kubernetes", help="a version of artifacts/lock.yaml (its default)")
    parser.add_argument(
        "--also",
        action="append",
        type=_also,
        default=[],
        metavar="NAME=V",
        help="beside it: kubernetes=V, a whole further set; etcd=V or containerd=V, another one; "
        "network=NAME, the images of a pod network that is not the default; addon=NAME, of an "
        "add-on of the catalogue; tests=conformance, programs and images of upstream's own tests",
    )
    parser.add_argument("--arch", choices=ARCHITECTURES, default=build.host_arch())
    parser.add_argument("--out", type=Path, help="put the bundle there, not into the cache")
    parser.add_argument("--link", type=Path, help="make this a symbolic link to the bundle")
    parser.add_argument(
        "--record",
        action="store_true",
        help="add what upstream gave for the first time to artifacts/pins.json, to be committed",
    )
    parser.add_argument("--source", choices=("auto", "download", "build"), default="auto")
    parser.add_argument("--mirror", default="", help="fetch from this URL, <URL>/<host>/<path>")
    parser.add_argument("--registry", default="", help="fetch images from this http(s)://host:port")
    return parser.parse_args(argv)


def _also(word: str) -> tuple[str, str]:
    name, mark, version = word.partition("=")
    if not mark:
        raise argparse.ArgumentTypeError(f"{word!r}: write it as NAME=VERSION")
    return name, version


def main(argv: Sequence[str] | None = None) -> int:
    """Make the bundle that the arguments name; 1 after an error, which is on stderr."""
    arguments = _arguments(argv)
    try:
        order = Order(
            lock=read(arguments.kubernetes, arguments.arch, also=arguments.also),
            source=arguments.source,
            upstream=Upstream(mirror=arguments.mirror, registry=arguments.registry),
            cache=cache_folder(),
        )
        target: Path = arguments.out or order.cache / "bundle" / key(order)
        make(order, target.absolute())
        _pin(order.lock, target, record=arguments.record)
        _list_materials(order.lock, target)
    except (
        LockError,
        DownloadError,
        LayerError,
        RegistryError,
        build.BuildError,
        pins.PinError,
    ) as error:
        print(f"ERROR bundle: {error}", file=sys.stderr)
        return 1
    if arguments.link:
        _link(arguments.link, target.absolute())
    print(target.absolute())
    return 0


if __name__ == "__main__":
    sys.exit(main())
