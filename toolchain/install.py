"""Put the toolchain in place: engine, language host, and the plugins for commands and certificates.

Run as `python -m toolchain.install` with the Python of the virtual environment. Official
releases are used where they can be reached; else the engine is built from its published Go module,
and small stand-ins take the places of language host and plugins. A stand-in never replaces an
official program. What was made once is kept: the second run changes nothing and asks nobody;
`--source download` puts official releases in the place of what was built.

    --into DIR       where bin/ and pulumi/ (PULUMI_HOME) are made, default .local of this checkout
    --source WAY     auto (default), download (official or fail), build (never ask for releases)
    KUBE_HA_CACHE          cache, default ~/.cache/kube-ha
    KUBE_HA_RELEASES_URL   server that holds the releases in the layout of github.com
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from toolchain import distribution, releases, standins, unpack
from toolchain.progress import say

_ROOT = Path(__file__).resolve().parents[1]

PLUGINS = {"command": "1.2.1", "tls": "5.6.2"}
"""Resource plugins of the lab and their versions, which are those of the Python packages."""
CLOUDS = {"gcp": "10.2.0", "aws": "7.51.1", "hcloud": "1.43.3"}
"""Those of clouds: some hundred MB, so only for stacks that name them. There is no stand-in."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the toolchain goes."""

    folder: Path
    cache: Path
    source: distribution.Source

    @property
    def bin(self) -> Path:
        """First on PATH."""
        return self.folder / "bin"

    @property
    def home(self) -> Path:
        """PULUMI_HOME."""
        return self.folder / "pulumi"

    def plugin(self, name: str, version: str) -> Path:
        """The program of an installed resource plugin."""
        folder = self.home / "plugins" / f"resource-{name}-v{version}"
        return folder / f"pulumi-resource-{name}"


def main() -> None:
    """Install, or say in one line what is in the way."""
    place = _arguments()
    version = (_ROOT / ".pulumi.version").read_text(encoding="utf-8").strip()
    try:
        with alone(place.cache / "engine"):
            install(place, version)
    except (distribution.BuildError, releases.ReleaseError, releases.UnreachableError) as error:
        print(f"toolchain: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def install(place: Place, version: str) -> None:
    """Make bin/ and pulumi/ complete. Raises what distribution.ensure raises, and ReleaseError."""
    place.bin.mkdir(parents=True, exist_ok=True)
    place.home.mkdir(parents=True, exist_ok=True)
    programs = distribution.ensure(version, place.cache / "engine", place.source)
    for program in sorted(programs.iterdir()):
        _put(program, place.bin / program.name)
    host = _language_host(place)
    way = programs.name.partition("-")[0]
    used = {
        name: _plugin(place, name, known, download=way == "download")
        for name, known in PLUGINS.items()
    }
    told = [f"engine {version} ({way})", f"language host {host}"]
    told += [f"{name} {PLUGINS[name]} {kind}" for name, kind in used.items()]
    told += [f"{name} {CLOUDS[name]} {_cloud(place, name)}" for name in used_clouds(_ROOT)]
    say("plugins", ", ".join(told))


def used_clouds(root: Path) -> list[str]:
    """Clouds that a stack file of the folder names, sorted."""
    files = root.glob("Pulumi.*.yaml")
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    told = re.findall(r"^[^#\n]*provider: *[\"']?([a-z]+)", "\n".join(lines), re.MULTILINE)
    return sorted(set(told) & set(CLOUDS))


def _cloud(place: Place, name: str) -> str:
    """Make sure that a cloud's plugin is installed; `official`, or why there is none."""
    version = CLOUDS[name]
    if standins.is_official(place.plugin(name, version)):
        return "official"
    if place.source == "build":
        return "missing: its stacks can be planned, not applied"
    try:
        _pulumi(place, name, version, _archive(place, name, version))
    except releases.UnreachableError as error:
        return f"missing: its stacks can be planned, not applied ({error})"
    return "official"


def _language_host(place: Place) -> str:
    """Make sure that there is one; `official` or `stand-in`."""
    path = place.bin / "pulumi-language-python"
    if standins.is_official(path):
        return "official"
    runner = place.bin / "pulumi-language-python-exec"
    statement = "from toolchain.language_host import main; main(sys.argv[1:])"
    standins.put_script(path, standins.launcher(statement, "--runner", str(runner)))
    return "stand-in"


def _plugin(place: Place, name: str, version: str, *, download: bool) -> str:
    """Make sure that one is installed; `official` or `stand-in`."""
    program = place.plugin(name, version)
    if standins.is_official(program):
        return "official"
    if download:
        try:
            _pulumi(place, name, version, _archive(place, name, version))
        except releases.UnreachableError as error:
            if place.source == "download":
                raise
            say("plugins", f"{name} {version}: a stand-in takes its place ({error})")
        else:
            return "official"
    standins.install_libraries()
    script = standins.launcher(f"from toolchain.{name}.plugin import main; main()")
    if not program.is_file() or program.read_text(encoding="utf-8") != script:
        with tempfile.TemporaryDirectory() as folder:
            standins.put_script(Path(folder) / program.name, script)
            _pulumi(place, name, version, Path(folder))
    return "stand-in"


def _archive(place: Place, name: str, version: str) -> Path:
    """The official plugin's archive, from the cache or from its makers, verified."""
    return releases.kept(releases.plugin(name, version), place.cache / "engine")


def _pulumi(place: Place, name: str, version: str, source: Path) -> None:
    """Let the engine install a plugin from an archive or a folder."""
    words = [str(place.bin / "pulumi"), "plugin", "install", "resource", name, f"v{version}"]
    words += ["--reinstall", "--file", str(source)]
    environment = {
        **os.environ,
        "PULUMI_HOME": str(place.home),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PATH": f"{place.bin}:{os.environ.get('PATH', '')}",
    }
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}"
        raise releases.ReleaseError(message)


def _put(source: Path, path: Path) -> None:
    """Make `path` the same file as `source`, or a copy where that cannot be.

    Not a symbolic link: the engine warns of a language host that is not beside its own,
    resolved, path.
    """
    wanted = source.stat()
    if path.is_file() and not path.is_symlink():
        found = path.stat()
        if (found.st_size, found.st_mtime_ns) == (wanted.st_size, wanted.st_mtime_ns):
            return
    path.unlink(missing_ok=True)
    try:
        path.hardlink_to(source)
    except OSError:
        shutil.copy2(source, path)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the cache, so that two set-ups at once do the work once."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _arguments() -> Place:
    parser = argparse.ArgumentParser(prog="toolchain.install", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--into", type=Path, default=_ROOT / ".local")
    parser.add_argument("--source", choices=get_args(distribution.Source), default="auto")
    given = parser.parse_args()
    return Place(given.into.resolve(), unpack.cache_folder(), given.source)


if __name__ == "__main__":
    main()
