"""Files that a repository's visitors and robots read: valid, and of one version."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from stacks.__main__ import main
from stacks.version import VERSION
from tests.unit.configs import lab

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
SCHEMAS = resources.files("check_jsonschema.builtin_schemas.vendor")


def problems(schema: str, found: object) -> list[str]:
    known = json.loads(SCHEMAS.joinpath(f"{schema}.json").read_text())
    return [error.message for error in Draft7Validator(known).iter_errors(found)]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_forms_of_issues_are_valid(form: Path) -> None:
    schema = "github-issue-config" if form.stem == "config" else "github-issue-forms"
    assert problems(schema, yaml.safe_load(form.read_text())) == []


def test_renovate_knows_its_rules_and_each_finds_a_version() -> None:
    rules = json.loads((GITHUB / "renovate.json").read_text())
    assert problems("renovate", rules) == []
    for manager in rules["customManagers"]:
        (pattern,) = manager["managerFilePatterns"]
        name = pattern.strip("/^$").replace("\\", "")
        text = (ROOT / name).read_text()
        for wanted in manager["matchStrings"]:
            assert re.search(wanted.replace("?<", "?P<"), text), f"{wanted} is not in {name}"


def test_renovate_reads_every_file_of_requirements() -> None:
    rules = json.loads((GITHUB / "renovate.json").read_text())
    (pattern,) = rules["pip_requirements"]["managerFilePatterns"]
    listed = [path.relative_to(ROOT) for path in ROOT.glob("*/requirements*.txt")]
    listed += [path.relative_to(ROOT) for path in ROOT.glob("requirements*.txt")]
    assert len(listed) >= 3
    assert all(re.search(pattern.strip("/"), str(path)) for path in listed)


def test_the_changelog_is_of_this_version() -> None:
    sections = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert VERSION in sections[0]
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


def test_the_version_is_printed_and_in_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"kube-ha {VERSION}\n")
    for config, code in ((lab(), 0), ({}, 1)):
        file = tmp_path / "Pulumi.x.yaml"
        file.write_text(yaml.safe_dump({"config": {f"kube-ha:{k}": v for k, v in config.items()}}))
        assert main([str(file), "--format", "json"]) == code
        assert json.loads(capsys.readouterr().out)["programVersion"] == VERSION
