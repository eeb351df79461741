"""What must not be seen in plain text: needles made of every secret of a stack, and where they were looked for."""

from __future__ import annotations

import base64
import os
import re
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

_SIGNATURE = "4dabf18193072939515e22adb298388d"  # marks a secret in an exported state
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n(.+?)-----END", re.DOTALL)
_TOKEN = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
# A private key holds the public one too, and its lines may be the very ones of a certificate.
_PUBLIC = frozenset({"certPem", "caCertPem", "certRequestPem", "publicKeyPem", "publicKeyOpenssh"})
_ENCRYPTION = re.compile(r"secret: [\\\"]*([A-Za-z0-9+/]{43}=)")


def needles(state: object) -> dict[str, str]:
    """Text that gives a secret away -> what it is: keys, tokens, encryption keys of an export in plain text."""
    out: dict[str, str] = {}
    public = "\n".join(_texts(state, below=_PUBLIC))
    for text in _secrets(state):
        for match in _KEY.finditer(text):
            lines = [line for line in match[1].split() if len(line) > 24 and line not in public]
            out |= dict.fromkeys(lines, "private key")
            whole = base64.b64encode(match[0].encode()).decode()
            out[whole[80:140]] = "private key in base64"
        out |= dict.fromkeys(_TOKEN.findall(text), "bootstrap token")
        out |= dict.fromkeys(_ENCRYPTION.findall(text), "encryption key")
    return out


def seen(found: Mapping[str, str], where: str, text: str) -> list[str]:
    """`where: what` of each needle in a text, without the needle."""
    return [f"{where}: {what}" for needle, what in found.items() if needle in text]


class CommandLines:
    """Every command line on this computer, lab machines included, sampled while the context lasts."""

    def __init__(self) -> None:
        self.lines: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> CommandLines:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(0.05):
            for entry in os.scandir("/proc"):
                if entry.name.isdigit():
                    try:
                        raw = Path(entry.path, "cmdline").read_bytes()
                    except OSError:
                        continue  # it has just ended
                    self.lines.add(raw.replace(b"\0", b" ").decode(errors="replace"))


def _secrets(value: object) -> Iterable[str]:
    """Every text that is, or is below, a secret."""
    if isinstance(value, dict):
        if _SIGNATURE in value:
            yield _plain(str(value.get("plaintext", "")))
            return
        for item in value.values():
            yield from _secrets(item)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item)


def _texts(value: object, *, below: frozenset[str], within: bool = False) -> Iterable[str]:
    """Every text at or below one of these keys."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, below=below, within=within or key in below)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, below=below, within=within)
    elif within and isinstance(value, str):
        yield _plain(value)


def _plain(text: str) -> str:
    """A plaintext is JSON; the scan wants its line breaks, and shell quoting leaves them alone."""
    return text.replace("\\n", "\n")
