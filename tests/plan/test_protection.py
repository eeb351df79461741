"""One command does not destroy a cluster whose machines are not this computer's own."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.plan.graph import Graph
from tests.plan.settled import Stacks
from tests.unit.configs import adopted, aws, gcp, hcloud, lab

MARK = "prod-protection"


@pytest.mark.parametrize(
    "config", [adopted(), gcp(), aws(), hcloud()], ids=["adopt", "gcp", "aws", "hcloud"]
)
def test_a_destroy_comes_to_the_protection_before_anything_else(
    stacks: Stacks, config: Mapping[str, object]
) -> None:
    """It waits for every other resource, and the engine deletes in reverse order."""
    _, born = stacks.settled(config)
    graph = Graph(born)
    assert [one.name for one in born.custom if one.protected] == [MARK]
    assert graph.before(MARK) == graph.resources.keys() - {MARK}


def test_a_lab_is_destroyed_without_a_question(stacks: Stacks) -> None:
    _, born = stacks.settled(lab())
    assert [one.name for one in born.custom if one.protected] == []


def test_no_step_of_a_rotation_or_an_edit_touches_what_is_protected(stacks: Stacks) -> None:
    engine, _ = stacks.settled(adopted())
    for step in ("trust", "issue", "drop"):
        said = {"generation": 2, "step": step}
        run = engine.up(adopted({f"pki.rotation.{ca}": said for ca in ("kubernetes", "etcd")}))
        assert run.changes
        assert MARK not in {change.name for change in run.changes}
