"""A level of defaults is the cluster's: another program changes none, the config's word does."""

from __future__ import annotations

from stacks.config import defaults
from tests.plan.settled import Stacks, assert_exactly
from tests.unit.configs import lab


def test_a_cluster_of_an_older_level_is_left_as_it_is_until_its_config_names_another(
    stacks: Stacks,
) -> None:
    engine, _ = stacks.settled(lab({"cluster.defaults": 1}))
    # Without a word: its memory tells.
    assert_exactly(engine.up(lab()), [])
    run = engine.up(lab({"cluster.defaults": defaults.NEWEST}))
    names = {change.name for change in run.changes}
    for node in ("master-1", "master-2", "master-3", "worker-1", "worker-2"):
        assert f"dev-{node}-node" in names
    assert "dev-master-1-master" in names
    assert_exactly(engine.up(lab()), [])
