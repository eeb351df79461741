"""Docs can be read: short lines and sentences, links and paths that are right, lists that are complete."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
import yaml

from stacks.catalogue import registry as catalogue
from stacks.checks import refusals
from stacks.cluster import firewall
from stacks.config import ports
from stacks.config.fields import Role
from stacks.load import load
from stacks.networks import registry as networks
from tests.unit import doc_previews
from tests.unit.configs import aws, gcp, lab, planned

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
COLUMNS, WORDS = 120, 35
# Pages of other projects, and of projects that tests make up.
ELSEWHERE = {"docs/install/clouds.md", "tests/unit/harness/test_ledger.py"}
# Lists of a line each, made by a program.
LISTS = {"docs/evidence.md", "docs/reference/config.md"}
# Texts in which a path of docs is a message, a comment or a link.
SUFFIXES = (".md", ".py", ".sh", ".yaml", ".yml", ".json", "Makefile")

_CODE = re.compile(r"^( *)(```|~~~).*?^\1\2[^\n]*$", re.MULTILINE | re.DOTALL)
_ASIDE = re.compile(r"<!--.*?-->|<[^>\n]+>", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)\)")
_INLINE = re.compile(r"`[^`]+`")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_END = re.compile(r"(?<=[.!?])[)*\"]*\s+(?=[A-Z`*(\[\"0-9])")


@cache
def tracked() -> tuple[str, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(
        name
        for name in listed.stdout.splitlines()
        if name.endswith(SUFFIXES) and (ROOT / name).is_file()
    )


PAGES = sorted(name for name in tracked() if name.endswith(".md"))


def prose(text: str) -> Iterator[str]:
    """Lines that are neither of a block of code nor of a table."""
    for line in _ASIDE.sub("", _CODE.sub("", text)).splitlines():
        yield "" if line.lstrip().startswith(("|", "#")) or line.startswith("    ") else line


def sentences(text: str) -> Iterator[str]:
    """Sentences of paragraphs and items; a link counts by its text, code as one word."""
    paragraph: list[str] = []
    for line in [*prose(text), ""]:
        if (not line.strip() or _ITEM.match(line)) and paragraph:
            yield from _END.split(" ".join(paragraph))
            paragraph = []
        if line.strip():
            paragraph.append(_INLINE.sub("`x`", _LINK.sub(r"\1", _ITEM.sub("", line))).strip())


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    plain = re.sub(r"[^\w\- ]", "", _LINK.sub(r"\1", heading).lower())
    return plain.strip().replace(" ", "-")


def anchors(page: Path) -> set[str]:
    lines = _CODE.sub("", page.read_text()).splitlines()
    return {slug(line.lstrip("#")) for line in lines if line.startswith("#")}


@pytest.mark.parametrize("name", PAGES)
def test_lines_and_sentences_of_a_page_are_short(name: str) -> None:
    text = (ROOT / name).read_text()
    wide = [line for line in prose(text) if len(line) > COLUMNS and name not in LISTS]
    long = [said for said in sentences(text) if len(said.split()) > WORDS]
    assert (wide, long) == ([], [])


@pytest.mark.parametrize("name", PAGES)
def test_links_of_a_page_have_their_targets_and_anchors(name: str) -> None:
    page = ROOT / name
    broken = []
    for found in _LINK.finditer(_CODE.sub("", page.read_text())):
        path, _, anchor = found[2].partition("#")
        if path.startswith(("http://", "https://", "mailto:")):
            continue
        target = (page.parent / path).resolve() if path else page
        missing = anchor and target.suffix == ".md" and target.is_file()
        if not target.exists() or (missing and anchor not in anchors(target)):
            broken.append(found[0])
    assert broken == []


def test_paths_of_docs_in_messages_and_comments_are_there() -> None:
    broken = [
        f"{name}: {found[0]}"
        for name in tracked()
        if name not in ELSEWHERE
        for found in re.finditer(r"(?<![\w/.-])docs/[\w./-]+\.(?:md|json)\b", _text(name))
        if not (ROOT / found[0]).is_file()
    ]
    assert broken == []


def _text(name: str) -> str:
    return (ROOT / name).read_text()


def test_every_page_is_in_the_index() -> None:
    index = DOCS / "README.md"
    linked = {
        (DOCS / found[2].partition("#")[0]).resolve() for found in _LINK.finditer(index.read_text())
    }
    # backup.md only says where that page is now.
    pages = {page for page in DOCS.rglob("*.md") if page not in (index, DOCS / "backup.md")}
    assert sorted(str(page) for page in pages - linked) == []


def test_every_refusal_is_explained() -> None:
    page = (DOCS / "reference/refusals.md").read_text()
    listed = re.findall(r"^\| `([a-z-]+)(?:/[^`]*)?` \|", page, re.MULTILINE)
    assert sorted(set(listed)) == sorted({*refusals.ALLOWABLE, *refusals.NEVER})


@pytest.mark.parametrize(
    "path",
    [page for page in DOCS.rglob("*.md") if "<!-- preview:" in page.read_text()],
    ids=lambda path: path.name,
)
def test_previews_of_a_page_are_what_is_printed(path: Path) -> None:
    """`python -m tests.unit.doc_previews` writes them again."""
    assert path.read_text() == doc_previews.text(path.read_text())


PARTS = ("When", "Edit", "What the preview shows", "What happens", "Undo", "If it fails")
EDITS = [
    *("add-ons", "back-up-and-restore", "change", "compromised", "drift", "maintenance"),
    *("remove-a-cluster", "replace-a-node", "rotate", "upgrade", "users"),
]


@pytest.mark.parametrize("name", EDITS)
def test_a_page_of_an_edit_has_its_parts_in_order(name: str) -> None:
    page = (DOCS / f"operate/{name}.md").read_text()
    headings = re.findall(r"^## (.*)$", _CODE.sub("", page), re.MULTILINE)
    assert [heading for heading in headings if heading in PARTS] == list(PARTS)


def test_ports_are_those_that_machines_listen_on_and_clouds_let_through() -> None:
    page = (DOCS / "reference/ports.md").read_text()
    listed = set(re.findall(r"^\| (\d+) \|", page, re.MULTILINE))
    known = {*ports.of_roles(get_args(Role))}
    for network in networks.NETWORKS.values():
        known |= {*network.LOCAL_PORTS, *network.MASTER_LOCAL_PORTS}
    for entry in catalogue.ENTRIES.values():
        known |= {*entry.LOCAL_PORTS}
    assert listed == {str(port) for port in known}
    for wanted in (gcp(), gcp({"frontDoors.etcd": {"pools": ["worker"]}}), aws()):
        for rule in firewall.rules(planned(wanted)):
            [row] = [
                row
                for row in page.splitlines()
                if row.startswith("|") and f"`{rule.name}`" in row.split("|")[1]
            ]
            if rule.ports:
                first, last = rule.ports
                span = f"{first}" if first == last else f"{first}-{last}"
                assert f"| {span}" in row, rule


_YAML = re.compile(r"^ *```yaml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
BASE = {
    "pools.worker": {"roles": ["worker"], "count": 7, "zones": ["a", "b"]},
    "pools.batch": {"roles": ["worker"], "count": 1, "addressOffset": 200},
}
SHOWN = [name for name in PAGES if "kube-ha:" in "".join(_YAML.findall((ROOT / name).read_text()))]


@pytest.mark.parametrize("name", SHOWN)
def test_configs_that_a_page_shows_are_taken(name: str) -> None:
    """A block leaves out what one before it on the page says, or what a cluster of the lab has."""
    known: dict[str, object] = lab(BASE)
    for block in _YAML.findall((ROOT / name).read_text()):
        if "kube-ha:" in block:
            shown = yaml.safe_load(block.replace("...", "x"))
            # A program in YAML, in place of a stack file: sections are the properties of a resource.
            made = [one["properties"] for one in shown.get("resources", {}).values()]
            config = made[0] if made else shown["config"]
            known |= {key.removeprefix("kube-ha:"): value for key, value in config.items()}
            load(known, read_keys=False)
