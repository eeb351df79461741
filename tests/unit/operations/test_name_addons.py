"""Add-ons that are written into a stack file, and what a bundle needs for a stack."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from operations import bundle_words, name_addons
from operations.name_addons import NamesError
from stacks.config import stack_file
from stacks.config.problems import SpecError

DEV = Path(__file__).parents[3] / "Pulumi.dev.yaml"
# metallb needs addresses, default-deny namespaces and a network that enforces policies.
ALL = ("local-path", "logs", "metrics-server", "prometheus", "toolbox")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(shutil.copy(DEV, tmp_path / DEV.name))


def test_all_are_those_that_need_no_settings(file: Path) -> None:
    before = file.read_text()
    assert name_addons.add(file, ["all"]) == ALL
    assert stack_file.read(file)["addons"] == {name: {} for name in ALL}
    lines = [f"    {name}: {{}}\n" for name in ALL]
    more = "".join(["  kube-ha:addons:\n", *lines])
    assert file.read_text() == before.replace("config:\n", f"config:\n{more}", 1)
    assert bundle_words.of_file(file) == tuple(f"addon={name}" for name in ALL)


def test_those_that_are_there_stay_as_they_are(file: Path) -> None:
    said = "config:\n  kube-ha:addons:\n    prometheus: {} # mine\n"
    file.write_text(file.read_text().replace("config:\n", said, 1))
    assert name_addons.add(file, ["prometheus", "toolbox"]) == ("toolbox",)
    assert "    toolbox: {}\n    prometheus: {} # mine\n" in file.read_text()
    kept = file.read_text()
    assert name_addons.add(file, ["toolbox"]) == ()
    assert file.read_text() == kept


@pytest.mark.parametrize(
    ("replaced", "by", "names", "word"),
    [
        ("", "", ["prometheus", "nope"], "the catalogue has no nope; it has default-deny,"),
        ("config:\n", "config: # mine\n", ["logs"], "write logs: {} there yourself"),
        ("config:\n", "config:\n  kube-ha:addons: {toolbox: {}}\n", ["logs"], "there yourself"),
    ],
)
def test_what_cannot_be_written_is_said_and_nothing_is(
    file: Path, replaced: str, by: str, names: list[str], word: str
) -> None:
    text = file.read_text().replace(replaced, by, 1) if replaced else file.read_text()
    file.write_text(text)
    with pytest.raises(NamesError, match=word):
        name_addons.add(file, names)
    assert file.read_text() == text


def test_a_config_with_problems_tells_them(file: Path) -> None:
    file.write_text(file.read_text().replace("count: 3", "count: 300000"))
    with pytest.raises(SpecError):
        name_addons.add(file, ["all"])


def test_a_stack_file_that_is_not_there_has_no_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert bundle_words.main(["prod"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "ERROR Pulumi.prod.yaml does not say what a bundle needs for it" in told.err
    assert "do: make plan STACK=prod" in told.err


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("    kubernetes: 1.36.3", "    kubernetes: 1.36.3", ()),
        ("    kubernetes: 1.36.3", "    kubernetes: 1.36.1", ("kubernetes=1.36.1",)),
        ("    kubernetes: 1.36.3", "    kubernetes: 1.36.3\n    etcd: 3.6.15", ("etcd=3.6.15",)),
        ("config:\n", "config:\n  kube-ha:network: {plugin: cilium}\n", ("network=cilium",)),
        (
            "config:\n",
            f"config:\n  kube-ha:addons: {{web: {{chart: {{file: a.tgz, sha256: '{'0' * 64}'}}}}}}\n",
            ("tools=helm",),
        ),
    ],
)
def test_a_bundle_needs_what_differs_from_every_bundle(
    file: Path, key: str, value: str, words: tuple[str, ...]
) -> None:
    text = file.read_text()
    assert key in text
    file.write_text(text.replace(key, value, 1))
    assert bundle_words.of_file(file) == words
