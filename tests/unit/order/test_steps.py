"""Steps as data: who waits for whom, without an engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise

import pytest
import yaml

from stacks.cluster import artifacts
from stacks.edits import memory
from stacks.order.scene import Scene
from stacks.order.step import Step
from stacks.order.steps import groups, steps
from tests.unit.configs import adopted, aws, edited, gcp, lab, planned

VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
CONFIGS: Mapping[str, Mapping[str, object]] = {
    "lab": lab(),
    "load balancers": lab({**VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}}),
    "etcd apart": lab({"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}),
    "gcp": gcp(),
    "aws": aws(),
    "calico": adopted({"network": {"plugin": "calico"}}),
}  # fmt: skip


def scene(config: Mapping[str, object], previous: Mapping[str, object] | None = None) -> Scene:
    plan = planned(config)
    known = memory.read(json.loads(json.dumps(memory.of(planned(previous))))) if previous else None
    files = {arch: artifacts.files(plan, arch) for arch in {node.arch for node in plan.nodes}}
    return Scene(previous=known, plan=plan, files=files, now_s=0)


def by_name(one: Scene) -> dict[str, Step]:
    return {step.name: step for step in steps(one)}


def before(found: Mapping[str, Step], name: str) -> set[str]:
    """All that a step waits for."""
    seen: set[str] = set()
    left = [name]
    while left:
        step = found[left.pop()]
        new = {*step.after, *([step.stamp] if step.stamp else [])} - seen
        seen |= new
        left += new
    return seen


@pytest.mark.parametrize("lives", [False, True])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
def test_each_step_stands_behind_all_that_it_waits_for(
    config: Mapping[str, object],
    lives: bool,  # noqa: FBT001
) -> None:
    one = scene(config, config if lives else None)
    seen: set[str] = set()
    parents = {group.name for group in groups(one)}
    for step in steps(one):
        assert {*step.after, *([step.stamp] if step.stamp else [])} <= seen, step.name
        assert step.parent in {*parents, ""}
        seen.add(step.name)


def test_a_cluster_that_lives_changes_one_machine_whole_before_the_next() -> None:
    found = by_name(scene(lab(), lab()))
    for number in (2, 3):
        waits = before(found, f"dev-master-{number}-node")
        assert f"dev-master-{number - 1}-master" in waits
    assert "dev-master-3-master" in before(found, "dev-worker-1-node")


def test_one_that_is_born_overlaps() -> None:
    found = by_name(scene(lab()))
    waits = before(found, "dev-master-2-etcd")
    assert "dev-master-1-etcd" in waits
    assert "dev-master-1-master" not in waits
    assert not [name for name in before(found, "dev-worker-1-node") if "master" in name]


def test_no_step_is_on_a_lost_machine() -> None:
    lost = adopted({"nodes/worker-2": {"state": "lost"}})
    found = steps(scene(lost, adopted()))
    assert "worker-2" not in {step.node.name for step in found if step.node}
    assert [step.name for step in found if step.kind == "forget"] == ["prod-worker-2-preflight"]


def test_an_edit_of_a_worker_waits_for_the_gate_of_its_wave() -> None:
    more = edited(lab(), {"pools.worker.count": 3})
    found = by_name(scene(more, lab()))
    assert "dev-wave-1" in before(found, "dev-worker-2-node")
    assert not [name for name in before(found, "dev-worker-3-node") if "-wave-" in name]


@pytest.mark.parametrize("plugin", ["flannel", "cilium", "calico"])
def test_objects_come_after_what_defines_their_kinds(plugin: str) -> None:
    """Steps on a master take turns: one that waited for another's kinds would keep that one out."""
    found = by_name(scene(adopted({"network": {"plugin": plugin}})))
    made = {
        name: [*yaml.safe_load_all(str(step.values["MANIFEST"]))]
        for name, step in found.items()
        if step.phase == "addon"
    }
    defined = {
        (each["spec"]["group"], each["spec"]["names"]["kind"]): name
        for name, objects in made.items()
        for each in objects
        if each["kind"] == "CustomResourceDefinition"
    }
    waits = {
        (name, by)
        for name, objects in made.items()
        for each in objects
        if (by := defined.get((each["apiVersion"].partition("/")[0], each["kind"])))
    }
    assert bool(waits) == (plugin == "calico")
    assert {(name, by) for name, by in waits if by not in before(found, name)} == set()


@pytest.mark.parametrize("name", ["lab", "etcd apart"])
def test_who_is_back_from_absence_changes_before_the_others_of_its_kind(name: str) -> None:
    """Until its turn it counts as down. Nobody else's place changes."""
    config = CONFIGS[name]
    was = [node.name for node in scene(config, config).turns]
    for back in was:
        one = scene(config, edited(config, {f"nodes/{back}": {"state": "absent"}}))
        kinds = [
            [node.name for node in one.turns if node.is_etcd is is_etcd]
            for is_etcd in (True, False)
        ]
        for turns in kinds:
            others = [other for other in was if other in turns and other != back]
            assert turns == ([back] if back in turns else []) + others
        assert [node.name for node in one.turns] == kinds[0] + kinds[1]
        found = by_name(one)
        for earlier, later in pairwise(one.turns):
            assert f"dev-{earlier.name}-node" in before(found, f"dev-{later.name}-node")
        masters = {f"dev-{node.name}-master" for node in one.plan.masters}
        members = {f"dev-{node.name}-etcd" for node in one.plan.etcd}
        assert masters | members <= before(found, "dev-nodes")
        assert one.saver == [node for node in one.turns if node.is_etcd][-1]


def test_what_goes_before_any_turn_is_done_by_one_that_was_there() -> None:
    """The acting master is lost, and of the others one is back from absence."""
    away = lab({"nodes/master-2": {"state": "absent"}})
    one = scene(lab({"nodes/master-1": {"state": "lost"}}), away)
    found = by_name(one)
    where = {name: found[name].node for name in ("dev-retire", "dev-snapshot")}
    assert {name: node and node.name for name, node in where.items()} == {
        "dev-retire": "master-3",
        "dev-snapshot": "master-3",
    }
