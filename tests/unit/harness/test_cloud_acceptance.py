"""The acceptance of a cloud: each of its steps is an edit that is accepted after the one before."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from stacks.cluster import api_record, clouds
from stacks.cluster.resolve import plan
from stacks.edits import memory, transition
from stacks.load import load
from tests import cloud_acceptance

ROOT = Path(__file__).resolve().parents[3]
GIVEN: dict[str, dict[str, object]] = {"gcp": {"project": "my-project-9", "sshFrom": ["192.0.2.0/24"]}, "aws": {"sshFrom": ["192.0.2.0/24"]}, "hcloud": {"sshFrom": ["192.0.2.0/24"]}}  # fmt: skip


GOOGLE, AMAZON = ({"domain": "example.com", "id": zone} for zone in ("my-zone", "Z0123456789"))


@pytest.mark.parametrize(
    ("provider", "zone", "tunnel"),
    [
        *((name, zone, tunnel) for tunnel in (False, True) for name, zone in
          (("gcp", None), ("aws", None), ("gcp", GOOGLE), ("aws", AMAZON))),
        ("hcloud", None, False),
    ],
)  # fmt: skip
def test_every_step_is_an_edit_that_is_accepted_after_the_one_before(
    provider: str, zone: dict[str, object] | None, *, tunnel: bool
) -> None:
    raw = cloud_acceptance.config(provider, GIVEN[provider], tunnel=tunnel)
    before = plan(load(raw))
    usual = "public" if provider == "hcloud" else "bastion"
    assert clouds.way_in(before.spec) == ("127.0.0.1:20022" if tunnel else usual)
    assert before.spec.cluster.name == "acceptance"
    found = cloud_acceptance.steps(provider, zone)
    led = []
    for step in found:
        now = copy.deepcopy(raw)
        for path, value in step.edit.items():
            cloud_acceptance.edit(now, path, value)
        after = plan(load(now))
        transition.check(memory.read(memory.of(before)), after)
        assert ("up" in step.run) == bool(step.edit) or step.title == "make it"
        raw, before = now, after
        if api_record.zone(after.spec):
            led.append(api_record.words(after).partition(" (")[0])
    moves = ["the external load balancer", "master-1, master-2, master-3", "master-1"]
    assert list(dict.fromkeys(led)) == (moves if zone else [])
    assert len(before.masters) == 1
    assert found[-1].run == ("destroy",)


@pytest.mark.parametrize("provider", ["gcp", "aws", "hcloud"])
def test_what_is_run_are_targets_that_there_are(provider: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for step in cloud_acceptance.steps(provider):
        assert set(step.run) <= targets | {"unchanged", "destroy"}


def test_nothing_is_done_without_the_word_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    assert cloud_acceptance.main(["gcp", "--project", "my-project-9"]) == 0
    said = capsys.readouterr().out
    assert " 2. make it\n      make up STACK=acceptance-gcp YES=1\n" in said
    assert "Nothing was done." in said
    assert "make tunnel" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["examples"]
    assert cloud_acceptance.main(["gcp", "--tunnel"]) == 0
    assert "make tunnel STACK=acceptance-gcp\n" in capsys.readouterr().out
    names = ["--domain", "example.com", "--zone", "my-zone"]
    assert cloud_acceptance.main(["gcp", *names]) == 0
    assert "'zone': {'domain': 'example.com', 'id': 'my-zone'}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cloud_acceptance.main(["gcp", *names[:2]])


def test_the_first_step_that_fails_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "Makefile").write_text("plan:\n\ttrue\npreview:\n\tfalse\n")
    monkeypatch.chdir(tmp_path)
    assert cloud_acceptance.main(["aws", "--ssh-from", "192.0.2.0/24", "--spend-money"]) == 1
    assert "ERROR step 1 failed\n  do: fix it, then --from 1" in capsys.readouterr().out
    assert "192.0.2.0/24" in (tmp_path / "Pulumi.acceptance-aws.yaml").read_text()
