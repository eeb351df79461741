"""How much is tried: KUBE_HA_FUZZ examples of each property, a thousand if nothing is said."""

from __future__ import annotations

import os

import pytest
import yaml

from stacks.documents import yaml_text
from tests.fuzz import quick

pytest.register_assert_rewrite("tests.fuzz.invariants")


@pytest.fixture(scope="session")
def examples() -> int:
    return int(os.environ.get("KUBE_HA_FUZZ", "1000"))


@pytest.fixture
def quick_yaml(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(yaml, "dump_all", quick.dump_all)
    monkeypatch.setattr(yaml_text, "written", yaml_text.written.__wrapped__)  # every time
    return monkeypatch
