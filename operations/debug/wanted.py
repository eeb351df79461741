"""What `make debug` was asked for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from operations.engine.engine import StackError

Way = Literal["auto", "pod", "ssh"]
PROFILES = ("general", "baseline", "restricted", "netadmin", "sysadmin")  # kubectl's
_HOURS_MOST = 24
_POD = re.compile(
    r"([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)"
)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,500}")
_HOURS = re.compile(r"[0-9]{1,4}(\.[0-9]{1,3})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A node, or a pod; what runs there, of which image, for how long at most."""

    node: str = ""
    namespace: str = ""
    pod: str = ""
    container: str = ""  # of the pod; empty: its default one
    command: str = ""  # empty: a shell
    image: str = ""  # empty: that of the lock
    profile: str = ""  # of kubectl, for a pod; empty: what the tools need
    way: Way = "auto"
    limit_s: int = 4 * 3600


def parser() -> argparse.ArgumentParser:
    """Of the words behind the stack's name."""
    out = argparse.ArgumentParser(prog="python -m operations.debug", add_help=True)
    out.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    out.add_argument("--node", default="", help="on this node")
    out.add_argument("--pod", default="", help="in the namespaces of this one, namespace/name")
    out.add_argument("--container", default="", help="of the pod, whose processes are seen")
    out.add_argument("--command", default="", help="run this and end with its exit code")
    out.add_argument("--image", default="", help="another image with tools")
    out.add_argument("--profile", default="", help=f"kubectl's, for a pod: {', '.join(PROFILES)}")
    out.add_argument("--via", default="auto", help="auto, pod or ssh; for a node")
    out.add_argument("--hours", default="4", help=f"end then (4; {_HOURS_MOST} at most)")
    return out


def of(given: argparse.Namespace) -> Wanted:
    """Raises StackError with all that is wrong."""
    trouble = list(_trouble(given))
    if trouble:
        raise StackError("\n  ".join(trouble))
    found = _POD.fullmatch(given.pod)
    return Wanted(
        node=given.node,
        namespace=found[1] if found else "",
        pod=found[2] if found else "",
        container=given.container,
        command=given.command,
        image=given.image,
        profile=given.profile,
        way=given.via,
        limit_s=round(float(given.hours) * 3600),
    )


def _trouble(given: argparse.Namespace) -> Iterator[str]:
    if bool(given.node) == bool(given.pod):
        yield "NODE=name for a node, or POD=namespace/name for a pod: one of them"
    if given.pod and not _POD.fullmatch(given.pod):
        yield f"POD: {given.pod!r} is not namespace/name, as kube-system/coredns-5d78c9869d-abcde"
    if given.image and not _IMAGE.fullmatch(given.image):
        yield f"IMAGE: {given.image!r} is not a reference, as docker.io/nicolaka/netshoot:v0.15"
    if given.via not in ("auto", "pod", "ssh"):
        yield f"VIA: {given.via!r} is none of auto, pod, ssh"
    if given.profile and given.profile not in PROFILES:
        yield f"PROFILE: {given.profile!r} is none of {', '.join(PROFILES)}"
    for name in ("container", "profile"):
        if getattr(given, name) and not given.pod:
            yield f"{name.upper()}: has a meaning with POD alone"
    if given.pod and given.via != "auto":
        yield "VIA: has a meaning with NODE alone"
    if (
        not _HOURS.fullmatch(given.hours)
        or not 60 <= float(given.hours) * 3600 <= _HOURS_MOST * 3600
    ):
        yield f"HOURS: {given.hours!r} is not a number of hours up to {_HOURS_MOST}, as 0.5"
