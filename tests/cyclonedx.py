"""The schema of CycloneDX, by which bills of materials are checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources

from jsonschema import Draft7Validator
from referencing import Registry, Resource


def validator() -> Draft7Validator:
    """Of the schema as the specification publishes it."""
    folder = resources.files("cyclonedx.schema._res")
    files = {
        name: json.loads(folder.joinpath(name).read_text())
        for name in ("spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json")
    }
    whole = json.loads(folder.joinpath("bom-1.6.SNAPSHOT.schema.json").read_text())
    base = str(whole["$id"]).rpartition("/")[0]
    registry: Registry[bool | Mapping[str, object]] = Registry().with_resources(
        (where, Resource.from_contents(schema))
        for name, schema in files.items()
        for where in (name, f"{base}/{name}")
    )
    return Draft7Validator(whole, registry=registry)
