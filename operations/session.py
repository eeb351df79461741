"""`python -m operations.session STACK NODE`: a session on a node, as the stack's own user.

With the stack's key, the pinned host key and its bastion. `--command` runs one command and ends
with its exit code; what it prints is passed on as it is.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from operations.engine import stack
from operations.engine.engine import StackError
from operations.ssh import client


def main(arguments: list[str]) -> int:
    """The exit code of the session; 255 where the machine cannot be reached, 1 where none began."""
    parser = argparse.ArgumentParser(
        prog="python -m operations.session",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    parser.add_argument("node", help="name of the node, as master-1")
    parser.add_argument("--command", help="run this by the user's shell, in place of a session")
    given = parser.parse_args(arguments)
    try:
        target = stack.read(given.stack, applied=False, whole=False).target(given.node)
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    return session(target, given.command)


def session(target: client.Target, command: str | None) -> int:
    """Run it to its end; None: a login shell."""
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        words = client.client(target, Path(folder), terminal=command is None)
        if command is not None:
            words.append(command)
        # Ctrl-C is for what runs there. The client gets it from the terminal and ends; this
        # process stays until it has, or the keys would not be removed.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            return subprocess.run(words, check=False).returncode
        finally:
            signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
