"""The bastion on AWS: what it is made of, where the config does not say."""

from __future__ import annotations

import re

from stacks.config.clouds import DEFAULT_BASTION_IMAGE
from stacks.config.fields import Arch
from stacks.config.spec import Spec

ARM = re.compile(r"a1\..*|[a-z]+[0-9]+g[a-z]*\..*")  # a g behind the number
_SMALLEST: dict[Arch, str] = {"amd64": "t3.micro", "arm64": "t4g.micro"}


def arch(type_: str) -> Arch:
    """Of a machine type."""
    return "arm64" if ARM.fullmatch(type_) else "amd64"


def image(spec: Spec) -> str:
    """What its image is called; empty where machines are made elsewhere."""
    said = spec.machines.aws
    if said is None:
        return ""
    usual = DEFAULT_BASTION_IMAGE if said.access == "tunnel" else said.image
    return said.bastion_image or usual


def machine_type(spec: Spec) -> str:
    """The one that is said, or the smallest; one image (ami-...) of all pools is theirs alone."""
    said = spec.machines.aws
    if said is not None and said.bastion_machine_type:
        return said.bastion_machine_type
    own = said is not None and (said.bastion_image or said.access == "tunnel")
    arches = {pool.arch for pool in spec.pools.values()}
    fixed = image(spec).startswith("ami-") and not own and len(arches) == 1
    return _SMALLEST[arches.pop() if fixed else "amd64"]
