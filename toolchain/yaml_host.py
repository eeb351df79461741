"""The language host of Pulumi YAML, for tests: a program in another language than this project's.

Run as `python -m toolchain.yaml_host`. It takes the program out of the engine's official release,
or builds it from its published Go module, and keeps it in the cache. Nobody needs it to run a
stack of this project.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from toolchain import distribution, releases, unpack
from toolchain.install import alone
from toolchain.progress import say

NAME = "pulumi-language-yaml"
VERSION = "1.25.0"

_ROOT = Path(__file__).resolve().parents[1]
_MODULE = Path(__file__).with_name("yaml")
_REPOSITORY = "github.com/pulumi/pulumi-yaml"
_FLAGS = ("-trimpath", "-ldflags", f"-s -w -X {_REPOSITORY}/pkg/version.Version=v{VERSION}")


def found(cache: Path) -> Path | None:
    """The folder of the cache with the program alone in it, if it was made."""
    folders = [cache / "engine" / name for name in (_downloaded(), _built())]
    return next((folder for folder in folders if folder.is_dir()), None)


def ensure(cache: Path) -> Path:
    """The same, made if it is not there. Raises BuildError, or ReleaseError."""
    if (folder := found(cache)) is not None:
        return folder
    kept = cache / "engine"
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept) as unfinished:
        made = Path(unfinished) / "made"
        made.mkdir()
        try:
            _download(made)
            target = kept / _downloaded()
        except releases.UnreachableError as error:
            _build(made, cache, why=str(error))
            target = kept / _built()
        return made.rename(target)


def main() -> None:
    """Make it, or say in one line what is in the way."""
    cache = unpack.cache_folder()
    try:
        with alone(cache / "engine"):
            ensure(cache)
    except (distribution.BuildError, releases.ReleaseError) as error:
        print(f"toolchain: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def _download(made: Path) -> None:
    release = releases.engine(_engine())
    wanted = releases.published_sum(release)
    say("engine", f"{NAME}: downloading {release.url(release.file)}")
    with tarfile.open(releases.fetch(release, wanted, made.parent)) as archive:
        archive.extract(f"pulumi/{NAME}", made.parent, filter="data")
    shutil.move(made.parent / "pulumi" / NAME, made / NAME)


def _build(made: Path, cache: Path, *, why: str) -> None:
    if shutil.which("go") is None:
        raise distribution.BuildError(f"{NAME} cannot be built, there is no Go compiler ({why})")
    say("engine", f"{NAME} {VERSION}: building (one binary, 1 to 2 min cold on 2 cores)")
    start = time.monotonic()
    words = ["build", *_FLAGS, "-o", str(made / NAME), f"{_REPOSITORY}/cmd/{NAME}"]
    distribution.go(_MODULE, words, distribution.go_environment(cache))
    say("engine", f"{NAME} {VERSION}: built in {time.monotonic() - start:.0f} s")


def _engine() -> str:
    return (_ROOT / ".pulumi.version").read_text(encoding="utf-8").strip()


def _downloaded() -> str:
    return f"yaml-download-{_engine()}-{_system()}"


def _built() -> str:
    """Changes with everything that decides the program."""
    digest = hashlib.sha256(" ".join(_FLAGS).encode())
    for name in ("go.mod", "go.sum", "tools.go"):
        digest.update((_MODULE / name).read_bytes())
    return f"yaml-build-{VERSION}-{_system()}-{digest.hexdigest()[:12]}"


def _system() -> str:
    return f"{sys.platform}-{platform.machine()}"


if __name__ == "__main__":
    main()
