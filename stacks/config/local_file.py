"""Files of the computer that plans, as a config or a command line names them: read with a bound.

A config comes out of a pull request. What it names may be a device that never ends, a pipe that
nobody writes to, or a disk image; none of them may hold up whoever plans.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MIB = 1 << 20
CONFIG_MOST = 16 * MIB  # a stack file, or a stack's memory: ten thousand nodes take two
MANIFEST_MOST = 32 * MIB
CHART_MOST = 32 * MIB
KEY_MOST = 1 * MIB
_READ_AT_ONCE = 1 * MIB


def place(name: str | Path, root: Path | None = None) -> Path:
    """Where a file lies: absolute, from `~`, or relative to `root`. Raises OSError."""
    try:
        found = Path(name).expanduser()
    except RuntimeError:
        raise OSError(errno.ENOENT, "nobody here has this home directory", str(name)) from None
    return found if root is None else root / found


def read(file: Path, most: int) -> bytes:
    """The content of a regular file of `most` bytes or less. Raises OSError."""
    # A pipe without a writer, or a terminal, would be waited for.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Is no regular file", str(file))
        parts, left = [], most + 1
        while left > 0 and (part := os.read(descriptor, min(left, _READ_AT_ONCE))):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(descriptor)
    if left <= 0:
        raise OSError(errno.EFBIG, f"Has more than {most // 1024} KiB", str(file))
    return b"".join(parts)


def why(error: OSError) -> str:
    """The reason as the end of a sentence."""
    return (error.strerror or str(error)).lower().replace("kib", "KiB")
