"""Who machines on AWS are to its services: a role of their own, and the profile that carries it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pulumi_aws as aws
from pulumi import ResourceOptions

from stacks.cluster import cloud_machines
from stacks.cluster.plan import Plan
from stacks.providers.cloud import policy_name

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"Service": "ec2.amazonaws.com"},
        }
    ],
}


def account(
    plan: Plan, whose: str, policies: Sequence[str], *, opts: ResourceOptions
) -> aws.iam.InstanceProfile:
    """The profile of a role which may do what these policies (ARNs) say, and nothing else."""
    name = f"{plan.spec.cluster.name}-{whose}"
    role = aws.iam.Role(
        f"{name}-role",
        name=name,
        assume_role_policy=json.dumps(_TRUST),
        tags=cloud_machines.tags(plan, name),
        opts=opts,
    )
    for policy in policies:
        aws.iam.RolePolicyAttachment(
            f"{name}-{policy_name(policy)}",
            role=role.name,
            policy_arn=policy,
            opts=opts,
        )
    return aws.iam.InstanceProfile(
        f"{name}-profile",
        name=name,
        role=role.name,
        tags=cloud_machines.tags(plan, name),
        opts=opts,
    )
