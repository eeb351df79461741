"""Commands that pages show are there; those of the README's first steps are the ones that stories run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.unit.test_docs import PAGES, ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
# Words in capitals of recipes: the variables that they read.
_RECIPES = "\n".join(line for line in MAKEFILE.splitlines() if line.startswith("\t"))
VARIABLES = set(re.findall(r"\b[A-Z][A-Z_]+\b", _RECIPES)) | {"STACK", "KUBE_HA_CACHE"}
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_MAKE = re.compile(
    r"(?:^|[`&;(] ?)make ((?:[a-z0-9-]+|[A-Z_]+=\S+)(?: [A-Z_]+=\S+)*)", re.MULTILINE
)


def lines(page: Path) -> list[str]:
    """Of the page's shell blocks, without comments."""
    text = "\n".join(_BLOCK.findall(page.read_text()))
    return [line for row in text.splitlines() if (line := re.sub(r"\s+#.*", "", row).strip())]


def made(name: str) -> Iterator[tuple[str, list[str]]]:
    """Target and names of variables of each call of make on a page."""
    code = "\n".join(_CODE.findall((ROOT / name).read_text()))
    for call in _MAKE.findall(code):
        words = call.split()
        targets = [word for word in words if "=" not in word]
        yield (targets or ["help"])[0], [word.partition("=")[0] for word in words if "=" in word]


def test_calls_of_make_are_found() -> None:
    calls = [*chain.from_iterable(made(name) for name in PAGES)]
    assert len(calls) > 100
    assert ("ssh", ["STACK", "NODE"]) in calls


@pytest.mark.parametrize("name", PAGES)
def test_targets_and_variables_that_a_page_names_are_in_the_makefile(name: str) -> None:
    calls = [*made(name)]
    assert [target for target, _ in calls if target not in TARGETS] == []
    assert {word for _, words in calls for word in words} - VARIABLES == set()


def test_the_first_steps_of_the_readme_are_those_of_the_install_page() -> None:
    """tests/e2e/test_day_one.py runs the page's."""
    page = lines(ROOT / "docs/install/your-machines.md")
    own = [line for line in lines(ROOT / "README.md") if "mycluster" in line or "engine" in line]
    assert len(own) > 6
    assert [line for line in own if line not in page] == []
    assert [page.index(line) for line in own] == sorted(page.index(line) for line in own)
