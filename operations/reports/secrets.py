"""What gives a stack away, cut out of texts: its own secrets, and whatever has the form of one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Self

from stacks.config import redaction

_SIGNATURE = "4dabf18193072939515e22adb298388d"  # marks a secret in an exported state
_CUT = "***"
_HEAD = 12  # characters by which a secret is looked for
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n(.+?)-----END", re.DOTALL)
# A private key holds the public one too, and its lines may be the very ones of a certificate.
_PUBLIC = frozenset({"certPem", "caCertPem", "certRequestPem", "publicKeyPem", "publicKeyOpenssh"})
_KEY_LINE = 24
_HEADLESS = re.compile(
    r"\A(?:(?!-----BEGIN [A-Z ]*PRIVATE KEY-----).)*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL
)
_ENCRYPTION = re.compile(r"secret: [\\\"]*([A-Za-z0-9+/]{43}=)")
_WORD = re.compile(rf"[A-Za-z0-9+/=_-]{{{_HEAD},}}")
# Tokens of joining nodes and of accounts, and what stands behind a name that says what it is.
_FORMS = (
    re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    re.compile(
        r"(?i)((?:client-key-data|passphrase|password|secret[-_]?(?:access[-_]?)?key|"
        r"(?:bearer|token))[\"']?\s*[:= ]\s*[\"']?)(?=[^\s\"']*[0-9])[^\s\"',;*]{12,}"
    ),
)


class Secrets:
    """Looks for any of them in a text, within words too, and for keys in base64 of base64."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_head: dict[str, set[str]] = {}
        self._odd: set[str] = set()  # with characters that no key has; few
        for text in texts:
            if _WORD.fullmatch(text):
                self._by_head.setdefault(text[:_HEAD], set()).add(text)
            elif len(text) >= _HEAD:
                self._odd.add(text)

    @classmethod
    def of(cls, state: object, others: Iterable[str] = ()) -> Self:
        """Of an exported state in plain text, and other texts that are secret as a whole."""
        public = "\n".join(_texts(state, below=_PUBLIC))
        return cls([*_of_state(state, public), *others])

    def without(self, text: str) -> str:
        """`text` with *** in place of each word that holds a secret or has the form of one."""
        # Keys that the stack does not know, as a kubelet's: over lines, and those whose begin
        # was cut off before.
        text = _HEADLESS.sub(_CUT, redaction.without(text))
        return "\n".join(self._line(line) for line in text.split("\n"))

    def are_in(self, text: str) -> bool:
        """Whether one of the stack's own is there."""
        return any(self._holds(word[0]) for word in _WORD.finditer(text)) or any(
            odd in text for odd in self._odd
        )

    def _line(self, line: str) -> str:
        line = _WORD.sub(lambda word: _CUT if self._holds(word[0]) else word[0], line)
        for odd in self._odd:
            line = line.replace(odd, _CUT)
        for form in _FORMS:
            line = form.sub(lambda found: f"{found[1] if found.re.groups else ''}{_CUT}", line)
        return line

    def _holds(self, word: str) -> bool:
        for at in range(len(word) - _HEAD + 1):
            if any(
                word.startswith(one, at) for one in self._by_head.get(word[at : at + _HEAD], ())
            ):
                return True
        return False


def _of_state(state: object, public: str) -> Iterator[str]:
    """Lines of private keys, keys of encryption, and keys as kubeconfigs hold them."""
    for text in _secrets(state):
        for match in _PEM.finditer(text):
            for line in match[1].split():
                if len(line) > _KEY_LINE and line not in public:
                    yield line
        yield from _ENCRYPTION.findall(text)
        for line in re.findall(r"client-key-data: ([A-Za-z0-9+/=]+)", text):
            # The head of the key is that of any other one of its kind.
            yield line[80:200]


def _secrets(value: object) -> Iterator[str]:
    """Every text that is, or is below, a secret."""
    if isinstance(value, Mapping):
        if _SIGNATURE in value:
            yield from _plain(str(value.get("plaintext", "")))
            return
        for item in value.values():
            yield from _secrets(item)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item)


def _plain(text: str) -> Iterator[str]:
    """A plaintext is JSON; a text in it may be one with line breaks in quotes of a shell."""
    try:
        yield from _all(json.loads(text))
    except ValueError:
        yield text


def _all(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _all(item)
    elif isinstance(value, list):
        for item in value:
            yield from _all(item)


def _texts(value: object, *, below: frozenset[str], within: bool = False) -> Iterator[str]:
    """Every text at or below one of these keys, of secrets too."""
    if isinstance(value, Mapping):
        if _SIGNATURE in value and within:
            yield from _plain(str(value.get("plaintext", "")))
        for key, item in value.items():
            yield from _texts(item, below=below, within=within or key in below)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, below=below, within=within)
    elif within and isinstance(value, str):
        yield value
