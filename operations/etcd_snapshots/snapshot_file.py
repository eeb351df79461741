"""A snapshot of etcd on this computer: opened, and proved to be whole and of the cluster."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.padding import PKCS7

from operations.engine.engine import StackError
from operations.etcd_snapshots import snapshot_seal
from operations.etcd_snapshots.snapshot_seal import Seal

_CHUNK = 4 * 1024**2
_SALTED = b"Salted__"  # how `openssl enc` begins
_SALT = 8  # bytes of it that follow
_GZIP = bytes.fromhex("1f8b")
_MOST = 16 * 1024**3  # bytes of a snapshot: etcd's quota is 8 GiB at the most
_ITERATIONS = 10000  # as snapshot.sh; the key has 128 random bits, so their number is no matter
_BOLT = bytes.fromhex("edda0ced")  # bbolt's magic number, little endian, after the page's header
_BOLT_AT = 16
_SUM = hashlib.sha256().digest_size  # etcd's own sum of what comes before, at the end
_MARK = re.compile(rb"kube-ha-cluster:([a-z0-9.-]{1,253}):([0-9a-f]{1,64});")
_REVISION = re.compile(r"-\d{8}T\d{6}Z-(\d{1,19})-")
_MARK_MOST = 400  # bytes of a mark at the most
_OTHER = "\n  do: take another snapshot"
_NO_KEY = (
    "{} is to be encrypted, and this stack gives no key to open it\n"
    "  do: restore in the stack that made it; its state holds the key"
)


class SnapshotError(StackError):
    """A file that is not to be restored; the text says why and what else to take."""


def opened(file: Path, key: str, folder: Path, *, sealed: bool) -> Path:
    """The snapshot in plain: the file itself, or what it holds, in `folder`.

    `key` is the stack's backupKey. `sealed` wants proof that it was made with that, under this
    name; without it a file of any origin is taken. Raises SnapshotError.
    """
    try:
        _fits_its_sum(file)
        if sealed and not key:
            raise SnapshotError(_NO_KEY.format(file))
        found = _seal(file, key, sealed=sealed)
        with file.open("rb") as stream:
            head = stream.read(len(_SALTED) + _SALT)
        if not head.startswith(_SALTED):
            return _unpacked(file, folder)
        if not key:
            raise SnapshotError(_NO_KEY.format(file))
        skip, packed = len(head), folder / "snapshot.packed"
        content = found.content(file, skip) if found else _chunks(file, skip)
        _decrypt(head[len(_SALTED) :], key, content, packed)
        return _unpacked(packed, folder)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise SnapshotError(f"{file} was cut off, or is damaged{_OTHER}") from None
    except OSError as error:
        raise SnapshotError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise SnapshotError(
            f"{file} does not open with the key of this stack: it is of another cluster, was cut "
            f"off, or is damaged{_OTHER}"
        ) from None


def _seal(file: Path, key: str, *, sealed: bool) -> Seal | None:
    """What the file says of itself, and is true."""
    found = snapshot_seal.of(file)
    if found is None:
        if sealed:
            raise SnapshotError(
                f"{file} bears no seal of this stack, and etcd.backup.encrypt wants one: it is not "
                "encrypted, was cut off, or an older version of this program made it\n"
                "  do: take another snapshot; if you know where this one comes from, say "
                "UNAUTHENTICATED=1"
            )
        return None
    if key and not found.proves(file, key):
        raise SnapshotError(
            f"{file} is not what the key of this stack has sealed: it is of another cluster, or "
            f"was changed{_OTHER}"
        )
    if sealed and found.name != file.name:
        raise SnapshotError(
            f"{file} was made as {found.name}: under another name an old snapshot passes for a new "
            f"one\n  do: see that it is the one you want, and give it its name back"
        )
    return found


def _unpacked(file: Path, folder: Path) -> Path:
    with file.open("rb") as stream:
        if stream.read(len(_GZIP)) != _GZIP:
            return file
    plain = folder / "snapshot.db"
    left = _MOST
    with gzip.open(file) as packed, _own(plain) as out:
        while chunk := packed.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                raise SnapshotError(f"{file} holds more than any etcd does{_OTHER}")
            out.write(chunk)
    return plain


def _own(path: Path) -> IO[bytes]:
    """A new file that only this user may read."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _fits_its_sum(file: Path) -> None:
    """The sum is beside what `make backup` brings; it need not be there."""
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
    with _own(plain) as out:
        for chunk in chunks:
            out.write(padding.update(cipher.update(chunk)))
        out.write(padding.update(cipher.finalize()) + padding.finalize())


def check(plain: Path, *, named: Path, cluster: str, cluster_id: str, unmarked: bool) -> None:
    """Raises SnapshotError unless it is whole, and of this cluster.

    `named` is what the user calls it. `unmarked` takes one that does not say whose it is.
    """
    size = plain.stat().st_size
    with plain.open("rb") as stream:
        head = stream.read(_BOLT_AT + len(_BOLT))
    if head[_BOLT_AT:] != _BOLT:
        raise SnapshotError(f"{named} is not a snapshot of etcd{_OTHER}")
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
            f"copied from a running member's disk{_OTHER}"
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


def revision_named(file: Path) -> str:
    """The revision that a snapshot's name says; empty for a name of another form."""
    found = _REVISION.search(file.name)
    return found[1] if found else ""


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
