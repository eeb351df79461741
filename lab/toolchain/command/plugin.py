"""The stand-in for pulumi-resource-command."""

from __future__ import annotations

import sys

from lab.toolchain import plugin
from lab.toolchain.command import faults
from lab.toolchain.command.copy import CopyToRemote
from lab.toolchain.command.local import LocalCommand
from lab.toolchain.command.remote import RemoteCommand
from lab.toolchain.provider import Kind

VERSION = "1.2.1"


def main() -> None:
    """Serve one engine."""
    try:
        made = faults.from_environment()
    except ValueError as error:
        raise SystemExit(str(error)) from None
    kinds: dict[str, Kind] = {
        "command:local:Command": LocalCommand(made),
        "command:remote:Command": RemoteCommand(made),
        "command:remote:CopyToRemote": CopyToRemote(made),
    }
    plugin.main("command", VERSION, kinds, sys.argv[1:])
