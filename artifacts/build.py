"""Build binaries from pinned Go modules; a module that did not change is not built again."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from artifacts.lock import Module
from artifacts.progress import say, step

HEARTBEAT_S = 60
# Every Go build of this product uses these, so that all of them share one cache.
_FLAGS = ("-trimpath", "-buildvcs=false")
_HOST = {"x86_64": "amd64", "aarch64": "arm64"}


class BuildError(RuntimeError):
    """A module did not build; the text holds the end of the compiler's output."""


def host_arch() -> str:
    """This computer's architecture in Go's words."""
    machine = platform.machine()
    return _HOST.get(machine, machine)


def build(module: Module, arch: str, cache: Path) -> Mapping[str, Path]:
    """All binaries of `module`, and its folders of sources, by name. Raises BuildError."""
    done = cache / "built" / f"{module.name}-{module.version}-{arch}-{key(module)}"
    if not done.is_dir():
        _check(module, arch)
        done.parent.mkdir(parents=True, exist_ok=True)
        note = f"building ({module.binaries} binaries, about {_minutes(module.cold_s)} cold)"
        with (
            step(f"{module.name} {module.version}", note),
            tempfile.TemporaryDirectory(dir=done.parent, prefix=".") as work,
        ):
            out = Path(work) / "out"
            out.mkdir()
            _go_build(module, arch, cache, out)
            for made, wanted in module.rename.items():
                (out / made).rename(out / wanted)
            for name, folder in module.sources.items():
                shutil.copytree(cache / "go-mod" / folder, out / name)
            out.rename(done)
    return {path.name: path for path in sorted(done.iterdir())}


def key(module: Module) -> str:
    """Hash of all that decides what comes out, the compiler's own version left aside.

    Another compiler builds the same programs; that is not a reason to build them again.
    """
    digest = hashlib.sha256(repr((module.packages, module.ldflags, module.tags, _FLAGS)).encode())
    digest.update(repr((module.cgo, sorted(module.rename.items()))).encode())
    for more in (module.sources, module.tests):
        if more:
            digest.update(repr(sorted(more.items())).encode())
    for path in sorted(module.folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(module.folder).as_posix()
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _check(module: Module, arch: str) -> None:
    if shutil.which("go") is None:
        raise BuildError(
            f"{module.name}: upstream cannot be reached, and there is no Go to build it with\n"
            "  do: install Go (https://go.dev/doc/install), or give a --mirror"
        )
    if module.cgo and arch != host_arch():
        raise BuildError(
            f"{module.name}: is partly C and can only be built on {arch}, this is {host_arch()}\n"
            f"  do: make the bundle on a computer of {arch}, or where downloads are possible"
        )


def _go_build(module: Module, arch: str, cache: Path, out: Path) -> None:
    flags = [*_FLAGS, "-ldflags", f"-s -w {module.ldflags}".strip()]
    if module.tags:
        flags += ["-tags", module.tags]
    commands = [["go", "build", *flags, "-o", f"{out}/", *module.packages]]
    for name, package in module.tests.items():
        # Upstream has vetted its own tests, for minutes.
        commands.append(["go", "test", "-c", "-vet=off", *flags, "-o", str(out / name), package])
    log = cache / "built" / f"{module.name}.log"
    log.unlink(missing_ok=True)
    for command in commands:
        with log.open("a") as output:
            output.write(f"+ cd {module.folder} && {shlex.join(command)}\n")
            output.flush()
            status = _wait(module, command, _environment(module, arch, cache), output.fileno())
        if status != 0:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
            raise BuildError(
                f"{module.name} {module.version}: go {command[1]} ended with {status}:\n{tail}\n"
                f"  do: read {log}; modules come through GOPROXY, is it reachable?"
            )


def _wait(module: Module, command: list[str], environment: dict[str, str], output: int) -> int:
    minutes = 0
    with subprocess.Popen(
        command, cwd=module.folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
        stderr=output,
    ) as process:  # fmt: skip
        while True:
            try:
                return process.wait(timeout=HEARTBEAT_S)
            except subprocess.TimeoutExpired:
                minutes += 1
                say(f"{module.name} {module.version}: still building, {minutes} min so far")
            except BaseException:
                process.terminate()  # ^C: no compiler continues in the background
                raise


def _environment(module: Module, arch: str, cache: Path) -> dict[str, str]:
    return os.environ | {
        "GOCACHE": str(cache / "go-build"),
        "GOMODCACHE": str(cache / "go-mod"),
        "GOTOOLCHAIN": "local",
        # What go.mod and go.sum pin, or a failure; and a module cache that rm -rf can remove.
        "GOFLAGS": "-mod=readonly -modcacherw",
        "GOWORK": "off",
        "GOOS": "linux",
        "GOARCH": arch,
        "CGO_ENABLED": "1" if module.cgo else "0",
    }


def _minutes(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds / 60:.0f} min"
