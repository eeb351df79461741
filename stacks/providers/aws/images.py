"""Images of machines on AWS: the newest of an owner, as it is found while an update runs."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.providers.aws import bastions
from stacks.providers.aws.scope import Scope
from stacks.providers.resources import Lookup, Ref, Value


def lookups(scope: Scope) -> Iterator[Lookup]:
    """One for each image that machines are made of, and architecture."""
    site = scope.site
    wanted = [(scope.said.image, machine.arch) for machine in site.machines]
    wanted += [(bastions.image(site.spec), site.bastion.arch)] if site.bastion else []
    for said, arch in dict.fromkeys(wanted):
        owner, _, prefix = said.partition("/")
        if not prefix:
            continue
        like = {
            "name": f"{prefix}-{arch}-*",
            "architecture": "arm64" if arch == "arm64" else "x86_64",
            "virtualization-type": "hvm",
            "root-device-type": "ebs",
        }
        filters = [{"name": key, "values": [value]} for key, value in like.items()]
        asked: dict[str, Value] = {"most_recent": True, "owners": [owner], "filters": filters}
        yield Lookup(_name(said, arch), "aws.ec2.get_ami", asked)


def image(said: str, arch: str) -> Value:
    """The ID that is said, or that is found; machines that are there keep theirs."""
    return Ref(_name(said, arch)) if "/" in said else said


def _name(said: str, arch: str) -> str:
    return f"image {said} {arch}"
