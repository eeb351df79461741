"""Who is to get a kubeconfig: name, groups and life; none of the cluster's own identities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from operations.engine.engine import StackError
from stacks.cluster import certificates
from stacks.cluster.plan import Plan
from stacks.releases import known_flags

SHORTEST_S = 600  # of the API: spec.expirationSeconds of a CertificateSigningRequest
_LIMIT_FLAG = "cluster-signing-duration"
_LIMIT = "8760h"  # kube-controller-manager's own
# One that kubeadm makes, and no certificate of the stack has.
_OF_KUBEADM = "kubernetes-super-admin"
# 64 characters are the most that a field of a subject holds (RFC 5280, ub-common-name).
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._@+-]{0,62}[A-Za-z0-9])?")
_GROUP = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._@+:/-]{0,62}[A-Za-z0-9])?")
_HOURS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,4})?")
_OWNERS = {"system": "Kubernetes", "kubeadm": "kubeadm", "kube-ha": "kube-ha"}


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    name: str
    groups: tuple[str, ...]  # in their order, none twice
    life_s: int


def user(plan: Plan, name: str, groups: str, hours: str) -> User:
    """The user that is meant; `groups` are parted by blanks or commas.

    Raises StackError with everything that is wrong.
    """
    listed = tuple(dict.fromkeys(re.split(r"[\s,]+", groups.strip()) if groups.strip() else ()))
    problems = [*_of_name(plan, name), *_of_groups(listed), *_of_hours(plan, hours)]
    if problems:
        raise StackError("\n  ".join(["no certificate was asked for:", *problems]))
    return User(name=name, groups=listed, life_s=round(float(hours) * 3600))


def _of_name(plan: Plan, name: str) -> Iterator[str]:
    own = {leaf.common_name for leaf in certificates.table(plan)} | {_OF_KUBEADM}
    owner = _owner(name)
    if owner:
        yield f"USER: {name!r} is a name of {owner}; choose one that does not begin so"
    elif name in own:
        yield f"USER: {name!r} is an identity of the cluster itself; choose another name"
    elif not _NAME.fullmatch(name):
        yield (
            f"USER: {name!r} is not a name: up to 64 letters, digits and . _ @ + -, with a letter "
            "or digit at both ends"
        )


def _of_groups(groups: tuple[str, ...]) -> Iterator[str]:
    for group in groups:
        owner = _owner(group)
        if owner:
            yield (
                f"GROUPS: {group!r} is a group of {owner}, whose rights no config shows; bind the "
                "role that is meant to a group of your own (docs/operate/users.md)"
            )
        elif not _GROUP.fullmatch(group):
            yield (
                f"GROUPS: {group!r} is not a group: up to 64 letters, digits and . _ @ + : / -, "
                "with a letter or digit at both ends"
            )


def _owner(name: str) -> str:
    """Whose names begin like this one; empty where they are anybody's."""
    head, colon, _ = name.lower().partition(":")
    return _OWNERS.get(head, "") if colon else ""


def _of_hours(plan: Plan, hours: str) -> Iterator[str]:
    said = plan.spec.control_plane.controller_manager_args.get(_LIMIT_FLAG, _LIMIT)
    most_s = known_flags.seconds(said)
    if not _HOURS.fullmatch(hours):
        yield f"HOURS: {hours!r} is not a number of hours, as 12 or 0.5"
    elif float(hours) * 3600 < SHORTEST_S:
        text = f"HOURS: {hours} is under {SHORTEST_S} s, the shortest life that the API takes"
        yield f"{text}; 0.17 is enough"
    elif float(hours) * 3600 > most_s:
        yield (
            f"HOURS: {hours} is above {most_s / 3600:g}, the controller manager's {_LIMIT_FLAG}; "
            "ask for less, or raise it in controlPlane.controllerManagerArgs"
        )
