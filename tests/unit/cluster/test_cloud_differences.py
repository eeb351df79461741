"""What a cloud's provider would find of an edit, by the data that are registered."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from stacks.cluster.cloud_differences import Differences
from stacks.providers.resources import Options, Ref, Resource, Text, UserData


def differences(was: Iterable[Resource], now: Iterable[Resource]) -> Differences:
    return Differences({one.name: one for one in was}, {one.name: one for one in now})


def a(name: str = "a", **options: object) -> Resource:
    return Resource(name, "network", "aws.ec2.Vpc", Options(**options))  # type: ignore[arg-type]


def _upper(text: str) -> str:
    return text.upper()


@pytest.mark.parametrize(
    ("was", "now", "changed"),
    [
        (a().of(cidr="10.0.0.0/16"), a().of(cidr="10.0.0.0/16"), False),
        (a().of(cidr="10.0.0.0/16"), a().of(cidr="10.1.0.0/16"), True),
        (a().of(tags={"Name": "a"}), a().of(tags={"Name": "a", "team": "b"}), True),
        (a().of(ports=["1", "2"]), a().of(ports=("1", "2")), False),
        (a().of(ports=["1", "2"]), a().of(ports=["2", "1"]), True),
        (a().of(ports=["1"]), a().of(ports=["1", "2"]), True),
        (a().of(disk={"size": 1, "iops": None}), a().of(disk={"size": 1}), False),
        (a().of(iops=None), a(), False),
        (a().of(iops=None), a().of(iops=3000), True),
        (a().of(allowed=True), a().of(allowed=False), True),
        (a(ignores=("ami",)).of(ami="ami-1"), a(ignores=("ami",)).of(ami="ami-2"), False),
        (a(ignores=("ami",)).of(ami="ami-1", type="x"), a(ignores=("ami",)).of(ami="ami-1", type="y"), True),
        (a(trigger="1"), a(trigger="2"), True),
        (a(after=("b",)), a(), False),
        (a().of(image=Ref("image 1")), a().of(image=Ref("image 1")), False),
        (a().of(image=Ref("image 1")), a().of(image=Ref("image 2")), True),
        (a().of(image=Ref("image 1")), a().of(image="ami-1"), True),
        (a().of(data=UserData(name="a")), a().of(data=UserData(name="a", ssm=True)), True),
        (a().of(member=Text((Ref("b"),), _upper)), a().of(member=Text((Ref("b"),), _upper)), False),
        (a().of(member=Text((Ref("b"),), _upper)), a().of(member=Text((Ref("c"),), _upper)), True),
    ],
)  # fmt: skip
def test_a_resource_is_changed_by_what_it_is_made_of(
    was: Resource, now: Resource, *, changed: bool
) -> None:
    assert differences([was], [now]).changed() == (["a"] if changed else [])


def balancer(*subnets: str) -> list[Resource]:
    """With what hangs on it, and on that."""
    return [
        Resource(
            "balancer", "load balancer", "aws.lb.LoadBalancer", Options(stands_in=("subnets",))
        ).of(name="prod-int", subnets=[Ref(one) for one in subnets]),
        Resource("listener", "load balancer", "aws.lb.Listener").of(
            balancer=Ref("balancer", "arn")
        ),
        Resource("alarm", "load balancer", "aws.x.Alarm").of(balancer=Ref("balancer", "name")),
        Resource("tag", "load balancer", "aws.x.Tag").of(
            of=[{"text": Text((Ref("balancer", "arn"),), _upper)}]
        ),
        Resource("behind", "load balancer", "aws.x.Behind").of(of=Ref("listener")),
    ]


def test_what_refers_to_a_resource_is_changed_where_another_one_takes_its_place() -> None:
    three = balancer("a", "b", "c")
    assert differences(three, balancer("a", "c")).changed() == ["balancer", "listener", "tag"]
    assert differences(three, balancer("a", "b", "d")).changed() == ["balancer", "listener", "tag"]
    # One more is taken in place.
    assert differences(balancer("a", "b"), three).changed() == ["balancer"]
    assert differences(three, balancer("a", "b", "c")).changed() == []


def test_another_trigger_replaces_a_machine_and_moves_its_address() -> None:
    def bastion(mark: str | None) -> list[Resource]:
        machine = Resource("bastion", "bastion", "aws.ec2.Instance", Options(trigger=mark))
        address = Resource("address", "bastion", "aws.ec2.Eip").of(instance=Ref("bastion"))
        user = Resource("user", "bastion", "aws.x.User").of(at=Ref("address", "public_ip"))
        return [machine, address, user]

    found = differences(bastion(None), bastion("t3.small"))
    assert found.changed() == ["bastion", "address"]
    assert found.of("bastion").is_replaced
    assert not found.of("address").is_replaced


def test_what_comes_and_what_goes_are_no_changes() -> None:
    assert differences([a("b"), a()], [a(), a("c")]).changed() == []
