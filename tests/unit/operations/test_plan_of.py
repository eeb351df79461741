"""The plan that operations hold machines against is the one that an update would have: of the config and of what the stack remembers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from operations.engine import stack
from stacks.edits import memory
from stacks.load import load, planned
from tests.unit.configs import lab

LOST = {"worker-1": {"state": "lost"}}


@pytest.fixture
def prod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulumi.prod.yaml, which names no lost node any more."""
    monkeypatch.chdir(tmp_path)
    config = {f"kube-ha:{key}": value for key, value in lab().items()}
    Path("Pulumi.prod.yaml").write_text(yaml.safe_dump({"config": config}))


@pytest.mark.usefixtures("prod")
def test_who_is_fenced_by_what_the_stack_remembers_is_fenced_here_too() -> None:
    before = planned(load(lab({"nodes": LOST}), read_keys=False))
    remembered = json.loads(json.dumps(memory.of(before)))
    found = stack.plan_of("prod", remembered)
    assert [one.name for one in found.fenced] == ["worker-1"]
    assert found == planned(load(lab(), read_keys=False), memory.read(remembered))
    assert stack.plan_of("prod").fenced == ()


@pytest.mark.usefixtures("prod")
def test_a_memory_that_cannot_be_read_ends_no_look_at_the_cluster() -> None:
    found = stack.plan_of("prod", {"format": 99})
    assert found.spec.cluster.defaults == 1
