"""What a config names and does not hold, known by sums: files of the computer that plans, secrets.

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
from stacks.config.translation import ADDON_SECRETS

SECRET_NAME = f"kube-ha:{SECRET}"  # of the secret of the object store's key, beside files
_OF_ADDONS = f"kube-ha:{ADDON_SECRETS}."  # of values of Secrets of add-ons

Sums = tuple[tuple[str, str], ...]  # (name as the config has it, SHA-256), sorted


def read(spec: Spec, root: Path) -> Sums:
    """Of all that are there: a plan may be made on a computer that has none of them."""
    known = ((name, _sum(root, name)) for name in sorted({*_named(spec)}))
    return tuple((name, found) for name, found in known if found)


def with_secrets(sums: Sums, secrets: Mapping[str, str], salt: str) -> Sums:
    """With those that the stack file has encrypted, by name; "" is one that only an update knows.

    People may have chosen them: so little of a slow hash is kept that nobody is sure of a guess.
    """
    known = {
        name: hashlib.scrypt(text.encode(), salt=salt.encode(), n=1 << 14, r=8, p=1, dklen=4).hex()
        for name, text in secrets.items()
        if text
    }
    return tuple(sorted({**dict(sums), **known}.items()))


def name_of_value(value: str) -> str:
    """What the value of a Secret of an add-on is known by."""
    return f"{_OF_ADDONS}{value}"


def value_of(name: str) -> str:
    """The value that is known by this name; empty: it is something else."""
    return name.removeprefix(_OF_ADDONS) if name.startswith(_OF_ADDONS) else ""


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
