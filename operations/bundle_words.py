"""`python -m operations.bundle_words STACK`: what the stack needs of a bundle, a word a line.

Such words are those of `make bundle ALSO="..."`: images of its pod network and its add-ons, another
Kubernetes, etcd or containerd than that of every bundle.
"""

from __future__ import annotations

import sys
from pathlib import Path

from stacks import load
from stacks.cluster import artifacts
from stacks.config import stack_file
from stacks.config.problems import SpecError
from stacks.config.stack_file import StackFileError


def main(arguments: list[str]) -> int:
    """Print the words; exit code 1 where the file has problems, which preview and up list."""
    (name,) = arguments
    file = Path(f"Pulumi.{name}.yaml")
    try:
        words = of_file(file)
    except (StackFileError, SpecError) as error:
        sys.stderr.write(
            f"ERROR {file} does not say what a bundle needs for it: {error}\n"
            f"  do: make plan STACK={name} lists all its problems\n"
        )
        return 1
    sys.stdout.writelines(f"{word}\n" for word in words)
    return 0


def of_file(file: Path) -> tuple[str, ...]:
    """Raises StackFileError and SpecError."""
    spec = load.load(stack_file.read(file), read_keys=False)
    return artifacts.also(load.planned(spec))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
