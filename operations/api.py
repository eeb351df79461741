"""`python -m operations.api STACK`: a way to the API from this computer, until Ctrl-C.

For machines of clouds, whose API has inner addresses: 127.0.0.1:apiPort leads over SSH, through the
bastion, to the HAProxy of a master, and from there to every master. The stack's kubeconfig goes
that way. Where that master goes, the next one is taken.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from components.ssh import tunnel
from operations.engine import stack
from operations.engine.engine import StackError
from operations.holding import forwarded, say, until_ended
from operations.ssh import client
from operations.ssh.client import Target
from stacks.cluster import clouds
from stacks.config.ports import LOCAL_API_PORT
from stacks.providers.cloud import LOCAL

_WHO = "api"
_PAUSE_S = 5  # before another master is asked


def main(arguments: list[str]) -> int:
    """Hold the way; exit code 0 when a person ends it."""
    parser = argparse.ArgumentParser(
        prog="python -m operations.api",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    name = parser.parse_args(arguments).stack
    return until_ended(_WHO, lambda: _hold(name))


def _hold(name: str) -> None:
    found = stack.read(name, applied=True, whole=False)
    cloud = clouds.settings(found.plan.spec)
    if cloud is None:
        raise StackError(
            f"clients reach the API of Pulumi.{name}.yaml by its own addresses\n"
            "  do: nothing; this is for machines of a cloud (docs/install/clouds.md)"
        )
    masters = [node.name for node in found.plan.masters if node.name in found.targets]
    hold({one: found.target(one) for one in masters}, cloud.api_port)


def hold(masters: dict[str, Target], port: int, *, pause_s: float = _PAUSE_S) -> None:
    """Lead to one of them after the other, without an end.

    Raises StackError where the port is taken, and where none of them could be reached at the first
    round; later ones pass, or are said and tried again.
    """
    if tunnel.listens(port):
        raise StackError(
            f"something listens at {LOCAL}:{port} already\n  do: end it, if it is another "
            "`make api`; else set apiPort to a free port, and run up"
        )
    reached = False
    while True:
        for name, target in masters.items():
            was, said = _lead(name, target, port)
            reached = reached or was
            say(_WHO, f"the way by {name} ended: {said}")
            time.sleep(pause_s)
        if not reached:
            raise StackError(
                f"none of {', '.join(masters)} could be reached\n  do: make status, and look at "
                "what was said above; sshFrom has to name the network that you come from"
            )


def _lead(name: str, target: Target, port: int) -> tuple[bool, str]:
    """Whether connections were led, until that ended; and the SSH client's last words."""
    text = f"https://{LOCAL}:{port} is the API, by {name}; leave this running, end with Ctrl-C"
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        words = _forwarding(client.client(target, Path(folder)), port)
        was, said = forwarded(words, port, lambda: say(_WHO, text))
    return was, client.plain(said).strip()


def _forwarding(words: Sequence[str], port: int) -> list[str]:
    """The client's command, for a port in place of a session."""
    way = f"{LOCAL}:{port}:{LOCAL}:{LOCAL_API_PORT}"
    return [words[0], "-N", "-o", "ExitOnForwardFailure=yes", "-L", way, *words[1:]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
