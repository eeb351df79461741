"""`python -m stacks FILE`: the plan of a stack file in words, without Pulumi, network or keys."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from stacks import ssh_keys, text
from stacks.plan import plan
from stacks.spec import SpecError, load
from stacks.stack_file import StackFileError, read


def main(arguments: list[str]) -> int:
    """Print the plan, or every problem. Exit code 1 when the config is refused."""
    parser = argparse.ArgumentParser(prog="python -m stacks", description=__doc__)
    parser.add_argument("file", type=Path, help="stack file, as Pulumi.dev.yaml")
    file: Path = parser.parse_args(arguments).file
    try:
        spec = load(read(file), read_keys=False)
    except StackFileError as error:
        sys.stderr.write(f"{file}: {error}\n")
        return 1
    except SpecError as error:
        sys.stderr.write(text.problems(str(file), error.problems))
        return 1
    sys.stdout.write(text.plan(plan(spec)))
    sys.stderr.write(text.warnings([*plan(spec).warnings, *ssh_keys.problems(spec)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
