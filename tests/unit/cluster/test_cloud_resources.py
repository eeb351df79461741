"""The resources of a cluster in a cloud, as data: each stands behind what it refers to, whatever the config says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from stacks.cluster import cloud_resources
from stacks.cluster.cloud_differences import Differences
from stacks.providers.resources import Lookup, Ref, Resource, Resources, Text, UserData, Value
from tests.unit.cloud_shapes import DISK_KEYS, SHAPES
from tests.unit.configs import aws, gcp, planned


def registered(found: Resources) -> list[Resource | Lookup]:
    """As they come: what is around machines, these, and the record."""
    own = [one for machine in found.machines.values() for one in machine.resources]
    return [*found.around, *own, *([found.record] if found.record else [])]


def names(value: Value) -> Iterator[str]:
    match value:
        case Ref():
            yield value.name
        case Text():
            yield from (one.name for one in value.of)
        case UserData():
            yield from names(value.disks)
        case Mapping():
            yield from (name for one in value.values() for name in names(one))
        case list() | tuple():
            yield from (name for one in value for name in names(one))


@pytest.mark.parametrize("shape", SHAPES)
def test_each_stands_behind_what_it_refers_to(shape: str) -> None:
    found = cloud_resources.of_plan(planned(SHAPES[shape]))
    there: set[str] = set()
    for one in registered(found):
        used = [*names(one.arguments if isinstance(one, Lookup) else one.properties)]
        if isinstance(one, Resource):
            used += [*one.opts.after, *filter(None, [one.opts.deleted_with])]
            assert set(one.opts.stands_in) & {*one.properties} or not one.opts.stands_in, one.name
        assert {*used} <= there, f"{one.name} is before {', '.join({*used} - there)}"
        assert one.name not in there, f"{one.name} is there twice"
        there.add(one.name)
    assert {*found.balancer_parts} <= there
    for machine in found.machines.values():
        own = [one.name for one in machine.resources]
        assert {machine.machine, machine.ready} <= {*own}
    assert {*names([found.bastion, found.balancer, *found.record_values])} <= there


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_config_differs_in_nothing(shape: str) -> None:
    plan = planned(SHAPES[shape])
    nodes = [node.name for node in plan.nodes]
    was, now = (cloud_resources.told(plan, nodes) for _ in range(2))
    assert Differences(was, now).changed() == []


def test_machines_that_are_asked_for_are_told_and_the_record_is_not() -> None:
    plan = planned(SHAPES["aws, a zone is made"])
    around, one = cloud_resources.told(plan, ()), cloud_resources.told(plan, ["worker-1"])
    assert {*one} - {*around} == {"worker-1-machine"}
    assert "zone-example-com" in around
    assert "api-name" not in one


def test_a_decommissioned_machine_is_kept_and_behind_no_load_balancer() -> None:
    config = aws({"pools.master.count": 4, "nodes": {"master-4": {"state": "decommissioned"}}})
    found = cloud_resources.of_plan(planned(config))
    assert "master-4-machine" in [one.name for one in found.machines["master-4"].resources]
    assert "master-4-balanced-internal" not in found.balancer_parts


@pytest.mark.parametrize(("provider", "make"), [("gcp", gcp), ("aws", aws)])
def test_every_disk_is_encrypted_with_the_key_that_is_named(
    provider: str, make: Callable[[Mapping[str, object]], dict[str, object]]
) -> None:
    key = DISK_KEYS[provider]
    found = cloud_resources.of_plan(planned(make({f"machines.{provider}.diskKey": key})))
    disks = [
        one.properties.get("root_block_device") or one.properties.get("boot_disk") or one.properties
        for one in registered(found)
        if isinstance(one, Resource) and one.type.endswith((".Instance", ".Disk", ".Volume"))
    ]
    assert len(disks) == 9  # of five machines, the bastion, and three of etcd
    assert all(repr(key) in repr(disk) for disk in disks)
