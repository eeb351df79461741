"""How big a config is where the engine hands it to the program: as JSON in one variable.

Linux takes no text of an environment that is longer than 32 pages (MAX_ARG_STRLEN), name and end
included. Beyond that no program starts, and the engine says "argument list too long" and no more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from stacks.config.problems import Problem

LIMIT = 32 * os.sysconf("SC_PAGE_SIZE")  # bytes; 131072 with pages of 4 KiB
_WARNED = 0.75  # of the limit; a host has some 250 bytes
_AROUND = len("PULUMI_CONFIG=") + 1
# What Pulumi.yaml says of keys that are not in the file: `"kube-ha:nodes": "{}"`, and so on.
_OF_PROJECT = 1024
# Go writes these letters so that JSON can be in a page of HTML.
_GO = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


class Found(NamedTuple):
    """What is said of a size."""

    problems: list[Problem]
    warnings: list[Problem]


def size(values: Mapping[str, object]) -> int:
    """Bytes of the variable, by the engine's full keys and their values; a bit more than less."""
    texts = {key: _text(value) for key, value in values.items()}
    # The official language host writes Go's JSON, that of toolchain/ Python's; the longer counts.
    official = len(_go(texts).encode(errors="replace"))
    return _AROUND + _OF_PROJECT + max(official, len(json.dumps(texts)))


def judged(size: int) -> Found:
    """Too big is a problem, and nearly so a warning."""
    if size < _WARNED * LIMIT:
        return Found([], [])
    text = (
        f"takes {size} bytes where the engine hands it to the program, in one environment "
        f"variable; this computer takes {LIMIT}: put hosts into files beside the stack file "
        "(pools.<name>.hostsFile, docs/install/your-machines.md)"
    )
    found = [Problem("config", text)]
    return Found(found, []) if size > LIMIT else Found([], found)


def _text(value: object) -> str:
    """A value as the engine hands it over: texts as they are, all else as JSON."""
    if isinstance(value, dict) and value.keys() == {"secure"}:
        return str(value["secure"])  # not shorter than what is encrypted in it
    return value if isinstance(value, str) else _go(value)


def _go(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_GO)
