"""JSON schema of stack files, from the model of the config."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from stacks.config.spec import Spec
from stacks.config.stack_file import PREFIX
from stacks.config.translation import ADDON_SECRETS

Json = Mapping[str, object]


class _Plain(GenerateJsonSchema):
    """Without titles, which only repeat the keys."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def stack_schema() -> Json:
    """Schema (draft 2020-12) of a whole Pulumi.<stack>.yaml."""
    model: JsonSchemaValue = Spec.model_json_schema(by_alias=True, schema_generator=_Plain)
    plain = mapping(_tidied(model))
    properties = mapping(plain["properties"])
    required = plain["required"]
    config = {
        "type": "object",
        "properties": {
            **{f"{PREFIX}{key}": entry for key, entry in properties.items()},
            f"{PREFIX}{ADDON_SECRETS}": _ADDON_SECRETS,
        },
        "patternProperties": {_unknown([*properties, ADDON_SECRETS]): _SECRET},
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


# Encrypted keys that no section has belong to the program.
_SECRET: Json = {
    "type": "object",
    "properties": {"secure": {"type": "string"}},
    "required": ["secure"],
    "additionalProperties": False,
}


_ADDON_SECRETS: Json = {
    "type": "object",
    "description": "values of Secrets that add-ons bring, by name, each encrypted "
    f"(pulumi config set --secret --path {PREFIX}{ADDON_SECRETS}.NAME)",
    "additionalProperties": _SECRET,
    "propertyNames": {"type": "string", "format": "name"},
}


def _unknown(sections: Collection[str]) -> str:
    """Pattern of keys with our prefix that name no section; other prefixes are not ours."""
    return f"^{PREFIX}(?!({'|'.join(sections)})$)"


def _tidied(value: object) -> object:
    """Without titles, class names that say nothing to a user; mappings take no other keys.

    Properties called `title` do not exist.
    """
    if isinstance(value, Mapping):
        out = {str(key): _tidied(item) for key, item in value.items() if key != "title"}
        return out | ({"additionalProperties": False} if "patternProperties" in out else {})
    if isinstance(value, list):
        return [_tidied(item) for item in value]
    return value


def mapping(value: object) -> Json:
    """A part of a schema that is a mapping. Raises TypeError when it is not."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is not part of a schema")
    return value


def text(entry: Json, key: str) -> str:
    """A keyword's text; empty when it is not there."""
    return str(entry.get(key, ""))
