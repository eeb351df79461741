"""Spot machines: what they are to the clouds, and an update while some of them are gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tests.plan.settled import Stacks, assert_exactly
from tests.plan.told_pairs import Pair, told, updated
from tests.unit.configs import aws, behind_tunnel, gcp
from toolchain.values import plain

Config = Callable[[Mapping[str, object]], dict[str, object]]
SPOT = {"pools.worker.spot": True}
STOPPED = {
    "provisioningModel": "SPOT",
    "preemptible": True,
    "automaticRestart": False,
    "onHostMaintenance": "TERMINATE",
    "instanceTerminationAction": "STOP",
}
ENDED = {
    "marketType": "spot",
    "spotOptions": {"spotInstanceType": "one-time", "instanceInterruptionBehavior": "terminate"},
}


@pytest.mark.parametrize(
    ("config", "key", "bought"),
    [(gcp, "scheduling", STOPPED), (aws, "instanceMarketOptions", ENDED)],
)
def test_machines_of_such_a_pool_are_bought_as_that_and_no_others(
    stacks: Stacks, config: Config, key: str, bought: object
) -> None:
    _, run = stacks.settled(config(SPOT))
    found = {r.name: plain(r.inputs.get(key)) for r in run.custom if r.type.endswith(":Instance")}
    spot = {name: said for name, said in found.items() if said is not None}
    assert spot == {f"prod-worker-{number}-machine": bought for number in (1, 2)}
    assert len(found) == 6


@pytest.mark.parametrize("config", [gcp, aws])
@pytest.mark.parametrize("access", ["tunnel", "public"])
def test_an_update_leaves_out_what_the_cloud_took_away_and_has_it_again_when_it_is_back(
    stacks: Stacks, config: Config, access: str
) -> None:
    provider = config.__name__
    way = behind_tunnel(provider) if access == "tunnel" else {f"machines.{provider}.access": access}
    start = {**way, **SPOT}
    edit = {**start, "kubelet.maxPods": 60}
    engine, _ = stacks.settled(config(start))
    away = updated(stacks, engine, config(edit), frozenset({"worker-2"}))
    assert away.findings() == []
    assert [node.name for node in away.plan.absent] == ["worker-2"]
    # Its machine stays what the stack has of it, and is neither made again nor deleted.
    assert not [one for one in away.run.changes if one.name == "prod-worker-2-machine"]
    back = updated(stacks, engine, config(edit))
    assert back.findings() == []
    assert not back.plan.absent
    assert "worker-2" in str([one.name for one in back.run.changes])
    assert_exactly(engine.up(config(edit)), [])


@pytest.mark.parametrize("config", [gcp, aws])
def test_a_raised_generation_has_one_again(stacks: Stacks, config: Config) -> None:
    anew = {**SPOT, "nodes": {"worker-2": {"generation": 2}}}
    found = told(stacks, Pair("anew", config(SPOT), config(anew), frozenset({"worker-2"})))
    assert found.findings() == []
    assert "prod-worker-2-machine" in {c.name for c in found.run.changes if c.mark == "!"}
    made = "make a new machine, a spot one, which the cloud may take away"
    texts = [a.text for w in found.report.waves for n in w.nodes for a in n.actions]
    assert made in texts
