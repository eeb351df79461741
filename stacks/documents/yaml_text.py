"""YAML text of documents: block style, keys in the order given, no folded lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import yaml
from yaml.emitter import ScalarAnalysis

# Kubernetes reads YAML with a Go parser that takes more words for numbers and booleans than
# PyYAML does (1e3, 0o17, y, N): whatever is not plainly a word is quoted.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./()-]*(?: [A-Za-z0-9_./()-]+)*")
_WIDTH = 10_000  # characters of a line, which is never reached
_SHORT = 40  # characters, of a key or a word
_NOT_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


class _Dumper(yaml.SafeDumper):
    """Not the C one: it writes some texts differently, and not every PyYAML has it."""

    _analyses: ClassVar[dict[str, ScalarAnalysis]] = {}

    def ignore_aliases(self, data: object) -> bool:
        return True

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        """Of each text once: it is read character by character, and most are keys that recur."""
        if len(scalar) > _SHORT:
            return super().analyze_scalar(scalar)
        if scalar not in self._analyses:
            self._analyses[scalar] = super().analyze_scalar(scalar)
        return self._analyses[scalar]

    def write_plain(self, text: str, split: bool = True) -> None:  # noqa: FBT001,FBT002 - PyYAML's signature
        """At once and not by character: no line is folded, and no plain text has a break."""
        if not text.isascii() or not text.isprintable() or self.column + len(text) >= _WIDTH:
            super().write_plain(text, split)
            return
        if self.root_context:
            self.open_ended = True
        written = text if self.whitespace or not text else f" {text}"
        self.column += len(written)
        self.whitespace = self.indention = False
        self.stream.write(written)

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001,FBT002 - PyYAML's signature
        return super().increase_indent(flow, indentless)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    if "\n" in value:
        style: str | None = "|"
    elif _PLAIN.fullmatch(value) and value.lower() not in _NOT_WORDS:
        style = None
    else:
        # Double, for the text travels within single quotes of a shell and is read there as a diff.
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)


_Dumper.add_representer(str, _text)


def documents(*values: Mapping[str, object]) -> str:
    """One YAML document a value, with `---` between; raises TypeError for what is not JSON."""
    return written(json.dumps(values))


# The emitter is slow, and the change plan, the resources and the memory ask for the same.
@lru_cache(maxsize=256)
def written(values: str) -> str:
    """The same, of a JSON list of documents."""
    return yaml.dump_all(
        json.loads(values), Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=False
    )


def on_one_line(value: Mapping[str, object]) -> str:
    """The same text in flow style: `{level: None, verbs: [get, list]}`."""
    return _written_flow(json.dumps(value))


@lru_cache(maxsize=256)
def _written_flow(value: str) -> str:
    text: str = yaml.dump_all(
        [json.loads(value)],
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=True,
        width=_WIDTH,
        allow_unicode=False,
    )
    return text.rstrip("\n")
