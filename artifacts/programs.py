"""Programs of the lock for this computer: out of a bundle that holds them, downloaded, or built."""

from __future__ import annotations

import dataclasses
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from artifacts import build, contents, pins, sources
from artifacts.download import Upstream, fetch, file_sha256, published_sha256
from artifacts.lock import File, Lock
from artifacts.progress import step


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where programs may come from, the first that has one, and where they are kept."""

    bundle: Path  # of any content; need not be there
    upstream: Upstream
    cache: Path


def of(lock: Lock, names: Sequence[str], places: Places) -> Mapping[str, Path]:
    """The programs in these files of `lock`, by name. Raises DownloadError, BuildError, PinError.

    Where neither a bundle nor upstream has them they are built.
    """
    files = [file for file in lock.files if file.name in names]
    return {name: path for file in files for name, path in _programs(file, lock, places).items()}


def _programs(file: File, lock: Lock, places: Places) -> Mapping[str, Path]:
    kept = places.cache / "programs" / f"{file.name}-{file.version}-{lock.arch}"
    if not kept.is_dir():
        there = contents.at(places.bundle / "files", file.url)
        if not there.exists():
            alone = dataclasses.replace(lock, files=(file,), images=())
            if sources.origins(alone, "auto", places.upstream)[file.name] == "built":
                made = build.build(file.module, lock.arch, places.cache)
                return {name: made[name] for name in _wanted(file)}
            there = _downloaded(file, places)
        _keep(file, there, kept)
    return {name: kept / name for name in _wanted(file)}


def _wanted(file: File) -> Mapping[str, str]:
    """Path in a tarball by name; empty for a plain program."""
    return file.members or {file.binary: ""}


def _downloaded(file: File, places: Places) -> Path:
    target = contents.at(places.cache / "programs" / ".downloads", file.url)
    expected = published_sha256(places.upstream.at(file.published), target.name)
    pins.compare(pins.read(), pins.Pins(files={file.url: expected}))
    if not (target.exists() and file_sha256(target) == expected):
        with step(f"{file.name} {file.version}", "downloading"):
            fetch(places.upstream.at(file.url), expected, target)
    return target


def _keep(file: File, source: Path, kept: Path) -> None:
    """Make the folder `kept`, at once and whole."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".") as work:
        out = Path(work) / "out"
        out.mkdir()
        if file.members:
            _unpack(source, file.members, out)
        else:
            shutil.copyfile(source, out / file.binary)
        for program in out.iterdir():
            program.chmod(0o755)
        out.rename(kept)


def _unpack(source: Path, members: Mapping[str, str], out: Path) -> None:
    with tarfile.open(source) as tar:
        for name, path in members.items():
            content = tar.extractfile(path)
            if content is None:
                raise KeyError(f"{source}: {path} is not a file")
            with content, (out / name).open("wb") as target:
                shutil.copyfileobj(content, target)
