"""`python -m operations.kubeconfig STACK`: the kubeconfig of a stack's administrator, as a file.

Writes .local/outputs/STACK/kubeconfig (mode 0600) and prints the line by which kubectl uses it.
`--merge` also puts its contexts into ~/.kube/config, whose previous text is kept beside it.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from operations import outputs
from operations.engine import sealing
from operations.engine.engine import Engine, StackError

_LISTS = ("clusters", "contexts", "users")


def main(arguments: list[str]) -> int:
    """Exit code 1 where there is no cluster, or the other file is not a kubeconfig."""
    parser = argparse.ArgumentParser(
        prog="python -m operations.kubeconfig",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    parser.add_argument("--merge", action="store_true", help="into ~/.kube/config as well")
    given = parser.parse_args(arguments)
    try:
        text = outputs.kubeconfig(Engine(given.stack).outputs(), given.stack)
        file = sealing.put(outputs.FOLDER / given.stack / "kubeconfig", text.encode())
        print(f"export KUBECONFIG={shlex.quote(str(file.absolute()))}")
        if given.merge:
            print(merge(text, Path.home() / ".kube" / "config"))
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    return 0


def merge(text: str, file: Path) -> str:
    """Put clusters, contexts and users of a kubeconfig into another; what was done, for a person.

    Entries of the same names are replaced, others stay, and so does the current context, where
    there is one. Raises StackError.
    """
    file = file.resolve()  # a link stays one
    there = file.read_text() if file.exists() else ""
    merged, ours = _read(there, file), _read(text, Path("kubeconfig of the stack"))
    replaced = [name for name in _named(merged, "contexts") if name in _named(ours, "contexts")]
    for part in _LISTS:
        merged[part] = [*(_named(merged, part) | _named(ours, part)).values()]
    current = merged.get("current-context") or ours["current-context"]
    merged["current-context"] = current
    if there:
        sealing.put(file.with_name(f"{file.name}.before-kube-ha"), there.encode())
    new = file.with_name(f".{file.name}.kube-ha")
    sealing.put(new, yaml.safe_dump(merged, sort_keys=False).encode()).replace(file)
    contexts = ", ".join(_named(ours, "contexts"))
    known = f" (replaced: {', '.join(replaced)})" if replaced else ""
    return f"{file} has: {contexts}{known}; current context: {current}"


def _read(text: str, file: Path) -> dict[str, object]:
    """What a kubeconfig holds; a new one where there is no text. Raises StackError."""
    try:
        found = yaml.safe_load(text) if text.strip() else {"apiVersion": "v1", "kind": "Config"}
        if isinstance(found, dict) and found.get("kind") == "Config":
            for part in _LISTS:
                _named(found, part)
            return found
    except (yaml.YAMLError, KeyError, TypeError):
        pass  # told below, without its text: it holds keys
    raise StackError(f"{file} is not a kubeconfig\n  do: fix or move it, or leave MERGE out")


def _named(kubeconfig: Mapping[str, object], part: str) -> dict[str, object]:
    """Entries of one list by name. Raises KeyError, TypeError where it is not such a list."""
    listed = kubeconfig.get(part) or []
    if not isinstance(listed, list):
        raise TypeError(part)
    return {str(entry["name"]): entry for entry in listed}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
