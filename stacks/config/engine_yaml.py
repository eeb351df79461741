"""YAML as the engine reads it: gopkg.in/yaml.v3, where PyYAML follows YAML 1.1.

`no` is a text and not false, `1:30` is a text and not ninety, `010` is eight. What the engine would
read as something that nobody means (a date) or not at all is refused, with line or path.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import yaml

_DEEPEST = 100  # levels of lists and mappings; the deepest there is, an audit policy, has ten
_MOST = 500_000  # values, aliases counted each time; ten thousand hosts have fifty thousand
_PLAIN = "plain"  # tag of scalars without quotes and without a tag of their own
_TEXT = "tag:yaml.org,2002:str"
_MERGE = "<<"
_BASE = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader  # C: ten times as fast

_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_NO_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<b16>[0-9a-fA-F]+)|0[bB](?P<b2>[01]+)|0[oO]?(?P<b8>[0-7]+)"
    r"|(?P<b10>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"([Tt][0-9:.]+(Z|[-+][0-9]{2}:[0-9]{2})| +[0-9]+:[0-9:.]+)?"
)


class NoYamlError(ValueError):
    """A text that the engine would not read, or not as it was meant; says the line."""


Place = tuple[str | int, ...]  # keys and indices on the way to a value


class Read(NamedTuple):
    """What a text says, and what in it is not read as it stands there."""

    value: object
    problems: list[tuple[Place, str]]
    lines: tuple[int, ...] = ()  # where each item of a list begins, if that is the value


def read(text: str) -> Read:
    """The first and only document of a text. Raises NoYamlError."""
    try:
        refuse_depth(text, _DEEPEST)
        node: yaml.Node | None = _Loader(text).get_single_node()
    except yaml.YAMLError as error:
        raise NoYamlError(f"is not YAML: {error}") from None
    found = _Document()
    value = None if node is None else found.value(node, ())
    items = node.value if isinstance(node, yaml.SequenceNode) else []
    return Read(value, found.problems, tuple(_line(item) for item in items))


class _Loader(_BASE):  # type: ignore[misc, valid-type]
    """Leaves it to this module what a scalar without quotes is."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: object) -> str:
        if kind is yaml.ScalarNode:
            plain = isinstance(implicit, tuple) and bool(implicit[0])
            return _PLAIN if plain else _TEXT
        return "tag:yaml.org,2002:" + ("seq" if kind is yaml.SequenceNode else "map")


def refuse_depth(text: str, deepest: int) -> None:
    """Before anything that calls itself for each level: the C parser would end the process.

    Raises NoYamlError, and yaml.YAMLError for what is not YAML.
    """
    depth = 0
    for event in yaml.parse(text, _BASE):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > deepest:
            raise NoYamlError(f"has more than {deepest} levels; nothing of use has so many")


class _Document:
    """One document on its way to plain values."""

    def __init__(self) -> None:
        self.problems: list[tuple[Place, str]] = []
        self._count = 0

    def value(self, node: yaml.Node, at: Place) -> object:
        self._count += 1
        if self._count > _MOST:
            raise NoYamlError(f"has more than {_MOST} values, those of aliases counted each time")
        if len(at) > _DEEPEST:  # an alias may lead back to where it stands
            raise NoYamlError(
                f"line {_line(node)}: more than {_DEEPEST} levels; does an alias lead back to "
                "where it stands?"
            )
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, at)
        _refuse_tag(node, "seq" if isinstance(node, yaml.SequenceNode) else "map")
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*at, index)) for index, item in enumerate(node.value)]
        return self._mapping(node, at)

    def _mapping(self, node: yaml.Node, at: Place) -> dict[str, object]:
        own: dict[str, object] = {}
        merged: dict[str, object] = {}
        has_merge = False
        for key, below in node.value:
            if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) == (_PLAIN, _MERGE):
                if has_merge:
                    raise NoYamlError(f"line {_line(key)}: key `{_MERGE}` is there twice")
                has_merge = True
                merged = self._merged(below, at)
                continue
            name = _key(key)
            if name in own:
                raise NoYamlError(f"line {_line(key)}: key `{name}` is there twice")
            own[name] = self.value(below, (*at, name))
        return merged | own if has_merge else own

    def _merged(self, node: yaml.Node, at: Place) -> dict[str, object]:
        """What `<<` brings: of a list the first mapping stands above the others."""
        out: dict[str, object] = {}
        for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(each, yaml.MappingNode):
                raise NoYamlError(f"line {_line(each)}: `{_MERGE}` takes mappings only")
            found = self.value(each, at)
            out = {**found, **out} if isinstance(found, dict) else out
        return out

    def _scalar(self, node: yaml.ScalarNode, at: Place) -> object:
        _refuse_tag(node, "str")
        text: str = node.value
        if node.tag != _PLAIN or text[:1].isalpha():
            return _WORDS.get(text, text) if node.tag == _PLAIN else text
        if _NO_JSON.fullmatch(text):
            self.problems.append((at, f"{text} is not a number that a config can hold"))
            return None
        if _DATE.fullmatch(text):
            words = (
                f"{text} without quotes is a date to YAML, and the engine makes another text of "
                f"it; put it in quotes: '{text}'"
            )
            self.problems.append((at, words))
            return text
        return scalar(text)


def scalar(text: str) -> object:
    """What a scalar without quotes is to the engine; dates and infinities aside."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    # Only what begins with a dot keeps its underscores.
    plain = text if text[0] == "." else text.replace("_", "")
    number: float | None = _integer(plain) if text[0] != "." else None
    if number is None and _FLOAT.fullmatch(plain):
        number = float(plain)
    return text if number is None or math.isinf(number) else number


def _integer(text: str) -> int | None:
    """A whole number that 64 bits hold, with a sign or without."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    digits = next((base, said) for base in (16, 2, 8, 10) if (said := found[f"b{base}"]))
    size = int(digits[1], digits[0])
    number = -size if found["sign"] == "-" else size
    fits = -(1 << 63) <= number < (1 << 63) or (not found["sign"] and number < (1 << 64))
    return number if fits else None


def _key(node: yaml.Node) -> str:
    """The name of a key: texts, and numbers and words whose text is the engine's too."""
    if not isinstance(node, yaml.ScalarNode):
        raise NoYamlError(f"is not YAML of a config: line {_line(node)}: a key is not a text")
    _refuse_tag(node, "str")
    text: str = node.value
    if node.tag != _PLAIN or (text[:1].isalpha() and text not in _WORDS):
        return text
    value = scalar(text)
    if isinstance(value, bool):
        return str(value).lower()
    odd = _NO_JSON.fullmatch(text) or _DATE.fullmatch(text) or isinstance(value, float)
    if odd or value is None or (isinstance(value, int) and str(value) != text):
        raise NoYamlError(f"line {_line(node)}: key `{text}` is not text to YAML; put it in quotes")
    return text


def _refuse_tag(node: yaml.Node, kind: str) -> None:
    if node.tag not in (_PLAIN, f"tag:yaml.org,2002:{kind}"):
        short = node.tag.replace("tag:yaml.org,2002:", "!!")
        text = f"line {_line(node)}: tag `{short}`; leave it out, or put the value in quotes"
        raise NoYamlError(f"is not YAML of a config: {text}")


def _line(node: yaml.Node) -> int:
    line: int = node.start_mark.line
    return line + 1
