"""`python -m operations.chart NAME VERSION --repo URL`: fetch a Helm chart for a stack, once.

NAME may be oci://registry/path in place of a name and --repo. The packed chart goes into a folder
of the checkout, to be committed: plans and updates ask no repository. Prints the lines of a stack
file, with the chart's sum. Logins are helm's own (`helm registry login`).
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from operations.engine.engine import StackError
from stacks.cluster import charts

_LIMIT_S = 300


def main(arguments: list[str]) -> int:
    """1 after an error, which is on stderr."""
    parser = argparse.ArgumentParser(prog="python -m operations.chart", description=__doc__)
    parser.add_argument("name", help="of the chart, or oci://registry/path")
    parser.add_argument("version", help="of the chart, as 1.2.3")
    parser.add_argument("--repo", help="URL of its repository")
    parser.add_argument("--into", type=Path, default=Path("charts"), help="default: charts")
    given = parser.parse_args(arguments)
    try:
        file = fetch(given.name, given.version, given.repo, given.into)
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    print(lines(given.name.rpartition("/")[2], file), end="")
    return 0


def fetch(name: str, version: str, repo: str | None, into: Path) -> Path:
    """The packed chart in that folder. Raises StackError."""
    if name.startswith("oci://") == (repo is not None):
        raise StackError(
            f"{name}: is either oci://registry/path, or a name with --repo\n"
            "  do: make chart CHART=name REPO=https://..., or CHART=oci://..."
        )
    with tempfile.TemporaryDirectory(prefix="kube-ha-chart-") as folder:
        words = ["pull", name, "--version", version, "--destination", folder]
        _helm([*words, *(("--repo", repo) if repo else ())])
        found = sorted(Path(folder).glob("*.tgz"))
        if len(found) != 1:
            raise StackError(f"{name} {version}: helm brought {len(found)} files in place of one")
        return _kept(found[0], into)


def _helm(words: list[str]) -> None:
    program = charts.PROGRAM if charts.PROGRAM.exists() else shutil.which("helm")
    if program is None:
        raise StackError("this computer has no helm\n  do: make helm")
    try:
        done = subprocess.run(
            [str(program), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise StackError(f"helm {words[0]}: no answer within {_LIMIT_S} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise StackError(
            f"helm {words[0]}: {last.removeprefix('Error: ')}\n"
            "  do: see that this computer reaches the repository, and that it has this version"
        )


def _kept(file: Path, into: Path) -> Path:
    """One that is there already has to be the same: what a version is never changes."""
    target = into / file.name
    if target.exists() and target.read_bytes() != file.read_bytes():
        raise StackError(
            f"{target} is there, and the repository has something else under this version\n"
            "  do: find out why; to take the new one, delete that file first"
        )
    into.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)
    return target


def lines(name: str, file: Path) -> str:
    """What a stack file says of it."""
    total = hashlib.sha256(file.read_bytes()).hexdigest()
    return (
        "  kube-ha:addons:\n"
        f"    {name}:\n"
        "      chart:\n"
        f"        file: {file}\n"
        f"        sha256: {total}\n"
        f"        namespace: {name}\n"
        "        createNamespace: true\n"
        "        values: {}\n"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
