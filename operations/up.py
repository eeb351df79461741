"""`python -m operations.up STACK`: show the plan, ask, apply it.

With `--approved` only what that preview showed is applied, with `--yes` whatever the config says.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from pathlib import Path

from operations import preview, question, sealed_state
from operations.engine import progress, stack, update
from operations.engine.engine import PLAN_SHOWN, Engine, StackError
from operations.engine.preview_files import Report
from operations.engine.progress import Progress, Steps
from stacks.cluster import rollout
from stacks.cluster.plan import Plan
from stacks.edits import memory

# A gate that is gone runs nothing, nor do phases of a node that is left out. Of one that leaves,
# its machine is deleted too, or the command by which it leaves.
_RUNS_NOTHING = (
    "wave-[0-9]+",
    "(scripts|node|join|keys|etcd|etcd-(keys|found|absent)|master|master-(shared-)?keys)(-attempt)?",
    "(vip|vip-peers|vip-away|ingress(-[a-z0-9-]+)?)(-attempt)?",
)
_GONE = re.compile(rf"delete  (?!.*-({'|'.join(_RUNS_NOTHING)})$)")

# The outputs of a cluster are two screens; operations/summary.py prints what a person needs.
_OPTIONS = ("--yes", "--skip-preview", "--suppress-permalink=true", "--suppress-outputs")


def main(arguments: list[str]) -> int:
    """Show the plan, ask, run the engine's `up`; exit code 1 when it is not applied."""
    given = _parsed(arguments)
    try:
        engine = Engine(given.stack)
        wanted = stack.plan_of(given.stack)
        if not given.yes and given.approved is None:
            question.see_terminal(given.stack)
        engine.keep_state(local=wanted.local)
        is_new = _is_new(engine)
        at_risk = not wanted.local and question.warn_of_state(engine)
        seals, steps = given.backup_state, None
        if given.approved is not None:
            steps = _checked(engine, _approved(given.approved))
        elif given.yes:
            print(preview.plan(engine), flush=True)
        else:
            agreed = question.agreed(engine)
            if agreed is None:
                return 0
            seals = seals or (at_risk and not is_new and question.wants_copy())
            steps = _checked(engine, agreed)
        if is_new:
            _make_stack(engine)
        elif seals:
            _seal(engine)
        words = [*_OPTIONS, *_on_failures(engine, wanted, steps)]
        if given.verbose:
            engine.become("up", *words, extra=PLAN_SHOWN)
        return update.run(engine, words, Progress(_steps(engine)), extra=PLAN_SHOWN)
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
    return 1


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m operations.up", description=__doc__)
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--yes", action="store_true", help="apply without a question")
    way.add_argument(
        "--approved",
        type=Path,
        metavar="FOLDER",
        help="report of the preview that was approved: anything else is not applied",
    )
    parser.add_argument(
        "--backup-state", action="store_true", help="seal a copy of the state before the update"
    )
    parser.add_argument(
        "--verbose", action="store_true", help="the engine's own lines, one a resource"
    )
    return parser.parse_args(arguments)


def _checked(engine: Engine, approved: Report) -> tuple[str, ...]:
    """Steps of the preview that still is what was approved. Raises StackError."""
    check(approved, preview.make(engine.stack))
    return approved.steps


def _seal(engine: Engine) -> None:
    """Keep the state as it is before the update; of an empty one there is nothing to keep."""
    if sealed_state.has_resources(engine.state(clear=False)):
        folder = sealed_state.FOLDER / engine.stack
        print(f"state sealed: {sealed_state.sealed(engine, folder)}", flush=True)


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


def _on_failures(engine: Engine, wanted: Plan, steps: tuple[str, ...] | None) -> list[str]:
    """The engine's option to go on when a node fails, where the failure budget allows any.

    Then it would also delete what leaves, though the remaining nodes have not let it go: an update
    that deletes something ends at its first failure. `steps` of the update; None: the engine is
    asked. Raises StackError.
    """
    if not rollout.budget(wanted):
        return []
    found = preview.steps(engine) if steps is None else steps
    leaving = [step for step in found if _GONE.match(step)]
    if leaving:
        text = "something leaves in this update, so its first failure ends it, whatever the budget"
        print(f"{text}: {leaving[0].split()[-1]}", flush=True)
        return []
    return ["--continue-on-error"]


def _steps(engine: Engine) -> Steps:
    """What the update is expected to run, by what the stack remembers. Raises StackError."""
    remembered = stack.remembered(engine.outputs())
    before = None
    if remembered is not None:
        try:
            before = memory.read(remembered)
        except memory.UnreadableMemoryError:
            return Steps()  # the program refuses, and tells why
    return progress.steps(before, stack.plan_of(engine.stack, remembered))


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


def _is_new(engine: Engine) -> bool:
    """Whether the stack is still to be made, which is done in this checkout's own backend alone.

    Elsewhere by a person: in a bucket that is empty because its URL has a slip, a new stack would
    make a second cluster's keys. Raises StackError.
    """
    if engine.knows_stack():
        return False
    if not engine.own_backend:
        raise StackError(
            f"{engine.backend} has no stack {engine.stack}\n"
            f"  do: see that this is the right backend; for a new cluster, once and by hand: "
            f"pulumi stack init {engine.stack} (docs/operate/ci.md)"
        )
    return True


def _make_stack(engine: Engine) -> None:
    done = engine.run("stack", "select", "--create")
    if done.returncode:
        raise StackError(f"stack {engine.stack} cannot be made: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
