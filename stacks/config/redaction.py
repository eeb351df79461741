"""Secrets that stand where none belongs, cut out of whatever is printed.

A password in a URL or a key in the wrong field is refused, and the refusal goes to the log of a CI
system and into a pull request. So no message and no word of a plan shows one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_CUT = "***"
_QUERY = re.compile(r"(://[^\s'\"?#]*[?#])[^\s'\"]+")
# Up to the last @, for a password may hold one. Images are named by a sum behind theirs.
_OF_URL = re.compile(r"(://)[^\s'\"]*@(?!sha256:)")
_OF_USER = re.compile(r"[^\s'\"/@:]+:(?!//)[^\s'\"]*@(?!sha256:)")
# The same where all of the text is one value, with quotes and blanks in it perhaps.
_OF_VALUE = re.compile(r"(://).*@|\A(?![a-z][a-z0-9+.-]*://)[^/]*:.*@(?!sha256:)", re.DOTALL)
# Secrets of AWS, of its imitators too: 40 letters, small and big ones and digits.
_KEY = re.compile(
    r"(?<![A-Za-z0-9/+])(?=[^a-z\s]*[a-z])(?=[^A-Z\s]*[A-Z])(?=[^0-9\s]*[0-9])"
    r"(?P<head>[A-Za-z0-9/+]{4})[A-Za-z0-9/+]{36}(?![A-Za-z0-9/+])"
)
_TOKEN = re.compile(r"\b(?P<head>gh[pousr]_|github_pat_|glpat-|xox[abp]-|sk-)[A-Za-z0-9_-]{16,}")
_PEM = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END|\Z)", re.DOTALL)


def without(text: str) -> str:
    """`text` with *** in place of passwords of URLs, their queries, private keys and tokens."""
    if "@" in text:
        text = _OF_USER.sub(f"{_CUT}@", _OF_URL.sub(rf"\1{_CUT}@", text))
    if "://" in text:
        text = _QUERY.sub(rf"\1{_CUT}", text)
    text = _TOKEN.sub(rf"\g<head>{_CUT}", _KEY.sub(rf"\g<head>{_CUT}", text))
    return _PEM.sub(rf"\1 {_CUT} \2", text)


def of_value(value: object) -> object:
    """The same for a value of a config, whatever is in it."""
    return _each(value, _one)


def inside(value: object) -> object:
    """The same for every text in plain data of kube-ha."""
    return _each(value, without)


def _one(text: str) -> str:
    return without(_OF_VALUE.sub(rf"\1{_CUT}@", text) if "@" in text else text)


def _each(value: object, cut: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, Mapping):
        return {cut(str(key)): _each(item, cut) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each(item, cut) for item in value]
    return value


def is_key(text: str) -> bool:
    """Whether all of it has the shape of a secret key, and not that of a key's ID."""
    return _KEY.fullmatch(text) is not None
