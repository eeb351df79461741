"""The bastion of a cloud: it fits its image, and another type makes it anew while machines stay."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stacks.cluster import cloud_machines
from tests.plan.settled import Stacks
from tests.plan.test_clouds import kinds
from tests.plan.told_pairs import Pair, told
from tests.unit.configs import aws, behind_tunnel, gcp, planned
from toolchain.values import plain

Config = Callable[..., dict[str, object]]
AMI = "ami-0123456789abcdef0"
ARM = {
    **{f"pools.{pool}.arch": "arm64" for pool in ("master", "worker")},
    **{f"pools.{pool}.machineType": "m7g.large" for pool in ("master", "worker")},
}


@pytest.mark.parametrize(
    ("edits", "type_", "arch"),
    [
        ({}, "t3.micro", "amd64"),
        (ARM, "t3.micro", "amd64"),  # of an owner's images each architecture is found
        ({**ARM, "machines.aws.image": AMI}, "t4g.micro", "arm64"),
        ({**ARM, "machines.aws.image": AMI, "machines.aws.bastionImage": "self/mine"}, "t3.micro", "amd64"),
        ({**ARM, "machines.aws.image": AMI, **behind_tunnel("aws")}, "t3.micro", "amd64"),
        ({"machines.aws.image": AMI}, "t3.micro", "amd64"),
        ({"machines.aws.bastionMachineType": "t4g.small"}, "t4g.small", "arm64"),
    ],
)  # fmt: skip
def test_a_bastion_is_a_machine_that_its_image_is_for(
    edits: dict[str, object], type_: str, arch: str
) -> None:
    plan = planned(aws(edits))
    assert (cloud_machines.bastion_type(plan), cloud_machines.bastion_arch(plan)) == (type_, arch)


@pytest.mark.parametrize(
    ("config", "type_", "inputs"),
    [
        (gcp, "t2a-standard-1", {"machineType": "t2a-standard-1", "image": "ubuntu-os-cloud/ubuntu-2404-lts-arm64"}),
        (aws, "t4g.small", {"instanceType": "t4g.small", "image": "ami-0bbbbbbbbbbbbbbbb"}),
    ],
)  # fmt: skip
def test_another_type_makes_the_bastion_anew_and_no_machine(
    stacks: Stacks, config: Config, type_: str, inputs: dict[str, str]
) -> None:
    """With hundreds of machines the smallest has too little memory for their sessions."""
    edit = {f"machines.{config.__name__}.bastionMachineType": type_}
    found = told(stacks, Pair("bastion", config(), config(edit)))
    assert found.findings() == []
    assert kinds(found.run, "!") == {"prod-bastion"}
    assert not kinds(found.run, "+") | kinds(found.run, "-")
    made = found.run.named("prod-bastion")
    assert {str(plain(made.inputs[key])) for key in ("machineType", "instanceType") if key in made.inputs} == {type_}  # fmt: skip
    assert inputs["image"] in str(plain(dict(made.inputs)))
