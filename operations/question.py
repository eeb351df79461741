"""What a person is asked on a terminal before an update, and warned of."""

from __future__ import annotations

import os
import sys

from operations import preview, sealed_state
from operations.engine.engine import Engine, StackError
from operations.engine.preview_files import Report

_NO_TERMINAL = (
    "an update asks before it changes anything, and there is no terminal to answer on; nothing was "
    "changed\n"
    "  do: YES=1 to apply what the config says now, or APPROVED=.local/preview/{} to apply what a "
    "preview showed and nothing else"
)
_AT_RISK = """\
WARNING the only copy of stack {stack}'s {what} is in this checkout ({where}).
  Whoever loses this folder loses the keys of the CAs: the cluster cannot be changed or restored.
  Keep the state in a bucket, and its secrets under a key of a KMS: docs/operate/ci.md, "Backends".
  Until then keep sealed copies on another computer: BACKUP_STATE=1 and {key},
  docs/operate/compromised.md.
"""
_UNCHANGED = "not applied; nothing was changed"


def see_terminal(stack: str) -> None:
    """Raises StackError where nobody can answer."""
    if not sys.stdin.isatty():
        raise StackError(_NO_TERMINAL.format(stack))


def warn_of_state(engine: Engine) -> bool:
    """Whether the state or its passphrase is in this checkout alone. Prints what that risks."""
    kept = engine.kept_here()
    if kept:
        what, where = " and ".join(kept), ", ".join(map(str, kept.values()))
        text = _AT_RISK.format(stack=engine.stack, what=what, where=where, key=sealed_state.KEY)
        print(text, flush=True)
    return bool(kept)


def agreed(engine: Engine) -> Report | None:
    """The preview that was answered with yes; None: it has no step, so there is no question.

    Raises StackError when the preview is refused, and for any other answer.
    """
    shown = preview.make(engine.stack)
    if not shown.good:
        raise StackError(f"nothing is applied: the preview is refused\n{shown.text()}")
    print(shown.terminal)
    if shown.problems.strip():
        print(f"{shown.problems.strip()}\n")
    if not shown.steps:
        print("nothing to do: no resource changes, and no update is run (YES=1 runs it)")
        return None
    print(f"steps: {shown.counts}; make preview STACK={engine.stack} lists them\n")
    if not yes(f"Apply this to stack {engine.stack}?"):
        raise StackError(_UNCHANGED)
    return shown


def wants_copy() -> bool:
    """Whether a copy of the state is sealed first; asked where there is a key to seal it with."""
    return bool(os.environ.get(sealed_state.KEY)) and yes("Seal a copy of its state first?")


def yes(question: str) -> bool:
    """Raises StackError on Ctrl-C and where the input ends."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except (EOFError, KeyboardInterrupt):
        print(flush=True)
        raise StackError(_UNCHANGED) from None
