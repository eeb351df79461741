"""What labs of tests leave behind, and whose it is."""

from __future__ import annotations

import contextlib
import fcntl
import sys
from collections.abc import Iterator

from tests.e2e.harness import lab
from tests.runner.report import say

_LOCK = lab.ROOT / ".local/test-runs.lock"


@contextlib.contextmanager
def freed() -> Iterator[None]:
    """Before and after, machines that runs of this checkout have left are gone; those of a run that goes on stay."""
    free()
    _LOCK.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _LOCK.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_SH)  # waits for a `free` alone
            yield
    finally:
        free()


def free() -> bool:
    """Remove what labs of tests left, and no other lab; and config files of test stacks. Whether all is gone."""
    _LOCK.parent.mkdir(parents=True, exist_ok=True)
    with _LOCK.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run of this checkout goes on: its machines stay")
            return True
        return _free()


def _free() -> bool:
    good = True
    try:
        for name in lab.of_tests():
            say(f"freeing lab {name}")
            lab.free(name)
    except lab.LabError as error:
        print(f"labs of tests could not be looked up or freed: {error}", file=sys.stderr)  # noqa: T201
        good = False
    for file in lab.ROOT.glob(f"Pulumi.{lab.PREFIX}*.yaml"):
        file.unlink()
    return good
