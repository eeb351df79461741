"""The engine, by download or from its published Go module, in the cache."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Literal

from toolchain import releases
from toolchain.progress import say

Source = Literal["auto", "download", "build"]

_MODULE = Path(__file__).with_name("engine")
_PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
_SDK = "github.com/pulumi/pulumi/sdk/v3"
_SCRIPTS = ("python/cmd/pulumi-language-python-exec", "python/dist/pulumi-resource-pulumi-python")
_DISTRIBUTED = (
    *("pulumi", "pulumi-language-python", "pulumi-language-python-exec"),
    "pulumi-resource-pulumi-python",
)


class BuildError(Exception):
    """The engine cannot be built here; the text says what to do."""


def ensure(version: str, cache: Path, source: Source) -> Path:
    """A folder of the cache with the engine's programs; made if it is not there.

    A downloaded one holds the official language host too, a built one does not. What is cached is
    not asked for again. Raises BuildError, releases.ReleaseError, or releases.UnreachableError if
    only a download would do.
    """
    folders = {"download": _key("download", version), "build": _key("build", version)}
    for way in ("download", "build") if source == "auto" else (source,):
        if (found := cache / folders[way]).is_dir():
            return found
    if source != "build":
        try:
            return _download(version, cache / folders["download"])
        except releases.UnreachableError as error:
            if source == "download":
                raise
            say("engine", f"releases cannot be reached ({error})")
    return _build(version, cache / folders["build"])


def go_environment(cache: Path) -> dict[str, str]:
    """The environment of every Go build: caches of kube-ha, no C, only the compiler installed."""
    own = {
        "GOCACHE": str(cache / "go-build"),
        "GOMODCACHE": str(cache / "go-mod"),
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "",
        "GOWORK": "off",
    }
    return {**os.environ, **own}


def _key(way: str, version: str) -> str:
    """Name of the cached folder: changes with everything that decides its content."""
    digest = hashlib.sha256()
    if way == "build":
        for name in ("go.mod", "go.sum", "tools.go"):
            digest.update((_MODULE / name).read_bytes())
        digest.update(" ".join(_flags(version)).encode())
    return f"{way}-{version}-{sys.platform}-{platform.machine()}-{digest.hexdigest()[:12]}"


def _flags(version: str) -> list[str]:
    stamp = f"-X {_SDK}/go/common/version.Version=v{version}"
    return ["-trimpath", "-ldflags", f"-s -w {stamp}"]


def _download(version: str, target: Path) -> Path:
    release = releases.engine(version)
    wanted = releases.published_sum(release)
    say("engine", f"pulumi {version}: downloading {release.url(release.file)}")
    start = time.monotonic()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        unpacked = Path(folder) / "unpacked"
        with tarfile.open(releases.fetch(release, wanted, Path(folder))) as archive:
            archive.extractall(unpacked, filter="data")
        made = Path(folder) / "made"
        made.mkdir()
        for name in _DISTRIBUTED:
            shutil.move(unpacked / "pulumi" / name, made / name)
        made.rename(target)
    say("engine", f"pulumi {version}: downloaded in {time.monotonic() - start:.0f} s")
    return target


def _build(version: str, target: Path) -> Path:
    if shutil.which("go") is None:
        message = (
            "the engine can neither be downloaded nor built: there is no Go compiler. "
            "Install Go 1.26 or newer, or let this computer reach github.com; "
            "then run make setup again."
        )
        raise BuildError(message)
    say("engine", f"pulumi {version}: building (one binary, about 4 min cold on 2 cores)")
    start = time.monotonic()
    target.parent.mkdir(parents=True, exist_ok=True)
    environment = go_environment(target.parent.parent)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / "made"
        made.mkdir()
        go(_MODULE, ["build", *_flags(version), "-o", str(made / "pulumi"), _PACKAGE], environment)
        sdk = Path(go(_MODULE, ["list", "-m", "-f", "{{.Dir}}", _SDK], environment).strip())
        for script in _SCRIPTS:
            shutil.copy(sdk / script, made)
            (made / Path(script).name).chmod(0o755)
        made.rename(target)
    say("engine", f"pulumi {version}: built in {time.monotonic() - start:.0f} s")
    return target


def go(module: Path, words: list[str], environment: dict[str, str]) -> str:
    """Run the Go command in the folder of a module; BuildError has what it printed last."""
    done = subprocess.run(
        ["go", *words], cwd=module, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        message = (
            f"go {words[0]} failed in {module}:\n{done.stderr[-4000:]}\n"
            "If modules could not be fetched, check the network and GOPROXY; "
            "then run the same again."
        )
        raise BuildError(message)
    return done.stdout
