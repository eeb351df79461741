"""Faults on purpose, for tests: connections refused, dropped or delayed, commands that fail.

`KUBE_HA_FAULTS` in the environment of `pulumi` holds rules, separated by commas:

    refuse:GLOB[:COUNT]           every attempt to connect is answered with "connection refused"
    drop:GLOB[:COUNT][:AFTER]     the connection is cut AFTER (default 0s) the command has started
    delay:GLOB[:COUNT]:TIME       TIME passes before the first attempt to connect
    fail:GLOB[:COUNT]             the command is not run and fails; for local commands too

GLOB is matched against the resource's name (`dev-master-*`), COUNT is `once` or a number and counts
the times a rule has acted; without it a rule acts always. TIME is `500ms` or `2s`. Counting starts
again with each run of the engine. Example:
`KUBE_HA_FAULTS=drop:dev-master-2-converge:once,delay:*:2s`.

`KUBE_HA_CONNECTION_LOG` names a file that gets one line for every SSH connection opened: time,
address, resource.
"""

from __future__ import annotations

import fnmatch
import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

Action = Literal["refuse", "drop", "delay", "fail"]

_TIME = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s)")


@dataclass(slots=True)
class Rule:
    """One rule and how many times it may still act (None: always)."""

    action: Action
    pattern: str
    left: int | None = None
    time_s: float = 0.0

    def takes(self, action: Action, name: str) -> bool:
        """Whether the rule acts now; if so one of its times is used up."""
        if self.action != action or self.left == 0 or not fnmatch.fnmatchcase(name, self.pattern):
            return False
        if self.left is not None:
            self.left -= 1
        return True


@dataclass(slots=True)
class Faults:
    """All rules of a plugin process."""

    rules: list[Rule] = field(default_factory=list)
    log: Path | None = None

    def find(self, action: Action, name: str) -> Rule | None:
        """The first rule that acts on this resource now."""
        return next((rule for rule in self.rules if rule.takes(action, name)), None)

    def count(self, address: str, name: str) -> None:
        """Write down an SSH connection that has been opened."""
        if self.log is None:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self.log.open("a", encoding="utf-8") as file:
            file.write(f"{now} {address} {name}\n")


def from_environment() -> Faults:
    """Rules and log the environment asks for. Raises ValueError naming the rule that is wrong."""
    text = os.environ.get("KUBE_HA_FAULTS", "")
    log = os.environ.get("KUBE_HA_CONNECTION_LOG")
    return Faults(parse(text), Path(log) if log else None)


def parse(text: str) -> list[Rule]:
    """Rules of `KUBE_HA_FAULTS`. Raises ValueError naming the rule that is wrong."""
    return [_rule(part.strip()) for part in text.split(",") if part.strip()]


def _rule(text: str) -> Rule:
    word, _, rest = text.partition(":")
    pattern, *arguments = rest.split(":")
    action = next((known for known in get_args(Action) if known == word), None)
    if action is None or not pattern:
        message = f"KUBE_HA_FAULTS: {text!r}: want {'|'.join(get_args(Action))}:GLOB[:COUNT][:TIME]"
        raise ValueError(message)
    rule = Rule(action, pattern)
    for argument in arguments:
        if argument == "once":
            rule.left = 1
        elif argument.isdecimal():
            rule.left = int(argument)
        elif match := _TIME.fullmatch(argument):
            scale = 0.001 if match["unit"] == "ms" else 1.0
            rule.time_s = float(match["number"]) * scale
        else:
            message = f"KUBE_HA_FAULTS: {text!r}: {argument!r} is neither a count nor a time"
            raise ValueError(message)
    return rule
