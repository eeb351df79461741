"""`python -m stacks FILE`: the plan of a stack file in words, without Pulumi, network or keys."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from stacks import addon_files, memory, report, ssh_keys, text, transition
from stacks.memory import Memory
from stacks.plan import Plan, plan
from stacks.problems import Problem
from stacks.report import Report
from stacks.spec import SpecError, load
from stacks.stack_file import StackFileError, read
from stacks.transition import TransitionError

_FORMATS = ("text", "json", "markdown")


def main(arguments: list[str]) -> int:
    """Print what an `up` would do, or every problem. Exit code 1 when the config is refused."""
    given = _arguments().parse_args(arguments)
    file: Path = given.file
    try:
        wanted = plan(load(read(file), read_keys=False))
        before = _before(given.previous, given.previous_files) if given.previous else None
        verdict = transition.check(before, wanted)
    except StackFileError as error:
        return _refused(given.format, str(file), [("", str(error))])
    except (SpecError, TransitionError) as error:
        return _refused(given.format, str(file), error.problems)
    said = report.report(before, wanted, verdict)
    sys.stdout.write(_printed(said, given.format))
    found = [*wanted.warnings, *verdict.warnings, *_unread(wanted)]
    sys.stderr.write(text.warnings(found))
    return 0


def _unread(wanted: Plan) -> list[Problem]:
    """What is wrong with files that this computer need not have."""
    return ssh_keys.problems(wanted.spec) + addon_files.problems(wanted.spec)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stacks", description=__doc__)
    parser.add_argument("file", type=Path, help="stack file, as Pulumi.dev.yaml")
    parser.add_argument(
        "--previous",
        type=Path,
        help="what is compared with: an earlier version of the stack file, or what `pulumi stack "
        "output applied --show-secrets` prints; default: there is no cluster yet",
    )
    parser.add_argument(
        "--previous-files",
        type=Path,
        default=Path(),
        help="folder with the manifests that an earlier stack file names; default: this one",
    )
    parser.add_argument("--format", choices=_FORMATS, default="text", help="default: text")
    return parser


def _before(file: Path, root: Path) -> Memory:
    """What was applied: a stack file that may have been, or a stack's own memory.

    `root`: where the manifests of such a stack file lie.

    Raises StackFileError, SpecError, TransitionError.
    """
    try:
        kept = json.loads(file.read_text())
    except (OSError, ValueError):
        kept = None
    if isinstance(kept, str):  # the engine prints texts with --json in quotes
        kept = json.loads(kept)
    if not isinstance(kept, dict) or "format" not in kept:  # JSON is YAML: a stack file may be one
        try:
            said = load(read(file), read_keys=False)
            kept = memory.of(plan(said, addons=addon_files.read(said, root)))
        except (StackFileError, SpecError) as error:
            raise StackFileError(f"--previous {file}: {error}") from None
    found = transition.remembered(kept)
    if found is None:
        raise StackFileError(f"--previous {file}: holds nothing")
    return found


def _printed(said: Report, form: str) -> str:
    if form == "json":
        return report.as_json(said) + "\n"
    if form == "markdown":
        return report.as_markdown(said)
    return text.plan(said.plan) + "\n" + report.as_text(said)


def _refused(form: str, file: str, problems: Sequence[tuple[str, str]]) -> int:
    """Problems go where the plan would have gone, in its format, and to people."""
    if form == "json":
        found = [{"path": path, "text": words} for path, words in problems]
        sys.stdout.write(json.dumps({"refused": found}, indent=2) + "\n")
    if form == "markdown":
        sys.stdout.write(text.problems_markdown(file, problems))
    sys.stderr.write(text.problems(file, problems))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
