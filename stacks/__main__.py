"""`python -m stacks FILE`: the plan of a stack file in words, without Pulumi, network or keys."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from stacks import load
from stacks.checks import ingress_certificates, mirror, ssh_keys
from stacks.checks import user_addons as check_user_addons
from stacks.cluster.resolve import plan
from stacks.config import handed_over, local_file, problems, redaction
from stacks.config.parse import applied_once
from stacks.config.problems import Problem, SpecError
from stacks.config.spec import Spec
from stacks.config.stack_file import StackFileError, look, read
from stacks.edits import memory, transition
from stacks.edits.memory import Memory
from stacks.edits.transition import TransitionError
from stacks.explain import comment, document, formats, report, terminal
from stacks.explain.report import Report
from stacks.version import VERSION

_HIDDEN = "[secret]"  # what the engine prints in place of one
_FORMATS = ("text", "json", "markdown")


def main(arguments: list[str]) -> int:
    """Print what an `up` would do, or every problem. Exit code 1 when the config is refused."""
    given = _arguments().parse_args(arguments)
    file: Path = given.file
    try:
        said = look(file)
        before = _before(given.previous, given.previous_files) if given.previous else None
    except StackFileError as error:
        return _refused(given.format, str(file), [("", str(error))])
    except TransitionError as error:
        return _refused(given.format, str(file), error.problems)
    size = handed_over.judged(said.size)
    misread = [*said.problems, *size.problems]
    found, config = load.look(said.config, read_keys=False, misread=misread)
    if found or config is None:
        of_edit = _of_edit(before, config)
        if problems.names_are_unsure(found):
            of_edit = [one for one in of_edit if not one.path.startswith(("pools", "nodes"))]
        found += problems.unrelated(of_edit, to=found)
        unread = _unread(config) if config else []
        unread = said.located(problems.unrelated(unread, to=found))
        sys.stderr.write(formats.warnings(unread))
        return _refused(given.format, str(file), said.located(problems.in_order(found)))
    wanted = load.planned(config, before)
    try:
        verdict = transition.check(before, wanted)
    except TransitionError as error:
        return _refused(given.format, str(file), said.located(error.problems))
    told = report.report(before, wanted, verdict)
    now = datetime.now(UTC)
    warned = said.located([*report.warnings(told, now), *_unread(config), *size.warnings])
    if given.format == "json":
        sys.stdout.write(document.as_json(told, warned) + "\n")
    elif given.format == "markdown":
        sys.stdout.write(comment.as_markdown(told, warned))
    else:
        sys.stdout.write(_on_terminal(told, warned, now, verbose=given.verbose))
    return 0


def _of_edit(before: Memory | None, config: Spec | None) -> list[Problem]:
    """What is wrong with the edit beside what is wrong with the config, where that can be said."""
    if before is None or config is None:
        return []
    try:
        transition.check(before, load.planned(config, before))
    except TransitionError as error:
        return [*error.problems]
    except (ValueError, LookupError):
        return []  # of a config with problems there need be no plan
    return []


def _unread(config: Spec) -> list[Problem]:
    """What is wrong with files that this computer need not have."""
    return [
        *ssh_keys.problems(config),
        *ingress_certificates.problems(config),
        *mirror.problems(config),
        *check_user_addons.problems(config),
    ]


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stacks", description=__doc__)
    parser.add_argument("--version", action="version", version=f"kube-ha {VERSION}")
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
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="in text: every node, action and check, and what an interruption leaves",
    )
    return parser


def _before(file: Path, root: Path) -> Memory:
    """What was applied: a stack file that may have been, or a stack's own memory.

    `root`: where the manifests of such a stack file lie.

    Raises StackFileError, SpecError, TransitionError.
    """
    kept = _memory(file)
    if kept is None:  # JSON is YAML: a stack file may be one
        try:
            said = applied_once(read(file))
            kept = memory.of(plan(said, root=root))
        except (StackFileError, SpecError) as error:
            raise StackFileError(f"--previous {file}: {error}") from None
        except (ValueError, LookupError) as error:
            text = f"is the config of no cluster that ever was ({error})"
            raise StackFileError(f"--previous {file}: {text}") from None
    found = transition.remembered(kept)
    if found is None:
        raise StackFileError(f"--previous {file}: holds nothing")
    return found


def _memory(file: Path) -> dict[str, object] | None:
    """What a stack remembered, None where the file is something else. Raises StackFileError."""
    try:
        content = local_file.read(file, local_file.CONFIG_MOST).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None  # said when it is read as a stack file
    if content.strip().strip('"') == _HIDDEN:
        text = f"the engine hid it ({_HIDDEN}); print it with `pulumi stack output applied"
        raise StackFileError(f"--previous {file}: {text} --show-secrets`")
    kept = _json(content)
    if isinstance(kept, str):  # the engine prints texts with --json in quotes
        kept = _json(kept)
    return kept if isinstance(kept, dict) and "format" in kept else None


def _json(content: str) -> object:
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found


def _on_terminal(
    said: Report, warned: Sequence[tuple[str, str]], now: datetime, *, verbose: bool
) -> str:
    """The nodes before the plan, where all are new or all is asked for."""
    nodes = ""
    if said.is_new or verbose:
        nodes = redaction.without(formats.plan(said.plan, verbose=verbose)) + "\n"
    return nodes + terminal.as_text(said, warned, now, verbose=verbose)


def _refused(form: str, file: str, found: Sequence[tuple[str, str]]) -> int:
    """Problems go where the plan would have gone, in its format, and to people."""
    if form == "json":
        sys.stdout.write(document.refused(found) + "\n")
    if form == "markdown":
        sys.stdout.write(formats.problems_markdown(file, found))
    sys.stderr.write(formats.problems(file, found))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
