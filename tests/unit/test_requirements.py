"""What is installed: all of it with one file, and with another what a change plan needs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
# The commands of jobs that plan without an engine; what they import of other packages.
_LOADED = """
import sys
import operations.preview, operations.stack_list, stacks.__main__
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def pins(name: str) -> set[str]:
    """Lines `package==version`."""
    lines = (ROOT / name).read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def needed(packages: set[str]) -> set[str]:
    """These and all that they need, by name."""
    found: set[str] = set()
    left = set(packages)
    while left:
        name = left.pop()
        found.add(name)
        told = [text for text in metadata.requires(name) or [] if "extra ==" not in text]
        names = {_named(re.split(r"[^A-Za-z0-9_.-]", text)[0]) for text in told}
        left |= {each for each in names if each not in found and _is_here(each)}
    return found


def _named(package: str) -> str:
    """A package is found by any of its spellings."""
    return package.lower().replace("_", "-")


def _is_here(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def test_a_change_plan_has_the_same_pins() -> None:
    assert pins("requirements-plan.txt") <= pins("requirements.txt")


def test_the_package_takes_what_the_tests_run_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [Requirement(text) for text in (*project["dependencies"], *chain(*extras))]
    pinned = dict(line.split("==") for line in pins("requirements.txt"))
    assert {one.name for one in wanted} == set(pinned)
    assert [one.name for one in wanted if pinned[one.name] not in one.specifier] == []


def test_the_package_has_all_that_it_reads() -> None:
    """Whatever lies beside the modules is data, but what only writes the lock anew."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    given = {
        path
        for package, patterns in told["package-data"].items()
        for pattern in patterns
        for path in (ROOT / package).glob(pattern)
    }
    there = {
        path
        for package in told["package-data"]
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc"}
    }
    apart = {ROOT / "artifacts/build"}
    assert {path for path in there if not apart & set(path.parents)} == given


def test_a_change_plan_needs_no_more_than_its_own_file() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    owners = metadata.packages_distributions()
    loaded = {_named(owner) for name in done.stdout.split() for owner in owners.get(name, [])}
    known = needed({line.partition("==")[0] for line in pins("requirements-plan.txt")})
    assert "pydantic" in loaded
    assert loaded <= known | {"setuptools"}, loaded - known
