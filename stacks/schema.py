"""JSON schema of stack files, from the model of the config."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from stacks.spec import Spec
from stacks.stack_file import PREFIX

Json = Mapping[str, object]


class _Plain(GenerateJsonSchema):
    """Without titles, which only repeat the keys."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def stack_schema() -> Json:
    """Schema (draft 2020-12) of a whole Pulumi.<stack>.yaml."""
    model: JsonSchemaValue = Spec.model_json_schema(by_alias=True, schema_generator=_Plain)
    plain = mapping(_without_titles(model))
    properties = mapping(plain["properties"])
    required = plain["required"]
    config = {
        "type": "object",
        "properties": {f"{PREFIX}{key}": entry for key, entry in properties.items()},
        "required": [f"{PREFIX}{key}" for key in required] if isinstance(required, list) else [],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kube-ha stack",
        "description": "Pulumi.<stack>.yaml of a kube-ha cluster",
        "type": "object",
        "properties": {"config": config},
        "required": ["config"],
        "$defs": plain["$defs"],
    }


def _without_titles(value: object) -> object:
    """Class names as titles say nothing to a user; properties called `title` do not exist."""
    if isinstance(value, Mapping):
        return {str(key): _without_titles(item) for key, item in value.items() if key != "title"}
    if isinstance(value, list):
        return [_without_titles(item) for item in value]
    return value


def mapping(value: object) -> Json:
    """A part of a schema that is a mapping. Raises TypeError when it is not."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is no part of a schema")
    return value


def text(entry: Json, key: str) -> str:
    """A keyword's text; empty when it is not there."""
    return str(entry.get(key, ""))
