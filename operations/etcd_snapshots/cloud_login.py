"""Who this computer is to the object store of a cloud: by the cloud's own program (aws, gcloud)."""

from __future__ import annotations

import shutil
import subprocess

from operations.engine.engine import StackError
from stacks.providers.store_identity import Credentials, StoreIdentity

_WAIT_S = 120  # a login may refresh what it has


def credentials(identity: StoreIdentity) -> Credentials:
    """Those of whoever is logged in. Raises StackError; what was printed is in no text of it."""
    program, where = identity.program
    if shutil.which(program) is None:
        raise StackError(
            f"there is no {program} on this computer, by which the object store knows you\n"
            f"  do: install it: {where}"
        )
    words = " ".join(identity.command)
    try:
        done = subprocess.run(
            identity.command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise StackError(
            f"`{words}` gave no answer within {_WAIT_S} s\n  do: run it by hand, it may ask for you"
        ) from None
    if done.returncode:
        said = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise StackError(f"`{words}` fails: {said}\n  do: {identity.log_in}")
    try:
        return identity.read(done.stdout)
    except ValueError:
        raise StackError(
            f"`{words}` prints no credentials\n  do: {identity.log_in}; a newer {program} may help"
        ) from None
