"""Policies of organisations: what the clouds say, what is told then, and the tables of the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stacks.config.clouds import AwsSpec, GcpSpec
from stacks.providers import registry
from stacks.providers.aws import refusals as aws
from stacks.providers.gcp import refusals as gcp

PAGE = (Path(__file__).parents[2] / "docs/install/cloud-permissions.md").read_text()
SAID = {
    "Error 412: Constraint constraints/compute.requireOsLogin violated for project 1.": [
        "policy compute.requireOsLogin of your organisation at Google refuses it: ask for an exception of the project: keys come by cloud-init"
    ],
    "Operation denied by org policy: [constraints/compute.managed.vmExternalIpAccess]": [
        "policy compute.managed.vmExternalIpAccess of your organisation at Google refuses it: set machines.gcp.access: tunnel"
    ],
    "constraints/a.b violated, constraints/a.b violated": [
        "policy a.b of your organisation at Google refuses it: ask whoever set it for an exception"
    ],
    "UnauthorizedOperation: You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/ci/x is not authorized to perform: ec2:AttachInternetGateway on resource: arn:aws:ec2:eu-central-1:123456789012:vpc/vpc-1 with an explicit deny in a service control policy. Encoded authorization failure message: x": [
        "a service control policy of your organisation denies ec2:AttachInternetGateway: name a network that is there: machines.aws.vpcId, with access: tunnel"
    ],
    "User: x is not authorized to perform: iam:CreateRole on resource: role y because no identity-based policy allows the iam:CreateRole action\n"
    "User: x is not authorized to perform: kms:CreateGrant on resource: z with an explicit deny in a service control policy: arn:aws:organizations::1:policy/o-1/service_control_policy/p-1": [
        "a service control policy of your organisation denies kms:CreateGrant: ask whoever set it for an exception"
    ],
    "Error 403: Required 'compute.instances.create' permission": [],
}  # fmt: skip


@pytest.mark.parametrize("text", SAID)
def test_an_answer_of_a_cloud_is_explained_by_what_it_names(text: str) -> None:
    assert registry.explained(text) == SAID[text]


@pytest.mark.parametrize("name", [*gcp.WAYS, *aws.WAYS])
def test_what_is_told_stands_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_keys_that_are_named_are_keys_of_the_config() -> None:
    said = " ".join([*gcp.WAYS.values(), *aws.WAYS.values()])
    keys = {
        "gcp": {field.alias for field in GcpSpec.model_fields.values()},
        "aws": {field.alias for field in AwsSpec.model_fields.values()},
    }
    named = re.findall(r"machines\.(gcp|aws)\.([A-Za-z]+)", said)
    assert named
    assert [(cloud, key) for cloud, key in named if key not in keys[cloud]] == []
