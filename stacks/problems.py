"""What is wrong with a config, for a person: where, the value, the reason, the way out."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

# Values of fields without default that let the other checks run when they are missing or wrong.
_STAND_INS: dict[tuple[str, ...], object] = {
    ("cluster", "name"): "unnamed",
    ("cluster", "kubernetes"): "0.0.0",
}


class Problem(NamedTuple):
    """One thing to mend: config path such as `pools.worker.count`, and the text."""

    path: str
    text: str


def translate(details: Iterable[ErrorDetails], model: type[BaseModel]) -> list[Problem]:
    """Pydantic's errors as problems."""
    out = []
    for detail in details:
        loc = _loc(detail)
        out.append(Problem(dotted(loc), _text(detail, loc, model)))
    return out


def dotted(loc: Sequence[str | int]) -> str:
    """`("pools", "worker", "taints", 0, "key")` as `pools.worker.taints[0].key`."""
    out = ""
    for part in loc:
        if isinstance(part, int):
            out += f"[{part}]"
        else:
            # A key that is no plain word is quoted, for a path must stay one line that can be read.
            word = part if part.replace("-", "").replace("_", "").isalnum() else json.dumps(part)
            out += f".{word}" if out else word
    return out or "config"


def unrelated(late: Iterable[Problem], *, to: Iterable[Problem]) -> list[Problem]:
    """Those of `late` that are not about a path above, at or below one in `to`."""
    known = [_steps(path) for path, _ in to]
    return [
        problem
        for problem in late
        if not any(_same_branch(_steps(problem.path), wrong) for wrong in known)
    ]


def _steps(path: str) -> list[str]:
    return path.replace("[", ".[").split(".")


def _same_branch(one: list[str], other: list[str]) -> bool:
    return all(a == b for a, b in zip(one, other, strict=False))


def without_empty(raw: Mapping[str, object]) -> dict[str, object]:
    """`raw` without top-level keys that are empty: the project file gives `{}` as their default."""
    return {str(key): value for key, value in raw.items() if value not in (None, {})}


def mended(text: str, details: Iterable[ErrorDetails]) -> str:
    """The JSON config without its wrong values, so that the rest can be checked.

    Returns `text` itself when nothing can be taken away.
    """
    try:
        config: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    # Last list items first: removing one moves those behind it.
    for detail in sorted(details, key=lambda d: [str(p).rjust(8) for p in _loc(d)], reverse=True):
        loc = _loc(detail)
        stand_in = _STAND_INS.get(tuple(str(part) for part in loc))
        if stand_in is not None:
            _set(config, loc, stand_in)
        elif detail["type"] == "missing":
            _remove(config, loc[:-1])
        else:
            _remove(config, loc)
    return json.dumps(config)


def _set(config: object, loc: Sequence[str | int], value: object) -> None:
    parent = _at(config, loc[:-1])
    if isinstance(parent, dict):
        parent[loc[-1]] = value


def _remove(config: object, loc: Sequence[str | int]) -> None:
    if not loc:
        return
    parent, last = _at(config, loc[:-1]), loc[-1]
    if isinstance(parent, dict) and isinstance(last, str):
        parent.pop(last, None)
    elif isinstance(parent, list) and isinstance(last, int) and last < len(parent):
        del parent[last]


def _at(config: object, loc: Sequence[str | int]) -> object:
    for part in loc:
        if isinstance(config, dict) and isinstance(part, str):
            config = config.get(part)
        elif isinstance(config, list) and isinstance(part, int) and part < len(config):
            config = config[part]
        else:
            return None
    return config


def _loc(detail: ErrorDetails) -> tuple[str | int, ...]:
    """The path of an error; pydantic marks an error in a mapping's key by a last part `[key]`."""
    loc = detail["loc"]
    return loc[:-1] if loc and loc[-1] == "[key]" else loc


def _text(detail: ErrorDetails, loc: Sequence[str | int], model: type[BaseModel]) -> str:
    kind, value = detail["type"], detail["input"]
    context = detail.get("ctx", {})
    if isinstance(value, dict) and set(value) == {"secure"}:
        return "a secret may not stand here, for plans and previews show it; write it in the open"
    if kind == "extra_forbidden":
        return _unknown(str(loc[-1]), _keys_at(model, loc[:-1]))
    if kind == "value_error":
        return str(context.get("error"))
    if kind == "missing":
        return "is missing" + _description(model, loc)
    if kind == "literal_error":
        return f"{shown(value)} is not one of {str(context.get('expected')).replace(' or ', ', ')}"
    say = _SAY.get(kind)
    if say is not None:
        return say(shown(value), context)
    return f"{shown(value)}: {detail['msg']}"


_SAY: dict[str, Callable[[str, Mapping[str, object]], str]] = {
    "int_type": lambda value, _: f"{value} is no whole number",
    "int_from_float": lambda value, _: f"{value} is no whole number",
    "bool_type": lambda value, _: f"{value} is neither true nor false",
    "string_type": lambda value, _: f"{value} is no text; put it in quotes",
    "greater_than_equal": lambda value, ctx: f"{value} is too small; at least {ctx['ge']}",
    "less_than_equal": lambda value, ctx: f"{value} is too big; at most {ctx['le']}",
    "model_type": lambda value, _: f"{value} is no mapping; write key: value lines below it",
    "dict_type": lambda value, _: f"{value} is no mapping; write key: value lines below it",
    "tuple_type": lambda value, _: f"{value} is no list; write [a, b] or lines that start with '-'",
    "json_invalid": lambda _value, ctx: f"cannot be read ({ctx.get('error')})",
}


def shown(value: object) -> str:
    """A value as in JSON, on one line, shortened to 60 characters."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _unknown(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    if near:
        return f"unknown key `{key}`; did you mean `{near[0]}`?"
    return f"unknown key `{key}`; known are {', '.join(known)}"


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
    """The section that a path of the config leads to, None where it leads out of the model."""
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
