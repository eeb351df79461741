"""JSON schema of the plan as JSON, from document.py."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter

from stacks.explain.document import Document, Refused, camel

Json = Mapping[str, object]


def plan_schema() -> Json:
    """Schema (draft 2020-12) of what `python -m stacks --format json` prints."""
    made: TypeAdapter[Document | Refused] = TypeAdapter(Document | Refused)
    found = _tidied(made.json_schema())
    if not isinstance(found, Mapping):
        raise TypeError("a schema is a mapping")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kube-ha plan",
        "description": "what `make plan FORMAT=json` prints: a plan, or why it is refused",
        **found,
    }


def _tidied(value: object) -> object:
    """Without titles, with the keys as they are printed."""
    if isinstance(value, list):
        return [_tidied(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    out: dict[str, object] = {
        str(key): _tidied(item) for key, item in value.items() if not _is_title(key, item)
    }
    properties, required = value.get("properties"), value.get("required")
    if isinstance(properties, Mapping):
        out["properties"] = {camel(str(key)): _tidied(item) for key, item in properties.items()}
    if isinstance(required, list):
        out["required"] = [camel(str(key)) for key in required]
    return out


def _is_title(key: object, item: object) -> bool:
    """The keyword, and no property of that name."""
    return key == "title" and isinstance(item, str)
