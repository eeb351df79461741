"""YAML written quickly: nine tenths of the time of planning goes into PyYAML's writer.

What a phase gets is compared here, never looked at: any text will do that differs where the data
does. That this one does is tested; what the real one looks like to those who read it, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping


def dump_all(documents: Iterable[Mapping[str, object]], **_: object) -> str:
    """In place of `yaml.dump_all`; the words look for documents by their first line.

    It is YAML: where an object of one add-on may be another's, both are read.
    """
    return "---\n".join(map(_document, documents))


def _document(fields: Mapping[str, object]) -> str:
    lines = {"apiVersion": fields.get("apiVersion")} | dict(fields)
    first = f"apiVersion: {lines.pop('apiVersion')}\n"
    return first + "".join(f"{json.dumps(k)}: {json.dumps(v)}\n" for k, v in lines.items())
