"""Who machines on AWS are to its services: a role of their own, and the profile that carries it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from stacks.providers.aws import regions
from stacks.providers.aws.scope import Scope
from stacks.providers.cloud import policy_name
from stacks.providers.resources import Ref, Resource


def account(scope: Scope, whose: str, policies: Sequence[str]) -> Iterator[Resource]:
    """The profile of a role which may do what these policies (ARNs) say, and nothing else."""
    region, tags = scope.said.region, scope.tags(scope.called(whose))
    # Names are of the whole account, and a cluster may have one of its name in another region.
    known, role = f"{scope.called(whose)}-{region}", Ref(f"{whose}-role", "name")
    trust = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": regions.service("ec2", region)},
    }
    yield Resource(role.name, "account", "aws.iam.Role").of(
        name=known,
        assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
        tags=tags,
    )
    for policy in policies:
        name, type_ = f"{whose}-{policy_name(policy)}", "aws.iam.RolePolicyAttachment"
        yield Resource(name, "account", type_).of(role=role, policy_arn=policy)
    carrier = profile(whose).name
    yield Resource(carrier, "account", "aws.iam.InstanceProfile").of(
        name=known, role=role, tags=tags
    )


def profile(whose: str) -> Ref:
    """Its name."""
    return Ref(f"{whose}-profile", "name")
