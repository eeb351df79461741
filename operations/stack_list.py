"""`python -m operations.stack_list`: the stacks that any computer can work on, as `stacks=[...]`.

That is every Pulumi.<name>.yaml here but those of a lab, whose machines live on the computer that
made them. A file that cannot be read is listed: its preview says why.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from stacks.config import stack_file
from stacks.config.stack_file import StackFileError
from stacks.providers import registry

# Also what the engine takes; anything else would have to be quoted wherever the name is used.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def main() -> int:
    """Print one line, JSON behind the equals sign; exit code 1 when a name is not a stack's."""
    names = [file.name.removeprefix("Pulumi.").removesuffix(".yaml") for file in _files()]
    strange = [name for name in names if not _NAME.fullmatch(name)]
    if strange:
        sys.stderr.write(f"ERROR no names of stacks: {strange}; letters, digits, _ . - only\n")
        return 1
    found = [name for name in names if not _is_local(Path(f"Pulumi.{name}.yaml"))]
    print(f"stacks={json.dumps(found)}")
    return 0


def _files() -> list[Path]:
    return sorted(Path().glob("Pulumi.*.yaml"))


def _is_local(file: Path) -> bool:
    try:
        machines = stack_file.read(file).get("machines")
    except StackFileError:
        return False
    return isinstance(machines, dict) and registry.is_local(machines.get("provider"))


if __name__ == "__main__":
    sys.exit(main())
