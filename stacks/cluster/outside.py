"""What a config names and does not hold, known by sums: files of the computer that plans, a secret.

A key or certificate that is another one under the same name is a change like any other. Sums go
into the plan and the stack's memory, texts do not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from stacks.config import local_file
from stacks.config.object_store import SECRET
from stacks.config.spec import Spec

SECRET_NAME = f"kube-ha:{SECRET}"  # of the secret of the object store's key, beside files

Sums = tuple[tuple[str, str], ...]  # (name as the config has it, SHA-256), sorted


def read(spec: Spec, root: Path) -> Sums:
    """Of all that are there: a plan may be made on a computer that has none of them."""
    known = ((name, _sum(root, name)) for name in sorted({*_named(spec)}))
    return tuple((name, found) for name, found in known if found)


def with_secret(sums: Sums, secret: str, salt: str) -> Sums:
    """With the secret of the object store's key; "" is one that only an update knows.

    People may have chosen it: so little of a slow hash is kept that nobody is sure of a guess.
    """
    if not secret:
        return sums
    known = hashlib.scrypt(secret.encode(), salt=salt.encode(), n=1 << 14, r=8, p=1, dklen=4)
    return tuple(sorted({**dict(sums), SECRET_NAME: known.hex()}.items()))


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
