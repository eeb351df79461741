"""What there is of a cluster in a cloud, as data.

It is registered as it stands (components/machines/cloud.py), and the change plan compares it with
that of the last success (stacks/cluster/cloud_differences.py): there is no second list of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

Kind = Literal[
    "network",
    "firewall",
    "load balancer",
    "ingress",
    "account",
    "workload identity",
    "bastion",
    "machines",
    "DNS zone",
    "API name",
]


@dataclass(frozen=True, slots=True)
class Ref:
    """An output of another resource, or of a lookup."""

    name: str
    output: str = "id"


@dataclass(frozen=True, slots=True)
class Text:
    """A text, or a number, of such outputs; a ValueError of `make` ends the update."""

    of: tuple[Ref, ...]
    make: Callable[..., str | int]  # compared by identity, so where that matters no lambda


@dataclass(frozen=True, slots=True, kw_only=True)
class UserData:
    """What cloud-init makes of a machine. It holds keys, so only an update has its text."""

    name: str
    disks: tuple[str | Text, ...] | None = None
    ssm: bool = False
    guest_agent: bool = False
    pod_metadata: bool = False


@dataclass(frozen=True, slots=True)
class LoginKey:
    """The public key of those who log in to machines. Only an update has it."""


@dataclass(frozen=True, slots=True)
class TokenKeys:
    """Keys by which tokens of service accounts are checked, as JWKS. Only an update has them."""

    generations: tuple[int, ...]  # sorted


Value: TypeAlias = (
    "bool | int | str | Ref | Text | UserData | LoginKey | TokenKeys | Sequence[Value] "
    "| Mapping[str, Value] | None"
)


@dataclass(frozen=True, slots=True)
class Lookup:
    """What the cloud is asked during an update. That it answers otherwise cannot be told before."""

    name: str  # by which others refer to it
    function: str  # of the SDK, as "aws.ec2.get_ami"
    arguments: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a resource is made, beside what it is made of. Other resources are said by name."""

    after: tuple[str, ...] = ()  # what it waits for, beside that which it refers to
    ignores: tuple[str, ...] = ()  # properties that count when it is made
    deleted_with: str = ""  # the one that takes it along
    deleted_first: bool = False  # before another one is made in its place
    trigger: str | None = None  # another one replaces it
    # Properties whose change replaces it, where others refer to it; a list may grow.
    stands_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resource:
    """One registration."""

    name: str  # behind the cluster's; unique, stable
    kind: Kind  # the line of the change plan that tells of it
    type: str  # class of the SDK, as "aws.ec2.Vpc"
    opts: Options = field(default_factory=Options)
    properties: Mapping[str, Value] = field(default_factory=dict)

    def of(self, **properties: Value) -> Resource:
        """The same, made of these, in the words of the SDK; None is not said."""
        return replace(self, properties=properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfMachine:
    """One machine, and what it has for itself."""

    resources: tuple[Resource, ...]
    machine: str  # name of the machine itself: it waits for its turn, and takes all traces along
    ready: str  # name of the one that is there last
    address: Value  # by which it is reached
    id: Value  # by which the cloud knows it


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """All of a cluster. Each stands behind those that it refers to."""

    around: tuple[Resource | Lookup, ...] = ()
    machines: Mapping[str, OfMachine]  # by node
    bastion: Value = None  # its public address; None: it has none
    balancer: Value = None  # address or name of the load balancer; None: there is none
    # Names of what a load balancer is made of: before they are there it serves nobody.
    balancer_parts: tuple[str, ...] = ()
    ingress: Value = None  # the same of that for what runs in the cluster
    record: Resource | None = None  # of the API's name, which waits for what it points to
    record_values: tuple[Value, ...] = ()  # addresses, or a name
    record_is_alias: bool = False  # its addresses are whatever that name has
