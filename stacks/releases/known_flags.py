"""What a version of Kubernetes says of its own flags and feature gates; read from artifacts/flags/.

`artifacts.known_flags` writes those files, by asking the programs themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address

from stacks.releases import versions

_FOLDER = versions.LOCK.parent / "flags"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    stage: str  # alpha, beta, ga, deprecated
    on: bool  # where nobody says anything
    locked: bool
    of_kubelet: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Of one minor version."""

    flags: Mapping[str, Mapping[str, str]]  # type by flag, by program
    choices: Mapping[str, Sequence[str]]  # by flag: all that it takes
    gates: Mapping[str, Gate]


def of(kubernetes: str) -> Known | None:
    """What is known of a version's programs, None where nobody has asked them yet."""
    return _of_minor(".".join(map(str, versions.minor(kubernetes))))


@cache
def _of_minor(minor: str) -> Known | None:
    file = _FOLDER / f"{minor}.json"
    if not file.exists():
        return None
    held = json.loads(file.read_text())
    gates = {
        name: Gate(
            stage=words[0],
            on=words[1] == "on",
            locked="locked" in words,
            of_kubelet="not-kubelet" not in words,
        )
        for name, text in held["gates"].items()
        for words in [text.split()]
    }
    programs = {name: flags for name, flags in held.items() if name.startswith("kube-")}
    return Known(flags=programs, choices=held["choices"], gates=gates)


_DURATION = re.compile(r"[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|ms|s|m|h))+)")
_BOOL = ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False")
_FORMS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "bool": (re.compile("|".join(_BOOL)), "is neither true nor false"),
    "duration": (_DURATION, "is not a time; write it as '30s', '5m' or '1h30m'"),
    "float": (re.compile(r"-?[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?"), "is not a number"),
    "int": (re.compile(r"-?[0-9]{1,18}"), "is not a whole number"),
    "Level": (re.compile(r"[0-9]{1,9}"), "is not a whole number"),
    "quantity": (
        re.compile(r"[0-9]+(\.[0-9]+)?([kMGTPE]i?|m)?"),
        "is not an amount; write as '2Gi'",
    ),
    "mapStringString": (
        re.compile(r"([^=,]+=[^=,]*)(,[^=,]+=[^=,]*)*|"),
        "is not a list of key=value",
    ),
    "int32Slice": (re.compile(r"[0-9]+(,[0-9]+)*"), "is not a list of numbers"),
}
_SAME = {"int32": "int", "int64": "int", "uint": "int", "uint32": "int", "float32": "float"}
_SAME |= {"float64": "float", "stringToString": "mapStringString"}
_MOST = {"int32": 2**31 - 1, "uint32": 2**32 - 1}


def wrong(kind: str, choices: Sequence[str], value: str) -> str:
    """Why a flag of this type does not take a value; empty where it does, as far as can be told."""
    if choices:
        said = value.split(",") if kind == "strings" else [value]
        strange = [one for one in said if one not in choices]
        return f"is not one of {', '.join(choices)}" if strange else ""
    if kind == "ip":
        return "" if _is_ip(value) else "is not an IP address"
    if kind == "portRange":
        return "" if port_range(value) else "is not a range of ports; write it as '30000-32767'"
    form = _FORMS.get(_SAME.get(kind, kind))
    if form is None or form[0].fullmatch(value):
        big = kind in _MOST and abs(int(value)) > _MOST[kind]
        return f"is beyond {_MOST[kind]}" if big else ""
    return form[1]


_UNITS_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(duration: str) -> float:
    """Of a flag's value that `wrong` takes for a time, as '1h30m'."""
    parts = re.findall(r"([0-9.]+)(ns|us|ms|s|m|h)", duration)
    total = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    return -total if duration.startswith("-") else total


def port_range(text: str) -> range | None:
    """`first-last`, `first+more` or one port, as Kubernetes reads it; None for anything else."""
    found = re.fullmatch(r" *([0-9]{1,5})(?:([-+])([0-9]{1,5}))? *", text)
    if found is None:
        return None
    first = int(found[1])
    last = first
    if found[2]:
        last = int(found[3]) + (first if found[2] == "+" else 0)
    if not 0 < first <= last <= 65535:
        return None
    return range(first, last + 1)


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
