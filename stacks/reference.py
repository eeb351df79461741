"""What a stack file may hold, for editors (JSON schema) and for readers (docs/reference/config.md).

`python -m stacks.reference` writes them from the model, the schema of the plan as JSON from
stacks/explain/document.py, docs/reference/versions.md from the lock, and
docs/reference/commands.md from the Makefile;
`--check` only says whether they are up to date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from stacks.checks import refusals
from stacks.config.schema import Json, mapping, stack_schema, text
from stacks.explain.schema import plan_schema
from stacks.releases import version_fit

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "docs" / "stack.schema.json"
PLAN_SCHEMA = ROOT / "docs" / "plan.schema.json"
TABLES = ROOT / "docs" / "reference" / "config.md"
VERSIONS = ROOT / "docs" / "reference" / "versions.md"
COMMANDS = ROOT / "docs" / "reference" / "commands.md"
MAKEFILE = ROOT / "Makefile"

_INTRO = """# What a stack file may hold

<!-- Made by `python -m stacks.reference` from the model in stacks/; edit it there. -->

A stack file is `Pulumi.<stack>.yaml`; every key below stands under `config:` with `kube-ha:` before
it. Unknown keys are refused. `python -m stacks Pulumi.<stack>.yaml` checks a file and prints its
plan, without an engine. Editors that know YAML schemas check while you type: the first line of the
stack files of this project names `docs/stack.schema.json`.

A file is read as the engine reads it: a key without a prefix gets `kube-ha:`, `no` and `on` are
texts, `1:30` is one too. What the engine would misread (a date without quotes), refuse, or hand to
nobody (`kubeha:etcd`) is told with its place. Files that a config names are read up to a size, and
only if they are files.

Flags, their values and feature gates are compared with what the programs of that minor version of
Kubernetes know (`artifacts/flags/`, written by `python -m artifacts.known_flags`); of a version
that nobody has asked, a warning says so.
"""

_OF_COMMANDS = """# Commands

<!-- Made by `python -m stacks.reference` from the Makefile; edit it there. -->

