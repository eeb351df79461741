"""Texts use the words of the field, in docs, messages and comments alike."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml

IDIOMS = Path(__file__).with_name("idioms.yaml")
KNOWN = yaml.safe_load(IDIOMS.read_text())
SUFFIXES = (".md", ".py", ".sh", "Makefile")
# Texts of these are inputs of resources, being rewritten, or somebody else's.
LATER = (
    "components/machines/cloud_init.sh",
    "docs/reference/cis.md",
    "docs/reference/plan.md",
    "docs/reference/versions.md",
    "stacks/render/",
    "tests/",
)


@cache
def texts() -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    names = [
        name
        for name in listed.stdout.splitlines()
        if name.endswith(SUFFIXES) and not name.startswith(LATER)
    ]
    return {name: Path(name).read_text() for name in names if Path(name).exists()}


@pytest.mark.parametrize("idiom", KNOWN, ids=[idiom["say"] for idiom in KNOWN])
def test_no_text_has_a_private_idiom(idiom: dict[str, str]) -> None:
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}; say: {idiom['say']}"
        for name, text in texts().items()
        for match in re.finditer(idiom["not"], text)
    ]
    assert found == []
