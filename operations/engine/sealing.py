"""Files that hold secrets: sealed with a key from the environment, or their owner's alone."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.fernet import Fernet

from operations.engine.engine import StackError

_NEW_KEY = "openssl rand -base64 32 | tr '+/' '-_'"


def key(variable: str) -> Fernet:
    """What seals and opens, by the key in that environment variable. Raises StackError."""
    try:
        return Fernet(os.environ.get(variable, ""))
    except ValueError:
        raise StackError(
            f"{variable} is not a key: 32 bytes in URL-safe base64 are needed\n  do: {_NEW_KEY}"
        ) from None


def put(path: Path, content: bytes) -> Path:
    """A file that only its owner reads, from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
    return path
