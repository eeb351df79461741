"""The same tools over SSH: the image mounted on the machine, without kubelet and API server."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

from operations.debug import objects
from operations.debug.by_api import ended
from operations.debug.wanted import Wanted
from operations.engine import asker
from operations.ssh import client
from operations.ssh.client import Target
from stacks.cluster.plan import Node

_SCRIPT = Path(__file__).with_name("toolbox.sh")


def on_node(target: Target, node: Node, wanted: Wanted, image: str) -> int:
    """The exit code of what ran; 255 where the machine cannot be reached."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        words = client.client(target, Path(folder), terminal=terminal)
        return ended([*words, command(target, node, wanted, image)], wanted.limit_s)


def command(target: Target, node: Node, wanted: Wanted, image: str) -> str:
    """What the user's shell there runs."""
    values = {
        "IMAGE": objects.full_reference(image) if node.in_kubernetes else "",
        "COMMAND": wanted.command,
        "LIMIT_S": str(wanted.limit_s),
        "ASKED_BY": asker.name(),
        "ENVIRONMENT": shlex.join(f"{k}={v}" for k, v in objects.environment(node).items()),
    }
    given = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    text = f"{given}{_SCRIPT.read_text()}\nmain"
    root = [] if target.hop.user == "root" else ["sudo", "-n"]
    return shlex.join([*root, "unshare", "--mount", "--propagation", "slave", "bash", "-c", text])
