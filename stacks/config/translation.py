"""Pydantic's errors as problems, and what must not reach the model."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from stacks.config import problems
from stacks.config.problems import Problem
from stacks.releases import versions


def translate(details: Iterable[ErrorDetails], model: type[BaseModel]) -> list[Problem]:
    """Pydantic's errors as problems."""
    out = []
    for detail in details:
        loc = location(detail)
        out.append(Problem(problems.dotted(loc), _text(detail, loc, model)))
    return out


# Keys of a stack file that hold a secret of the user's; no section has them.
SECRETS = ("backupSecretKey",)
ADDON_SECRETS = "addonSecrets"  # values of Secrets of add-ons, by name, each encrypted


def opened(
    raw: Mapping[str, object], model: type[BaseModel]
) -> tuple[dict[str, object], list[Problem]]:
    """`raw` without what is not for the plan, and the secrets that stand where the plan looks.

    Empty top-level keys are the project file's defaults; encrypted ones that no section has belong
    to the program.
    """
    sections = _keys_at(model, ())
    kept: dict[str, object] = {}
    found: list[Problem] = []
    for key, value in raw.items():
        if key == ADDON_SECRETS:
            found += _plain(value)
            continue
        if value in (None, {}) or (_is_encrypted(value) and key not in sections):
            continue
        if key in SECRETS:
            text = "is a secret and stands here in plain text: replace it where it is from, then"
            found.append(Problem(key, f"{text} `pulumi config set --secret kube-ha:{key}`"))
            continue
        kept[str(key)] = value
        for loc in _encrypted(value, (str(key),)):
            text = "is encrypted; plans and previews show this value, so write it in plain text"
            found.append(Problem(problems.dotted(loc), text))
    return kept, found


def _plain(values: object) -> Iterator[Problem]:
    """What is wrong with values of which each is to be encrypted by itself."""
    path = f"kube-ha:{ADDON_SECRETS}"
    if not isinstance(values, Mapping) or _is_encrypted(values):
        text = "holds a value by name, each encrypted by itself:"
        yield Problem(ADDON_SECRETS, f"{text} `pulumi config set --secret --path {path}.NAME`")
        return
    for name, value in values.items():
        if not _is_encrypted(value):
            text = "is a secret and stands here in plain text: replace it where it is from, then"
            where = problems.dotted((ADDON_SECRETS, str(name)))
            yield Problem(where, f"{text} `pulumi config set --secret --path kube-ha:{where}`")


def _is_encrypted(value: object) -> bool:
    return isinstance(value, Mapping) and set(value) == {"secure"}


def _encrypted(value: object, loc: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if _is_encrypted(value):
        yield loc
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _encrypted(item, (*loc, str(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _encrypted(item, (*loc, index))


def location(detail: ErrorDetails) -> tuple[str | int, ...]:
    """The path of an error; pydantic marks an error in a mapping's key by a last part `[key]`."""
    loc = detail["loc"]
    marked = len(loc) > 1 and loc[-1] == "[key]" and detail["type"] != "extra_forbidden"
    return loc[:-1] if marked else loc


def _text(detail: ErrorDetails, loc: Sequence[str | int], model: type[BaseModel]) -> str:
    kind, value = detail["type"], detail["input"]
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown(str(loc[-1]), _keys_at(model, loc[:-1]))
    if isinstance(value, str) and _DATE_OF_ENGINE.fullmatch(value):
        day = value.partition(" ")[0]
        return f"is a date, of which the engine made {value!r}; put it in quotes: '{day}'"
    if kind == "value_error":
        return str(context.get("error"))
    if kind == "missing":
        return "is missing" + _description(model, loc)
    if kind == "string_type" and (value is None or tuple(loc) in _VERSIONS):
        return _no_text(value, loc)
    if kind == "literal_error":
        known = str(context.get("expected")).replace(" or ", ", ")
        return f"{problems.shown(value)} is not one of {known}"
    say = _SAY.get(kind)
    if say is not None:
        return say(problems.shown(value), context)
    return f"{problems.shown(value)}: {detail['msg']}"


# What the engine's YAML reader makes of one without quotes.
_DATE_OF_ENGINE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]{8,18} [+-][0-9]{4} [A-Z]{0,5}")
_VERSIONS = (("cluster", "kubernetes"), ("cluster", "etcd"), ("cluster", "containerd"))


def _no_text(value: object, loc: Sequence[str | int]) -> str:
    if value is None:
        return "is empty; write a text, or leave the key out"
    text = f"{problems.shown(value)} is a number to YAML; write all three parts, in quotes"
    if loc[-1] != "kubernetes":
        return text
    return f"{text}; known are {', '.join(map(repr, versions.known()))}"


_SAY: dict[str, Callable[[str, Mapping[str, object]], str]] = {
    "int_type": lambda value, _: f"{value} is not a whole number",
    "int_from_float": lambda value, _: f"{value} is not a whole number",
    "bool_type": lambda value, _: f"{value} is neither true nor false",
    "string_type": lambda value, _: f"{value} is not a text; put it in quotes",
    "greater_than_equal": lambda value, ctx: f"{value} is too small; at least {ctx['ge']}",
    "less_than_equal": lambda value, ctx: f"{value} is too big; at most {ctx['le']}",
    "model_type": lambda value, _: f"{value} is not a mapping; write key: value lines below it",
    "dict_type": lambda value, _: f"{value} is not a mapping; write key: value lines below it",
    "tuple_type": lambda value, _: (
        f"{value} is not a list; write [a, b] or lines that start with '-'"
    ),
    "json_invalid": lambda _value, ctx: f"cannot be read ({ctx.get('error')})",
}


def unknown(key: str, known: Sequence[str], *, what: str = "key") -> str:
    """What is wrong with a key that nobody knows: which one is meant, or which there are."""
    # Compared without case and underscores, so that pod_cidr and podCIDR find podCidr.
    plain = {name.lower(): name for name in known}
    said = f"unknown {what} `{problems.shown(key)[1:-1]}`"
    near = difflib.get_close_matches(key.lower().replace("_", ""), plain, n=1, cutoff=0.6)
    if near:
        return f"{said}; did you mean `{plain[near[0]]}`?"
    return f"{said}; known are {', '.join(known)}"


def _keys_at(model: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    section = _section_at(model, loc)
    if section is None:
        return []
    return [field.alias or name for name, field in section.model_fields.items()]


def _description(model: type[BaseModel], loc: Sequence[str | int]) -> str:
    section = _section_at(model, loc[:-1])
    for field in section.model_fields.values() if section else ():
        if field.alias == loc[-1] and field.description:
            return f" ({field.description})"
    return ""


def _section_at(model: type[BaseModel], loc: Sequence[str | int]) -> type[BaseModel] | None:
    """The section that a path of the config points to, None where it leads out of the model."""
    section: type[BaseModel] | None = model
    parts = iter(part for part in loc if isinstance(part, str))
    for part in parts:
        if section is None:
            return None
        fields = {field.alias: field.annotation for field in section.model_fields.values()}
        annotation = fields.get(part)
        section = _inner(annotation)
        if get_origin(annotation) is dict:
            next(parts, None)  # the name of a pool or node is the user's, no field
    return section


def _inner(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        found = _inner(part)
        if found is not None:
            return found
    return None
