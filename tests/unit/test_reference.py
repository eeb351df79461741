"""The schema for editors and docs/config.md are those of the model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from stacks import reference, schema
from tests.unit.test_stack_files import FILES


def test_schema_and_docs_are_not_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert reference.main(["--check"]) == 0, capsys.readouterr().err


def test_a_stale_file_is_named_and_then_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    monkeypatch.setattr(reference, "TABLES", tmp_path / "config.md")
    monkeypatch.setattr(reference, "SCHEMA", tmp_path / "stack.schema.json")
    monkeypatch.setattr(reference, "VERSIONS", tmp_path / "versions.md")
    assert reference.main(["--check"]) == 1
    assert capsys.readouterr().err == (
        "stack.schema.json is stale; run `python -m stacks.reference`\n"
        "config.md is stale; run `python -m stacks.reference`\n"
        "versions.md is stale; run `python -m stacks.reference`\n"
    )
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0


def fields(value: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    if isinstance(value, Mapping):
        properties = value.get("properties")
        if isinstance(properties, Mapping):
            yield from properties.items()
        for item in value.values():
            yield from fields(item)


def test_every_field_has_a_description() -> None:
    made = schema.stack_schema()
    without = [name for name, entry in fields(made["$defs"]) if not entry.get("description")]
    assert without == []


def test_every_field_of_the_schema_is_in_the_docs() -> None:
    made = schema.stack_schema()
    text = reference.TABLES.read_text()
    assert [name for name, _ in fields(made["$defs"]) if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_stack_files_name_the_schema_for_editors(file: Path) -> None:
    first = file.read_text().splitlines()[0]
    named = re.fullmatch(r"# yaml-language-server: \$schema=(.+)", first)
    assert named
    assert (file.parent / named[1]).resolve() == reference.SCHEMA
