"""Who machines on AWS are to its services: a role of their own, and the profile that carries it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pulumi_aws as aws
from pulumi import ResourceOptions

from stacks.cluster import cloud_machines
from stacks.cluster.plan import Plan
from stacks.providers.aws import regions
from stacks.providers.cloud import policy_name


def account(
    plan: Plan, whose: str, policies: Sequence[str], *, opts: ResourceOptions
) -> aws.iam.InstanceProfile:
    """The profile of a role which may do what these policies (ARNs) say, and nothing else."""
    name, region = f"{plan.spec.cluster.name}-{whose}", cloud_machines.region(plan)
    # Names are of the whole account, and a cluster may have one of its name in another region.
    known = f"{name}-{region}"
    trust = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": regions.service("ec2", region)},
    }
    role = aws.iam.Role(
        f"{name}-role",
        name=known,
        assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
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
        name=known,
        role=role.name,
        tags=cloud_machines.tags(plan, name),
        opts=opts,
    )
