"""Text in Markdown: what a config holds shows as it is, and does nothing.

The comment in a pull request is read by people who trust it. A value with an image, a link, a
mention or HTML in it must not become one there.
"""

from __future__ import annotations

import re

_SEVERAL = re.compile(r"`{2,}")
_ACTIVE = re.compile(r"([\\*\[\]!~#$|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
# What begins a block where it is the first of a line.
_FIRST = re.compile(r"^([-+=]|[0-9]+(?=[.)]))")
_ENTITIES = {"<": "&lt;", ">": "&gt;"}
# GitHub makes links of these in what has been rendered: a space of no width parts them, and an
# address is none any more where its slash is an entity.
_LINKS = (
    (re.compile(r"@"), "@&#8203;"),
    (re.compile(r"://"), ":&#47;/"),
    (re.compile(r"(?i)\b(www)\."), r"\1&#8203;."),
    (re.compile(r"\\#(?=[0-9])"), r"\\#&#8203;"),
    (re.compile(r"(?i)\b(GH)-(?=[0-9])"), r"\1&#8203;-"),
)


def escaped(text: str) -> str:
    """`text` on one line; what stands between single backticks stays code."""
    # Runs of backticks pair up by their length: with single ones alone the pairs are plain to see.
    parts = _SEVERAL.sub("''", " ".join(text.split())).split("`")
    if len(parts) % 2 == 0:  # the last one has no partner
        parts[-2:] = ["'".join(parts[-2:])]
    found = "".join(
        code(part) if number % 2 and part.strip() else _plain(part)
        for number, part in enumerate(parts)
    )
    return _FIRST.sub(_unlisted, found)


def _unlisted(first: re.Match[str]) -> str:
    """A sign as itself; a number whose point begins no list."""
    return f"\\{first[0]}" if not first[0].isdigit() else f"{first[0]}&#8203;"


def code(text: str) -> str:
    """`text` as code on one line, in a table too."""
    # In code nothing escapes a backslash, and one before a pipe would set that free.
    inner = re.sub(r"\\*\|", r"\\|", " ".join(text.replace("`", "'").split()))
    return f"`{inner}`"


def _plain(text: str) -> str:
    text = _ACTIVE.sub(r"\\\1", text.replace("&", "&amp;"))
    for sign, entity in _ENTITIES.items():
        text = text.replace(sign, entity)
    for link, apart in _LINKS:
        text = link.sub(apart, text)
    return text
