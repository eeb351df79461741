"""`python -m operations.name_addons STACK all`: writes add-ons of the catalogue into a stack file.

`all` stands for those that need no settings; else their names. Those that are there already stay as
they are, and so does every other line of the file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from stacks import load
from stacks.catalogue import registry
from stacks.config import stack_file
from stacks.config.problems import SpecError
from stacks.config.stack_file import PREFIX, StackFileError

_ALL = "all"
_KEY = f"{PREFIX}addons"


class NamesError(ValueError):
    """Names that cannot be written; the text says why and what to do."""


def main(arguments: list[str]) -> int:
    """Write, and say what was written; exit code 1 where nothing could be."""
    name, *words = arguments
    file = Path(f"Pulumi.{name}.yaml")
    try:
        added = add(file, [word for text in words for word in text.replace(",", " ").split()])
    except (NamesError, StackFileError, SpecError) as error:
        sys.stderr.write(f"ERROR {file}: {error}\n")
        return 1
    if added:
        print(f"add-ons in {file} from now on: {', '.join(added)}")
    return 0


def add(file: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Those that were not there. Raises NamesError, StackFileError and SpecError."""
    config = stack_file.read(file)
    there = config.get("addons", {})
    if not isinstance(there, Mapping):
        raise NamesError("addons: must be a mapping, name: {} each")
    wanted = _without_settings(config) if _ALL in names else names
    if unknown := sorted({*wanted} - {*registry.ENTRIES}):
        listed = ", ".join(sorted(registry.ENTRIES))
        raise NamesError(f"the catalogue has no {', '.join(unknown)}; it has {listed}")
    added = tuple(sorted({*wanted} - {*there}))
    if added:
        file.write_text(_with(file.read_text(), added, there=bool(there)))
    return added


def _without_settings(config: Mapping[str, object]) -> tuple[str, ...]:
    """Those with which the config is right, each alone. Raises SpecError where it is not before."""
    load.load(config, read_keys=False)
    return tuple(name for name in registry.ENTRIES if _fits(config, name))


def _fits(config: Mapping[str, object], name: str) -> bool:
    try:
        load.load({**config, "addons": {name: {}}}, read_keys=False)
    except SpecError:
        return False
    return True


def _with(text: str, names: Sequence[str], *, there: bool) -> str:
    """The text of the file with lines more, right below the key that they belong to."""
    lines = text.splitlines(keepends=True)
    key = f"{_KEY}:" if there else "config:"
    found = [number for number, line in enumerate(lines) if line.strip() == key]
    if len(found) != 1:
        listed = ", ".join(f"{name}: {{}}" for name in names)
        raise NamesError(f"`{key}` is not on a line of its own; write {listed} there yourself")
    indent = " " * (len(lines[found[0]]) - len(lines[found[0]].lstrip()))
    more = [] if there else [f"{indent}  {_KEY}:\n"]
    deeper = indent + ("  " if there else "    ")
    more += [f"{deeper}{name}: {{}}\n" for name in names]
    return "".join([*lines[: found[0] + 1], *more, *lines[found[0] + 1 :]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
