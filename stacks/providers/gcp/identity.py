"""Roles of service accounts of the cluster in the project: Google has the keys of their tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stacks.config import token_issuers
from stacks.config.clouds import GcpIdentitySpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import cloud
from stacks.providers.gcp.scope import Scope
from stacks.providers.resources import Kind, Ref, Resource, Text, TokenKeys

_KIND: Kind = "workload identity"
_POOL, _PROVIDER = "identity-pool", "cluster"
_SUBJECT = 127  # characters of google.subject (IAM, "Workload Identity Federation", mappings)
_PATH = "machines.gcp.workloadIdentity"


def problems(spec: Spec, said: GcpIdentitySpec | None) -> Iterator[Problem]:
    """What Google would refuse, and another issuer than the one that it knows tokens by."""
    if said is None:
        return
    first, own = token_issuers.listed(spec)[0], token_issuers.own(spec)
    if first != own:
        text = (
            f"begins with {first}, and Google knows tokens by {own}; begin with that, or leave it "
            "out: Google has the keys, and asks no issuer"
        )
        yield Problem("controlPlane.serviceAccountIssuers", text)
    for account, roles in said.roles.items():
        path = f"{_PATH}.roles.{account}"
        if len(cloud.subject(account)) > _SUBJECT:
            text = (
                f"{cloud.subject(account)} has more than {_SUBJECT} characters, which Google takes"
            )
            yield Problem(path, text)
        yield from cloud.same_names(path, roles, cloud.role_name)


def identity(scope: Scope) -> Iterator[Resource]:
    """A pool of the cluster's, with the keys, and what members of it may do."""
    said, cluster = scope.said.workload_identity, scope.site.cluster
    if said is None:
        return
    yield Resource(_POOL, _KIND, "gcp.iam.WorkloadIdentityPool").of(
        workload_identity_pool_id=said.pool,
        description=f"Service accounts of cluster {cluster}",
    )
    yield Resource("identity-provider", _KIND, "gcp.iam.WorkloadIdentityPoolProvider").of(
        workload_identity_pool_id=Ref(_POOL, "workload_identity_pool_id"),
        workload_identity_pool_provider_id=_PROVIDER,
        attribute_mapping={"google.subject": "assertion.sub"},
        oidc={
            "issuer_uri": token_issuers.own(scope.site.spec),
            "jwks_json": TokenKeys(scope.site.token_keys),
        },
    )
    for account, roles in sorted(said.roles.items()):
        for role in roles:
            name = f"{cloud.pods_of(account)}/{cloud.role_name(role)}"
            yield Resource(name, _KIND, "gcp.projects.IAMMember").of(
                project=scope.said.project,
                role=role,
                member=Text((Ref(_POOL, "name"),), _Member(cloud.subject(account))),
            )


@dataclass(frozen=True, slots=True)
class _Member:
    """A principal of the pool, whose name has the project's number."""

    subject: str

    def __call__(self, pool: str) -> str:
        return f"principal://iam.googleapis.com/{pool}/subject/{self.subject}"
