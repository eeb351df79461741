"""The schema for editors and docs/reference/config.md are those of the model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from stacks import reference
from stacks.config import schema
from stacks.config.charts import ChartSpec
from stacks.load import load
from tests.unit.config.test_stack_files import FILES
from tests.unit.configs import adopted, lab


def test_schema_and_docs_are_not_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert reference.main(["--check"]) == 0, capsys.readouterr().err


def test_a_stale_file_is_named_and_then_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    monkeypatch.setattr(reference, "TABLES", tmp_path / "config.md")
    monkeypatch.setattr(reference, "SCHEMA", tmp_path / "stack.schema.json")
    monkeypatch.setattr(reference, "PLAN_SCHEMA", tmp_path / "plan.schema.json")
    monkeypatch.setattr(reference, "VERSIONS", tmp_path / "versions.md")
    monkeypatch.setattr(reference, "COMMANDS", tmp_path / "commands.md")
    assert reference.main(["--check"]) == 1
    assert capsys.readouterr().err == (
        "stack.schema.json is stale; run `python -m stacks.reference`\n"
        "plan.schema.json is stale; run `python -m stacks.reference`\n"
        "config.md is stale; run `python -m stacks.reference`\n"
        "versions.md is stale; run `python -m stacks.reference`\n"
        "commands.md is stale; run `python -m stacks.reference`\n"
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


def objects(value: object) -> Iterator[Mapping[str, object]]:
    """Every part of a schema that describes a mapping."""
    if isinstance(value, Mapping):
        if value.get("type") == "object":
            yield value
        for item in value.values():
            yield from objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from objects(item)


def test_mappings_take_no_keys_but_those_that_are_described() -> None:
    made = schema.stack_schema()
    open_ones = [
        entry
        for entry in objects(made["$defs"])
        if entry.get("additionalProperties") is not False and "propertyNames" not in entry
    ]
    # The user's audit policy is Kubernetes' own: its form is checked by the program. Values of a chart are the chart's.
    values = {"type": "object", "description": ChartSpec.model_fields["values"].description}
    assert open_ones == [{"additionalProperties": True, "type": "object"}, values]


VALIDATOR = Draft202012Validator(schema.stack_schema())


def complaints(raw: Mapping[str, object]) -> list[str]:
    """What an editor would say of a config whose keys have no prefix."""
    config = {f"kube-ha:{key}": value for key, value in raw.items()}
    return [error.json_path for error in VALIDATOR.iter_errors({"config": config})]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_stack_file_of_the_project_fits_the_schema(file: Path) -> None:
    VALIDATOR.validate(yaml.safe_load(file.read_text()))


def test_the_schema_itself_is_one() -> None:
    Draft202012Validator.check_schema(schema.stack_schema())


WRONG = [
    ({"kublet": {}}, "$.config['kube-ha:kublet']"),
    ({"kubelet.maxPod": 1}, "$.config['kube-ha:kubelet']"),
    ({"kubelet.maxPods": 5}, "$.config['kube-ha:kubelet'].maxPods"),
    ({"kubelet/evictionHard": {"memory.free": "1Gi"}}, "$.config['kube-ha:kubelet'].evictionHard"),
    ({"controlPlane.featureGates": {"x": True}}, "$.config['kube-ha:controlPlane'].featureGates"),
    ({"controlPlane.oidc": {"issuerUrl": "https://x"}}, "$.config['kube-ha:controlPlane'].oidc"),
    ({"pools/Worker": {"roles": ["worker"], "count": 1}}, "$.config['kube-ha:pools']"),
    ({"pools.worker.roles": ["boss"]}, "$.config['kube-ha:pools'].worker.roles[0]"),
    ({"cluster.kubernetes": 1.36}, "$.config['kube-ha:cluster'].kubernetes"),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "path"), WRONG)
def test_an_editor_shows_what_the_program_would_refuse(edits: dict[str, object], path: str) -> None:
    assert complaints(lab(edits)) == [path]


def test_keys_of_others_and_secrets_of_the_program_are_let_through() -> None:
    assert complaints(lab({"sshPrivateKey": {"secure": "v1:abc"}})) == []
    config = {f"kube-ha:{key}": value for key, value in lab().items()}
    assert VALIDATOR.is_valid({"config": {**config, "aws:region": "eu-central-1"}})


def test_whatever_the_program_has_as_a_default_fits_the_schema() -> None:
    for raw in (lab(), adopted()):
        whole = load(raw).model_dump(mode="json", by_alias=True)
        assert complaints({key: value for key, value in whole.items() if value is not None}) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_stack_files_name_the_schema_for_editors(file: Path) -> None:
    first = file.read_text().splitlines()[0]
    named = re.fullmatch(r"# yaml-language-server: \$schema=(.+)", first)
    assert named
    assert (file.parent / named[1]).resolve() == reference.SCHEMA
