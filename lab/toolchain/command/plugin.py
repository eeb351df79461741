"""The stand-in for pulumi-resource-command."""

from __future__ import annotations

import sys

from lab.toolchain import plugin
from lab.toolchain.command import faults, inputs
from lab.toolchain.command.copy import CopyToRemote
from lab.toolchain.command.kind import Command
from lab.toolchain.command.local import Local
from lab.toolchain.command.remote import Remote
from lab.toolchain.resources import Kind

VERSION = "1.2.1"


def main() -> None:
    """Serve one engine."""
    try:
        found = faults.from_environment()
    except ValueError as error:
        raise SystemExit(str(error)) from None
    kinds: dict[str, Kind] = {
        "command:local:Command": Command(inputs.check_local, Local(found).execute),
        "command:remote:Command": Command(inputs.check_remote, Remote(found).execute),
        "command:remote:CopyToRemote": CopyToRemote(found),
    }
    plugin.main("command", VERSION, kinds, sys.argv[1:])
