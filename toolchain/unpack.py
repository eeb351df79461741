"""Take engine, plugins and wheels out of a bundle that was carried to a computer without a network.

    python3 -m toolchain.unpack BUNDLE

compares every file of BUNDLE/tool with the list beside it, puts engine and plugins where a download
would have put them, and prints the folder of the wheels. It runs before anything is installed, so
it needs nothing but Python. `toolchain.pack` makes that folder:

    tool/manifest.json   what the rest is for, and SHA-256 of every file of it
    tool/engine/         as in the cache: a folder of the engine's programs, archives of plugins
    tool/wheels/         the packages that `make engine` installs
    tool/sbom.cdx.json   the bill of materials of these

    KUBE_HA_CACHE        cache, default ~/.cache/kube-ha
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = "tool"
LIST = "manifest.json"

_ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ("requirements.txt", "requirements-dev.txt", "toolchain/requirements.txt")
"""What `make engine` installs."""
_DECIDING = (
    *REQUIREMENTS,
    *("requirements-plan.txt", ".pulumi.version"),
    *(f"toolchain/engine/{name}" for name in ("go.mod", "go.sum", "tools.go")),
)


class PackedError(Exception):
    """The tool of a bundle cannot be used here; the text has every reason and what to do."""


@dataclass(frozen=True, slots=True)
class Fits:
    """Where a tool works: wheels and programs are of one Python, system and set of versions."""

    python: str
    system: str
    versions: str

    @classmethod
    def here(cls) -> Fits:
        """With this Python, on this computer, in this checkout."""
        digest = hashlib.sha256()
        for name in _DECIDING:
            digest.update((_ROOT / name).read_bytes())
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        return cls(python, f"{sys.platform}-{platform.machine()}", digest.hexdigest()[:16])


def cache_folder() -> Path:
    """$KUBE_HA_CACHE, or kube-ha in the user's cache folder."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("KUBE_HA_CACHE") or user / "kube-ha").resolve()


def sums(tool: Path) -> dict[str, str]:
    """SHA-256 of every file by its path in the folder, sorted; the list itself is left out."""
    files = sorted(path for path in tool.rglob("*") if path.is_file())
    found = {str(path.relative_to(tool)): path for path in files}
    found.pop(LIST, None)
    return {name: _sha256(path) for name, path in found.items()}


def unpack(tool: Path, cache: Path) -> Path:
    """Fill the cache's folder of engines; the folder of wheels. Raises PackedError."""
    told = _read(tool)
    if problems := [*_misfits(told), *_damage(told, tool)]:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise PackedError(f"{tool} cannot be used:\n{lines}")
    kept = cache / "engine"
    kept.mkdir(parents=True, exist_ok=True)
    for entry in sorted((tool / "engine").iterdir()):
        if not (kept / entry.name).exists():
            _put(entry, kept)
    return (tool / "wheels").resolve()


def main() -> int:
    """Unpack; 1 after an error, which is on stderr."""
    try:
        print(unpack(Path(sys.argv[1]) / FOLDER, cache_folder()))
    except PackedError as error:
        print(f"ERROR bundle: {error}", file=sys.stderr)
        return 1
    return 0


def _read(tool: Path) -> Mapping[str, Mapping[str, str]]:
    try:
        told = json.loads((tool / LIST).read_bytes())
        return {part: {str(k): str(v) for k, v in told[part].items()} for part in ("fits", "files")}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise PackedError(
            f"{tool / LIST} cannot be read ({error}): carry what `make bundle` made, with `tool`"
        ) from None


def _misfits(told: Mapping[str, Mapping[str, str]]) -> list[str]:
    what = {
        "python": "make the bundle with the Python minor version of this computer",
        "system": "make the bundle on a computer of this kind",
        "versions": "carry the checkout that made the bundle, or make the bundle again",
    }
    here = asdict(Fits.here())
    return [
        f"it is for {name} {told['fits'].get(name)}, here is {here[name]}: {todo}"
        for name, todo in what.items()
        if told["fits"].get(name) != here[name]
    ]


def _damage(told: Mapping[str, Mapping[str, str]], tool: Path) -> list[str]:
    """Files that differ from the list: pip would take any wheel of that folder."""
    wanted, found = told["files"], sums(tool)
    reasons = {
        **{name: "is missing" for name in wanted.keys() - found.keys()},
        **{name: f"is not in {LIST}" for name in found.keys() - wanted.keys()},
        **{
            name: f"has SHA-256 {found[name]}, {LIST} says {wanted[name]}"
            for name in wanted.keys() & found.keys()
            if wanted[name] != found[name]
        },
    }
    return [f"{name} {reason}: carry it again" for name, reason in sorted(reasons.items())]


def _put(entry: Path, folder: Path) -> None:
    """Copy a file or a folder of programs into `folder`: whole, or not at all."""
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        new = Path(unfinished) / entry.name
        if entry.is_dir():
            shutil.copytree(entry, new)
            for program in new.iterdir():
                program.chmod(0o755)  # lost on some file systems
        else:
            shutil.copy(entry, new)
        new.rename(folder / entry.name)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
