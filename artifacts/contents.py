"""Put files and images into a bundle, wherever they come from."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from artifacts import build, download, layers, oci, registry
from artifacts.lock import File, Image, Lock, Module
from artifacts.progress import say, step
from artifacts.sources import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What the parts of a bundle are made with."""

    lock: Lock
    cache: Path
    upstream: download.Upstream
    origins: Mapping[str, Origin]


def build_modules(shop: Workshop) -> None:
    """Build every module that something is built from, the longest first, before all else.

    A build that fails shall fail before anything was fetched or copied.
    """
    modules = {
        (artefact.module.name, artefact.module.version): artefact.module
        for artefact in shop.lock.artefacts
        if artefact.module and shop.origins[artefact.name] == "built"
    }
    for module in sorted(modules.values(), key=lambda m: -m.cold_s):
        build.build(module, shop.lock.arch, shop.cache)


def fill_files(shop: Workshop, root: Path) -> dict[str, Path]:
    """Put every file below `root` as <host>/<path>, with its checksum as upstream publishes it.

    Gives the path by upstream URL.
    """
    out: dict[str, Path] = {}
    for file in shop.lock.files:
        target = at(root, file.url)
        target.parent.mkdir(parents=True, exist_ok=True)
        if shop.origins[file.name] == "downloaded":
            _download(shop, file, target)
        elif file.members:
            binaries = _binaries(file.module, shop)
            write_archive(target, {to: binaries[name] for name, to in file.members.items()})
        else:
            place(_binaries(file.module, shop)[file.binary], target)
        # Appended: releases of some projects list all their files in one.
        with at(root, file.published).open("a") as published:
            published.write(f"{download.file_sha256(target)}  {target.name}\n")
        out[file.url] = target
    return out


def fill_images(shop: Workshop, storage: Path) -> dict[str, str]:
    """Put every image into the registry storage; gives the manifest's digest by reference."""
    out: dict[str, str] = {}
    with (
        step("images", f"filling the registry ({len(shop.lock.images)} images)"),
        registry.serve(storage) as target,
        tempfile.TemporaryDirectory(dir=storage.parent, prefix=".oci") as work,
    ):
        for image in shop.lock.images:
            if shop.origins[image.name] == "downloaded":
                out[image.ref] = _copy_upstream(shop, image, target)
            else:
                layout = Path(work) / image.name
                _write_image(shop, image, layout)
                out[image.ref] = target.copy(f"oci:{layout}", image.ref, shop.lock.arch)
                shutil.rmtree(layout)
    return out


def fill_bin(files: Mapping[str, Path], lock: Lock, folder: Path) -> None:
    """Put kubectl and etcdctl for this computer into `folder`, out of the bundle's own files.

    A bundle for another architecture has none: they could not run here.
    """
    if lock.arch != build.host_arch():
        say(f"bin: empty, the bundle is for {lock.arch} and this computer is {build.host_arch()}")
        return
    folder.mkdir()
    by_name = {file.name: files[file.url] for file in lock.files}
    place(by_name["kubectl"], folder / "kubectl")
    with tarfile.open(by_name["etcd"]) as tar:
        member = next(m for m in tar if m.isfile() and m.name.rpartition("/")[2] == "etcdctl")
        content = tar.extractfile(member)
        if content is None:
            raise AssertionError(member.name)  # isfile() above
        with content, (folder / "etcdctl").open("wb") as out:
            shutil.copyfileobj(content, out)
    for tool in folder.iterdir():
        tool.chmod(0o755)


def at(root: Path, url: str) -> Path:
    """Where a mirror with upstream's layout keeps `url`."""
    return root / url.removeprefix("https://")


def place(source: Path, target: Path) -> None:
    """Make `target` the same file as `source`, without a copy where one file system holds both."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
    target.chmod(0o755)


def write_archive(target: Path, members: Mapping[str, Path]) -> None:
    """A .tar.gz of executables, path in it -> file here; the same input gives the same bytes."""
    # The lowest level: programs shrink little more at higher ones, which take many times as long.
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=1, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path, source in members.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = source.stat().st_size, 0o755
            with source.open("rb") as content:
                tar.addfile(info, content)


def _download(shop: Workshop, file: File, target: Path) -> None:
    kept = at(shop.cache / "bundle" / ".downloads", file.url)
    expected = download.published_sha256(shop.upstream.at(file.published), target.name)
    if not (kept.exists() and download.file_sha256(kept) == expected):
        with step(f"{file.name} {file.version}", "downloading"):
            download.fetch(shop.upstream.at(file.url), expected, kept)
    place(kept, target)


def _binaries(module: Module, shop: Workshop) -> Mapping[str, Path]:
    return build.build(module, shop.lock.arch, shop.cache)


def _write_image(shop: Workshop, image: Image, layout: Path) -> None:
    base = [layers.layer(image.base, shop.lock.arch, shop.cache)] if image.base else []
    top = layout.with_suffix(".tar")
    if image.module:
        built = _binaries(image.module, shop)
        oci.write_layer(
            top,
            {
                path: source
                for name, place in {image.binary: image.path, **image.more}.items()
                for path, source in _files(place, built[name])
            },
        )
    config = oci.Config(
        arch=shop.lock.arch,
        entrypoint=(f"/{image.path}",) if image.path else (),
        command=image.command,
        user=image.user,
    )
    oci.write_image(layout, config, (*base, *([top] if image.module else [])))
    top.unlink(missing_ok=True)


def _files(place: str, source: Path) -> Iterator[tuple[str, Path]]:
    """Path in an image and file here: of a file itself, of a folder all in it."""
    if not source.is_dir():
        yield place, source
        return
    for found in sorted(source.rglob("*")):
        if found.is_file():
            yield f"{place}/{found.relative_to(source).as_posix()}", found


def _copy_upstream(shop: Workshop, image: Image, target: registry.Registry) -> str:
    host, _, path = image.ref.partition("/")
    at_host = shop.upstream.registry.rpartition("/")[2] or host
    plain = shop.upstream.registry.startswith("http://")
    with step(f"{image.name} {image.version}", "downloading"):
        source = f"docker://{at_host}/{path}"
        return target.copy(source, image.ref, shop.lock.arch, plain_http=plain)
