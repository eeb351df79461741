"""Snapshots of etcd in S3 by the machines' own role: what it may do there, and who reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from stacks.providers import store_identity
from stacks.providers.aws import regions
from stacks.providers.aws.account import account
from stacks.providers.aws.scope import Scope
from stacks.providers.resources import Ref, Resource
from stacks.providers.store_identity import Credentials, StoreIdentity

_WHOSE = "etcd"


def read(text: str) -> Credentials:
    """As credential_process has it (AWS CLI, "Sourcing credentials with an external process")."""
    said = json.loads(text)
    if not isinstance(said, Mapping):
        raise ValueError(text)
    known = {key: said.get(key) or "" for key in ("AccessKeyId", "SecretAccessKey", "SessionToken")}
    if not (known["AccessKeyId"] and known["SecretAccessKey"]):
        raise ValueError(text)
    access_key, secret, token = map(str, known.values())
    return Credentials(access_key=access_key, secret=secret, token=token)


IDENTITY = StoreIdentity(
    word="ec2",
    endpoint=re.compile(r"([a-z0-9-]+\.)*amazonaws\.com(\.cn)?"),
    example="https://s3.eu-central-1.amazonaws.com",
    program=(
        "aws",
        "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    ),
    command=("aws", "configure", "export-credentials", "--format", "process"),
    read=read,
    log_in="aws sso login, or AWS_PROFILE=...",
)


def whose(scope: Scope, *, is_etcd: bool) -> str:
    """Whose role a machine has. That of etcd's machines may do more where a store goes by it."""
    return _WHOSE if is_etcd and store_identity.store(scope.site.spec) else "nodes"


def role(scope: Scope) -> Iterator[Resource]:
    """The role of machines with etcd, which may send snapshots and nobody else may."""
    found = store_identity.store(scope.site.spec)
    if found is None:
        return
    yield from account(scope, _WHOSE, scope.said.policies)
    arn = f"arn:{regions.partition(scope.said.region)}:s3:::{found.bucket}"
    folder = store_identity.folder(found, scope.site.cluster)
    # Reading is for people: a machine that is in wrong hands reads no snapshots of other days.
    send = {
        "Effect": "Allow",
        "Action": ["s3:PutObject", *(["s3:DeleteObject"] if found.prune else [])],
        "Resource": f"{arn}/{folder}/*",
    }
    look = {
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": arn,
        "Condition": {"StringLike": {"s3:prefix": f"{folder}/*"}},
    }
    statements = [send, look] if found.prune else [send]
    yield Resource(f"{_WHOSE}-snapshots", "account", "aws.iam.RolePolicy").of(
        name="snapshots",
        role=Ref(f"{_WHOSE}-role", "name"),
        policy=json.dumps({"Version": "2012-10-17", "Statement": statements}),
    )
