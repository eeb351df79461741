"""A snapshot of etcd on this computer: opened, and proved to be whole and of the cluster."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.padding import PKCS7

from operations.engine import StackError

_CHUNK = 4 * 1024**2
_SALTED = b"Salted__"  # how `openssl enc` begins
_ITERATIONS = 10000  # as snapshot.sh; the key has 128 random bits, so their number is no matter
_BOLT = bytes.fromhex("edda0ced")  # bbolt's magic number, little endian, after the page's header
_BOLT_AT = 16
_SUM = hashlib.sha256().digest_size  # etcd's own sum of what comes before, at the end
_MARK = re.compile(rb"kube-ha-cluster:([a-z0-9.-]{1,253}):([0-9a-f]{1,64});")
_MARK_MOST = 400  # bytes of a mark at the most


class SnapshotError(StackError):
    """A file that is not to be restored; the text says why and what else to take."""


def opened(file: Path, key: str, folder: Path) -> Path:
    """The snapshot in plain: the file itself, or its decrypted text in `folder`.

    `key` is the stack's backupKey. Raises SnapshotError.
    """
    try:
        _fits_its_sum(file)
        with file.open("rb") as stream:
            if stream.read(len(_SALTED)) != _SALTED:
                return file
            if not key:
                raise SnapshotError(
                    f"{file} is encrypted, and this stack gives no key\n"
                    "  do: restore in the stack that made it; its state holds the key"
                )
            plain = folder / "snapshot.db"
            _decrypt(stream.read(8), key, _chunks(file, skip=16), plain)
            return plain
    except OSError as error:
        raise SnapshotError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise SnapshotError(
            f"{file} does not open with the key of this stack: it is of another cluster, was cut "
            "off, or is damaged\n  do: take another snapshot"
        ) from None


def _fits_its_sum(file: Path) -> None:
    """The sum lies beside what `make backup` brings; it need not be there."""
    beside = file.with_name(f"{file.name}.sha256")
    if beside.exists() and beside.read_text().split()[:1] != [digest(file)]:
        raise SnapshotError(
            f"{file} is not what {beside.name} says: it was cut off or changed\n"
            "  do: fetch it once more, or take another snapshot"
        )


def _decrypt(salt: bytes, key: str, chunks: Iterator[bytes], plain: Path) -> None:
    """As `openssl enc -d -aes-256-cbc -pbkdf2`. Raises ValueError where it does not open."""
    kdf = PBKDF2HMAC(algorithm=hashes.SHA256(), length=48, salt=salt, iterations=_ITERATIONS)
    secret = kdf.derive(key.encode())
    cipher = Cipher(algorithms.AES(secret[:32]), modes.CBC(secret[32:])).decryptor()
    padding = PKCS7(algorithms.AES.block_size).unpadder()
    descriptor = os.open(plain, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        for chunk in chunks:
            out.write(padding.update(cipher.update(chunk)))
        out.write(padding.update(cipher.finalize()) + padding.finalize())


def check(plain: Path, *, named: Path, cluster: str, cluster_id: str, unmarked: bool) -> None:
    """Raises SnapshotError unless it is whole, and of this cluster.

    `named` is what the user calls it. `unmarked` takes one that does not say whose it is.
    """
    other = "\n  do: take another snapshot"
    size = plain.stat().st_size
    with plain.open("rb") as stream:
        head = stream.read(_BOLT_AT + len(_BOLT))
    if head[_BOLT_AT:] != _BOLT:
        raise SnapshotError(f"{named} is no snapshot of etcd{other}")
    total, tail, marks = hashlib.sha256(), b"", set()
    left = size - _SUM
    for chunk in _chunks(plain):
        part = chunk[:left]
        left -= len(part)
        total.update(part)
        marks |= set(_MARK.findall(tail[-_MARK_MOST:] + part))
        tail = (tail + chunk)[-max(_SUM, _MARK_MOST) :]
    if total.digest() != tail[-_SUM:]:
        raise SnapshotError(
            f"{named} is not whole: etcd's own sum at its end does not fit, so it was cut off, or "
            f"copied from a running member's disk{other}"
        )
    _is_of(cluster, cluster_id, marks, named, unmarked=unmarked)


def _is_of(
    cluster: str, cluster_id: str, marks: set[tuple[bytes, bytes]], named: Path, *, unmarked: bool
) -> None:
    found = {(name.decode(), number.decode()) for name, number in marks}
    if (cluster, cluster_id) in found:
        return
    if found:
        whose = " or ".join(f"{name} ({number})" for name, number in sorted(found))
        raise SnapshotError(
            f"{named} is of cluster {whose}, not of {cluster} ({cluster_id})\n"
            "  do: restore it in its own stack; another cluster's keys could read none of it"
        )
    if not unmarked:
        raise SnapshotError(
            f"{named} does not say of which cluster it is, so it was not made by this program\n"
            f"  do: if you know that it is of {cluster}, say UNMARKED=1"
        )


def digest(file: Path) -> str:
    """Its SHA-256 in hexadecimal digits."""
    total = hashlib.sha256()
    for chunk in _chunks(file):
        total.update(chunk)
    return total.hexdigest()


def _chunks(file: Path, skip: int = 0) -> Iterator[bytes]:
    with file.open("rb") as stream:
        stream.seek(skip)
        while chunk := stream.read(_CHUNK):
            yield chunk
