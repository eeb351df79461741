"""The last line of an encrypted snapshot: who has the stack's key has written it, under this name.

components/scripts/seal.sh writes it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LABEL = b"kube-ha snapshot seal"
_HEAD = "kube-ha-snapshot:1"
_LINE = re.compile(rb"\nkube-ha-snapshot:1:([A-Za-z0-9.-]{1,400}):([0-9]{1,19}):([0-9a-f]{64})\n\Z")
_MOST = 600  # bytes of that line at the most
_CHUNK = 4 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """What a file says of itself. `proves` tells whether that is true."""

    name: str
    revision: int
    sum_: str
    size: int  # bytes of what lies before the line

    def proves(self, file: Path, key: str) -> bool:
        """Whether this was written with the stack's backupKey, and nothing was changed since."""
        own = hmac.digest(key.encode(), _LABEL, "sha256")
        total = hmac.new(own, digestmod=hashlib.sha256)
        total.update(f"{_HEAD}:{self.name}:{self.revision}\n".encode())
        for chunk in self.content(file):
            total.update(chunk)
        return hmac.compare_digest(total.hexdigest(), self.sum_)

    def content(self, file: Path, skip: int = 0) -> Iterator[bytes]:
        """What is sealed, from byte `skip` on."""
        left = self.size - skip
        with file.open("rb") as stream:
            stream.seek(skip)
            while left > 0 and (chunk := stream.read(min(_CHUNK, left))):
                left -= len(chunk)
                yield chunk


def of(file: Path) -> Seal | None:
    """The seal that a file bears; None: it has none."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        stream.seek(max(0, size - _MOST))
        found = _LINE.search(stream.read(_MOST))
    if found is None:
        return None
    name, revision, total = (part.decode() for part in found.groups())
    before = size - len(found[0])
    return Seal(name=name, revision=int(revision), sum_=total, size=before)
