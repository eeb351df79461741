"""`python -m operations.up STACK`: apply a stack, and only the approved plan where one is given."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from pathlib import Path

from operations import preview
from operations.engine import stack
from operations.engine.engine import Engine, StackError
from operations.engine.preview_files import Report
from stacks.cluster import rollout
from stacks.cluster.plan import Plan

# A gate that is gone runs nothing.
_GONE = re.compile(r"delete  (?!.*-wave-[0-9]+$)")


def main(arguments: list[str]) -> int:
    """Become the engine's `up`; exit code 1 when that is refused."""
    parser = argparse.ArgumentParser(prog="python -m operations.up", description=__doc__)
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    parser.add_argument(
        "--approved",
        type=Path,
        metavar="FOLDER",
        help="report of the preview that was approved: anything else is not applied",
    )
    given = parser.parse_args(arguments)
    try:
        engine = Engine(given.stack)
        wanted = stack.plan_of(given.stack)
        engine.keep_state(local=wanted.local)
        _find_stack(engine)
        if given.approved is not None:
            check(_approved(given.approved), preview.make(given.stack))
        words = ["--yes", "--skip-preview", "--suppress-permalink=true"]
        engine.become("up", *words, *_on_failures(engine, wanted))
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
    return 1


def check(approved: Report, now: Report) -> None:
    """Raises StackError unless an `up` would do now what was approved."""
    if not now.good:
        raise StackError(f"nothing is applied: the preview is refused now\n{now.text()}")
    if now.digest == approved.digest:
        print(f"as approved: {now.counts} (digest {now.digest})", flush=True)
        return
    changed = difflib.unified_diff(_lines(approved), _lines(now), "approved", "now", lineterm="")
    raise StackError(
        "nothing is applied: this is no longer the plan that was approved\n"
        + "\n".join(changed)
        + "\n  do: see who changed the cluster since, then preview and approve again"
    )


def _on_failures(engine: Engine, wanted: Plan) -> list[str]:
    """The engine's option to go on when a node fails, where the failure budget allows any.

    Then it would also delete what leaves, though the remaining nodes have not let it go: an update
    that deletes something ends at its first failure. Raises StackError.
    """
    if not rollout.budget(wanted):
        return []
    leaving = [step for step in preview.steps(engine) if _GONE.match(step)]
    if leaving:
        text = "something leaves in this update, so its first failure ends it, whatever the budget"
        print(f"{text}: {leaving[0].split()[-1]}", flush=True)
        return []
    return ["--continue-on-error"]


def _lines(report: Report) -> list[str]:
    return [*report.words.splitlines(), *report.steps]


def _approved(folder: Path) -> Report:
    try:
        approved = Report.read(folder)
    except OSError as error:
        raise StackError(
            f"{folder} is not a report of a preview ({error})\n  do: APPROVED=.local/preview/STACK"
        ) from None
    if approved.preview_good:
        return approved
    raise StackError(
        f"{folder} is the report of a preview that was refused, or of a plan without a preview\n"
        "  do: fix the config, preview and approve again"
    )


def _find_stack(engine: Engine) -> None:
    """See that the backend has the stack. In this checkout's own it is made.

    Elsewhere only by a person: in a bucket that is empty because its URL has a slip, a new stack
    would make a second cluster's keys.
    """
    if engine.knows_stack():
        return
    if not engine.own_backend:
        raise StackError(
            f"{engine.backend} has no stack {engine.stack}\n"
            f"  do: see that this is the right backend; for a new cluster, once and by hand: "
            f"pulumi stack init {engine.stack} (docs/operate/ci.md)"
        )
    done = engine.run("stack", "select", "--create")
    if done.returncode:
        raise StackError(f"stack {engine.stack} cannot be made: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
