"""Roles for service accounts of the cluster (IRSA): IAM checks tokens of pods by published keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stacks.config import token_issuers
from stacks.config.clouds import AwsIdentitySpec, AwsSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import cloud
from stacks.providers.aws import regions
from stacks.providers.aws.scope import Scope
from stacks.providers.cloud import policy_name
from stacks.providers.resources import Kind, Options, Ref, Resource, Text, TokenKeys, Value

_KIND: Kind = "workload identity"
_DISCOVERY = ".well-known/openid-configuration"
_AUDIENCE = "sts.amazonaws.com"
_NAME = 64  # characters of a role (IAM user guide, "IAM and STS quotas")
_BUCKET, _ISSUER = "token-keys", "token-issuer"
_PATH = "machines.aws.workloadIdentity"


def problems(spec: Spec, said: AwsIdentitySpec | None) -> Iterator[Problem]:
    """What IAM would not find, or refuse."""
    if said is None or spec.machines.aws is None:
        return
    if (said.bucket is None) == (said.issuer is None):
        text = "give a bucket that is made, or an issuer whose documents you serve: one of both"
        yield Problem(_PATH, text)
        return
    if said.bucket and "." in said.bucket:
        text = f"{said.bucket} has dots, and S3's certificates hold no name with more of them"
        yield Problem(f"{_PATH}.bucket", f"{text}; choose another name")
    issuer, listed = _issuer(spec.machines.aws, said), token_issuers.listed(spec)
    if issuer not in listed:
        text = (
            f"is without {issuer}, by which IAM knows the cluster; in a new cluster write "
            f"[{issuer}], in one that lives first [{', '.join([*listed, issuer])}]"
        )
        yield Problem("controlPlane.serviceAccountIssuers", text)
    for account, policies in said.policies.items():
        path = f"{_PATH}.policies.{account}"
        yield from cloud.same_names(path, policies, policy_name)


def identity(scope: Scope) -> Iterator[Resource]:
    """Documents of the issuer where IAM reads them, the issuer, and roles with their policies."""
    said = scope.said.workload_identity
    if said is None:
        return
    issuer = _issuer(scope.said, said)
    published = tuple(_bucket(scope, said.bucket, issuer)) if said.bucket else ()
    yield from published
    yield Resource(
        _ISSUER,
        _KIND,
        "aws.iam.OpenIdConnectProvider",
        Options(after=tuple(one.name for one in published)),
    ).of(url=issuer, client_id_lists=[_AUDIENCE], tags=scope.tags(scope.called(_ISSUER)))
    for account, policies in sorted(said.policies.items()):
        yield from _role(scope, issuer, account, policies)


def _issuer(aws: AwsSpec, said: AwsIdentitySpec) -> str:
    return said.issuer or f"https://{said.bucket}.{regions.service(f's3.{aws.region}', aws.region)}"


def _bucket(scope: Scope, bucket: str, issuer: str) -> Iterator[Resource]:
    tags, made = scope.tags(bucket), Ref(_BUCKET, "bucket")
    yield Resource(_BUCKET, _KIND, "aws.s3.Bucket").of(bucket=bucket, tags=tags)
    access = "aws.s3.BucketPublicAccessBlock"
    yield Resource(f"{_BUCKET}-access", _KIND, access).of(
        bucket=made,
        block_public_acls=True,
        ignore_public_acls=True,
        # The one policy below is for everybody.
        block_public_policy=False,
        restrict_public_buckets=False,
    )
    read = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": f"arn:{regions.partition(scope.said.region)}:s3:::{bucket}/*",
    }
    yield Resource(
        f"{_BUCKET}-readers",
        _KIND,
        "aws.s3.BucketPolicy",
        Options(after=(f"{_BUCKET}-access",)),
    ).of(bucket=made, policy=_policy(read))
    # As the API server says it itself (RFC 8414, "Authorization Server Metadata").
    document = {
        "issuer": issuer,
        "jwks_uri": f"{issuer}/{token_issuers.JWKS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }
    yield _object(scope, "discovery", _DISCOVERY, json.dumps(document))
    yield _object(scope, "keys", token_issuers.JWKS, TokenKeys(scope.site.token_keys))


def _object(scope: Scope, what: str, key: str, content: Value) -> Resource:
    name = f"{_BUCKET}-{what}"
    return Resource(name, _KIND, "aws.s3.BucketObjectv2").of(
        bucket=Ref(_BUCKET, "bucket"),
        key=key,
        content=content,
        content_type="application/json",
        tags=scope.tags(scope.called(name)),
    )


def _role(scope: Scope, issuer: str, account: str, policies: tuple[str, ...]) -> Iterator[Resource]:
    called, own = role_name(scope.site.cluster, account, scope.said.region), cloud.pods_of(account)
    trust = _Trust(issuer.removeprefix("https://"), cloud.subject(account))
    yield Resource(own, _KIND, "aws.iam.Role").of(
        name=called,
        assume_role_policy=Text((Ref(_ISSUER, "arn"),), trust),
        tags=scope.tags(called),
    )
    for policy in policies:
        attached = f"{own}/{policy_name(policy)}"
        yield Resource(attached, _KIND, "aws.iam.RolePolicyAttachment").of(
            role=Ref(own, "name"), policy_arn=policy
        )


def role_name(cluster: str, account: str, region: str) -> str:
    """Of a service account's role: names are of the whole account, for all regions."""
    name = f"{cluster}-{account.replace('/', '.')}-{region}"
    if len(name) <= _NAME:
        return name
    return f"{name[: _NAME - 7]}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


@dataclass(frozen=True, slots=True)
class _Trust:
    """Whose tokens get a role: of one subject, made for AWS."""

    issuer: str
    subject: str

    def __call__(self, arn: str) -> str:
        said = {f"{self.issuer}:sub": self.subject, f"{self.issuer}:aud": _AUDIENCE}
        return _policy(
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRoleWithWebIdentity",
                "Principal": {"Federated": arn},
                "Condition": {"StringEquals": said},
            }
        )


def _policy(statement: Mapping[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
