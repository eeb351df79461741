"""YAML text of documents: block style, keys in the order given, no folded lines.

Not PyYAML's: the biggest part of the time of planning was spent there, and what its C part writes
is another text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Kubernetes reads YAML with a Go parser that takes more words for numbers and booleans than
# PyYAML does (1e3, 0o17, y, N): whatever is not plainly a word is quoted.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./()-]*(?: [A-Za-z0-9_./()-]+)*")
_NOT_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})

_LINE = re.compile(r"(?:[ -~]*[!-~])?")  # what stands as it is in a literal block
_ESCAPED = re.compile(
    r"[^ !#-\[\]-~]"
)  # all but printable ASCII, and what ends or begins an escape
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_LONGEST_KEY = 1000  # of 1024 characters (YAML 1.2.2, 7.4.2); a longer one is told apart by `?`


def documents(*values: Mapping[str, object]) -> str:
    """One YAML document a value, with `---` between. Raises TypeError for other than plain data."""
    return "---\n".join("".join(f"{line}\n" for line in _lines(value)) for value in values)


def _lines(value: object) -> list[str]:
    """The lines of a value, not indented."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return [line for key, item in value.items() for line in _entry(key, item)] or ["{}"]
    if isinstance(value, list | tuple):
        return [line for item in value for line in _under("- ", _lines(item))] or ["[]"]
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(value, int):
        return [str(value)]
    if isinstance(value, float):
        return [_number(value)]
    raise TypeError(f"{value!r} is no plain data")


def _entry(key: object, value: object) -> list[str]:
    if not isinstance(key, str):
        raise TypeError(f"{key!r} is no key")
    head = _plain(key) or _quoted(key)
    if len(head) > _LONGEST_KEY:
        return [f"? {head}", *_under(": ", _lines(value))]
    if not value or not isinstance(value, Mapping | list | tuple):
        return _under(f"{head}: ", _lines(value))
    # A list is not indented below its key.
    return [f"{head}:", *_under("  " if isinstance(value, Mapping) else "", _lines(value))]


def _under(head: str, lines: list[str]) -> list[str]:
    """The lines behind a head: the first on its line, the others indented."""
    indent = "  " if head else ""
    return [head + lines[0], *(indent + line if line else "" for line in lines[1:])]


def _text(text: str) -> list[str]:
    plain = _plain(text)
    if plain:
        return [plain]
    lines = text.removesuffix("\n").split("\n")
    if len(lines) > 1 or text != lines[0]:
        # What starts with a space, or ends in several newlines, would need more than `|`.
        starts, ends = lines[0][:1] not in ("", " "), lines[-1] != ""
        if starts and ends and all(_LINE.fullmatch(line) for line in lines):
            return ["|" if text.endswith("\n") else "|-", *lines]
    # Double, for the text travels within single quotes of a shell and is read there as a diff.
    return [_quoted(text)]


def _plain(text: str) -> str:
    """The text where it may stand without quotes, else nothing."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _NOT_WORDS else ""


def _quoted(text: str) -> str:
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if code < 0x100:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _number(value: float) -> str:
    text = {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(repr(value), repr(value))
    # Without a point YAML 1.1 takes 1e+20 for a word.
    return text.replace("e", ".0e") if "." not in text else text
