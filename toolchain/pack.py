"""Put engine, plugins and wheels into a bundle, for computers without a network.

    python -m toolchain.pack --into .local/bundle [--cloud aws ...]

The tool is what `make engine` would install here: official releases where they can be had, else
the engine as built here. It is made in the cache, under a key of all that it is made of, and
BUNDLE/tool becomes a link to it; `toolchain.unpack` says what is in it, and takes it apart.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from toolchain import distribution, releases, sbom, unpack
from toolchain.install import CLOUDS, PLUGINS, alone, used_clouds
from toolchain.progress import say

_ROOT = Path(__file__).resolve().parents[1]


def pack(cache: Path, clouds: Sequence[str]) -> Path:
    """The folder of the tool, made unless it is there; with plugins of these clouds.

    Those of clouds that a stack file names are in it where they can be had. Raises what
    distribution.ensure raises, and ReleaseError; UnreachableError for a plugin of `clouds`.
    """
    version = (_ROOT / ".pulumi.version").read_text(encoding="utf-8").strip()
    kept = cache / "engine"
    engine = distribution.ensure(version, kept, "auto")
    # Stand-ins are files of the checkout, and all that is used beside an engine that was built.
    usual = PLUGINS if engine.name.startswith("download-") else {}
    named = {name: CLOUDS[name] for name in sorted({*clouds, *used_clouds(_ROOT)})}
    archives = _plugins(kept, {**usual, **named}, clouds)
    fits = asdict(unpack.Fits.here())
    parts = [engine.name, *(path.name for path in archives)]
    key = hashlib.sha256(repr((fits, parts, sbom.NAME)).encode()).hexdigest()[:16]
    target = cache / "tool" / key
    if not (target / unpack.LIST).exists():
        say("tool", f"packing {', '.join(parts)} and the wheels of this Python")
        work = target.with_name(f".{key}.new")
        shutil.rmtree(work, ignore_errors=True)  # of a run that was killed
        shutil.copytree(engine, work / "engine" / engine.name)
        for archive in archives:
            shutil.copy(archive, work / "engine")
        _wheels(work / "wheels")
        (work / sbom.NAME).write_text(sbom.document(work), encoding="utf-8")
        listed = {"fits": fits, "files": unpack.sums(work)}
        (work / unpack.LIST).write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
        work.rename(target)
    digest = hashlib.sha256((target / unpack.LIST).read_bytes()).hexdigest()
    say("tool", f"complete; sha256sum {unpack.FOLDER}/{unpack.LIST} is {digest}")
    return target


def main(argv: Sequence[str] | None = None) -> int:
    """Pack, and link; 1 after an error, which is on stderr."""
    parser = argparse.ArgumentParser(prog="toolchain.pack", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--into", type=Path, required=True, help="the bundle")
    parser.add_argument("--cloud", choices=sorted(CLOUDS), action="append", default=[])
    given = parser.parse_args(argv)
    cache = unpack.cache_folder()
    try:
        with alone(cache / "engine"):
            made = pack(cache, given.cloud)
    except (distribution.BuildError, releases.ReleaseError, releases.UnreachableError) as error:
        print(f"ERROR bundle: {error}", file=sys.stderr)
        return 1
    new = given.into.resolve() / f".{unpack.FOLDER}.new"
    new.unlink(missing_ok=True)
    new.symlink_to(made)
    new.replace(new.with_name(unpack.FOLDER))
    return 0


def _plugins(kept: Path, wanted: Mapping[str, str], needed: Collection[str]) -> list[Path]:
    """Archives of those that can be had. Raises UnreachableError for one that is needed."""
    found = []
    for name, version in wanted.items():
        try:
            found.append(releases.kept(releases.plugin(name, version), kept))
        except releases.UnreachableError as error:
            if name in needed:
                raise
            say("tool", f"{name} {version} is left out ({error})")
    return found


def _wheels(folder: Path) -> None:
    """All that `make engine` installs, as wheels: nothing is built where they are used."""
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    lists = [word for name in unpack.REQUIREMENTS for word in ("-r", str(_ROOT / name))]
    done = subprocess.run([*words, "-w", str(folder), *lists], check=False)
    if done.returncode:
        raise releases.ReleaseError("pip could not get all wheels (see above): run it again")


if __name__ == "__main__":
    sys.exit(main())