`make help` prints this list. `STACK=prod` names the stack of `Pulumi.prod.yaml`; without it a
target works on `dev`. Variables in capitals are given as `NAME=value`. Targets use the backend that
`PULUMI_BACKEND_URL` names, else the one of this checkout: [backends](../operate/ci.md#backends).

The engine's own commands work too: `pulumi preview --diff`, `pulumi up`, `pulumi destroy`. In a
checkout with the lab `source .env` sets them up. `python -m stacks Pulumi.prod.yaml` prints the
plan of a file.
"""


def files() -> dict[Path, str]:
    """The text of every file that is made, by path."""
    schema = stack_schema()
    return {
        SCHEMA: json.dumps(schema, indent=2) + "\n",
        PLAN_SCHEMA: json.dumps(plan_schema(), indent=2) + "\n",
        TABLES: _tables(schema),
        VERSIONS: version_fit.page(),
        COMMANDS: _commands(MAKEFILE.read_text()),
    }


def _tables(schema: Json) -> str:
    definitions = mapping(schema["$defs"])
    lines = [_INTRO]
    config = mapping(mapping(mapping(schema["properties"])["config"])["properties"])
    for key, entry in config.items():
        lines += _section(key.removeprefix("kube-ha:"), mapping(entry), definitions)
    lines += _allow(mapping(config["kube-ha:allow"]))
    return "\n".join(lines).rstrip() + "\n"


def _commands(makefile: str) -> str:
    """The page of all targets: their lines of `make help`, in its sections (`##@ Title`)."""
    lines, in_table = [_OF_COMMANDS], False
    for line in makefile.splitlines():
        if found := re.fullmatch(r"##@ (.*)", line):
            lines += [*([""] if in_table else []), f"## {found[1]}", ""]
            in_table = False
        elif found := re.fullmatch(r"([a-z0-9-]+):.*?## (.*)", line):
            lines += [] if in_table else ["| command | does |", "|---|---|"]
            lines.append(f"| `make {found[1]}` | {found[2]} |")
            in_table = True
    return "\n".join([*lines, ""])


def _allow(entry: Json) -> Iterator[str]:
    """The one key that is a list: what may be in it, and what never may."""
    yield "## `allow`\n"
    yield _sentence(text(entry, "description")) + " A word that allows nothing is warned about.\n"
    yield "| id | allows |"
    yield "|---|---|"
    yield from (f"| `{kind}/...` | {what} |" for kind, what in refusals.ALLOWABLE.items())
    yield ""
    yield "Never to be allowed:\n"
    yield from (f"- `{kind}`: {why}" for kind, why in refusals.NEVER.items())


def _section(path: str, entry: Json, definitions: Json) -> Iterator[str]:
    """Heading and table of one mapping of the config, then those of the mappings in it."""
    path, section = _target(path, entry, definitions)
    if section is None:
        return
    yield f"## `{path}`\n"
    yield _sentence(text(entry, "description")) + "\n"
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    properties = mapping(section["properties"])
    required = _list(section.get("required"))
    for key, field in properties.items():
        yield _row(key, mapping(field), definitions, is_required=key in required)
    yield ""
    for key, field in properties.items():
        yield from _section(f"{path}.{key}", mapping(field), definitions)


def _target(path: str, entry: Json, definitions: Json) -> tuple[str, Json | None]:
    """The mapping that a field holds, and its path: `pools.<name>`, `machines.ssh`, `hosts[]`."""
    entry = _without_null(entry)
    if "$ref" in entry:
        return path, mapping(definitions[text(entry, "$ref").rpartition("/")[2]])
    if "items" in entry:
        return _target(f"{path}[]", mapping(entry["items"]), definitions)
    for inner in _of_mapping(entry):
        return _target(f"{path}.<name>", inner, definitions)
    return path, None


def _of_mapping(entry: Json) -> Iterator[Json]:
    """The schemas of the values of a mapping whose keys are the user's."""
    if isinstance(entry.get("additionalProperties"), Mapping):
        yield mapping(entry["additionalProperties"])
    yield from (mapping(value) for value in mapping(entry.get("patternProperties", {})).values())


def _without_null(entry: Json) -> Json:
    """The value of an optional field."""
    for option in (mapping(part) for part in _list(entry.get("anyOf", []))):
        if option.get("type") != "null":
            return option
    return entry


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _row(key: str, field: Json, definitions: Json, *, is_required: bool) -> str:
    default = "**required**" if is_required else _default(field, definitions)
    meaning = text(field, "description").replace("|", "\\|").replace("<", "&lt;")
    return f"| `{key}` | {_kind(_without_null(field))} | {default} | {meaning} |"


def _default(field: Json, definitions: Json) -> str:
    value = field.get("default")
    if _target("", field, definitions)[1] is not None or value in (None, {}, []):
        return ""
    return f"`{json.dumps(value)}`"


def _kind(field: Json) -> str:
    """The value of a field in words: `1 to 8`, `lab, adopt`, `list of IPv4 address`."""
    if "enum" in field:
        return ", ".join(str(value) for value in _list(field["enum"]))
    if "const" in field:
        return str(field["const"])
    if "minimum" in field and "maximum" in field:
        return f"{field['minimum']} to {field['maximum']}"
    if "format" in field:
        return text(field, "format")
    if "items" in field:
        item = mapping(field["items"])
        return "list" if "$ref" in item else f"list of {_kind(item)}"
    for values in _of_mapping(field):
        return "mapping" if "$ref" in values else f"{_keys(field)}: {_kind(values)}"
    kinds = {"boolean": "true, false", "object": "mapping", "": "mapping"}
    kind = text(field, "type")
    return kinds.get(kind, kind)


def _keys(field: Json) -> str:
    """The keys of a mapping in words: `by label key`, `by cpu, memory`."""
    names = mapping(field.get("propertyNames", {}))
    return f"by {_kind(names) if names else 'name'}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def main(arguments: list[str]) -> int:
    """Write the files; with --check only name those that are stale, and return 1."""
    stale = [path for path, new in files().items() if not path.exists() or path.read_text() != new]
    for path in stale:
        if "--check" in arguments:
            name = path.relative_to(ROOT)
            sys.stderr.write(f"{name} is stale; run `python -m stacks.reference`\n")
        else:
            path.write_text(files()[path])
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
