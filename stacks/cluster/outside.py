"""Files of the computer that plans: what a config names and does not hold, known by sums.

A key or certificate that is another one under the same name is a change like any other. Sums go
into the plan and the stack's memory, texts do not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from stacks.config import local_file
from stacks.config.spec import Spec

Sums = tuple[tuple[str, str], ...]  # (name as the config has it, SHA-256), sorted


def read(spec: Spec, root: Path) -> Sums:
    """Of all that are there: a plan may be made on a computer that has none of them."""
    known = ((name, _sum(root, name)) for name in sorted({*_named(spec)}))
    return tuple((name, found) for name, found in known if found)


def marks(own: Sums, other: Sums) -> Mapping[str, str]:
    """By name, what stands for the content in one of two plans that are compared.

    A file that only one of them knows counts as the same in both.
    """
    return {**dict(other), **dict(own)}


def _named(spec: Spec) -> Iterator[str]:
    ssh = spec.machines.ssh
    for name in (ssh.private_key_file, ssh.bastion.private_key_file if ssh.bastion else None):
        if name is not None:
            yield name
    ingress = spec.front_doors.ingress
    for given in ingress.certificates if ingress else ():
        yield from (given.certificate, given.key)


def _sum(root: Path, name: str) -> str:
    try:
        found = local_file.read(local_file.place(name, root), local_file.KEY_MOST)
    except OSError:
        return ""
    return hashlib.sha256(found).hexdigest()
