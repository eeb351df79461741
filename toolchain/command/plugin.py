"""The stand-in for pulumi-resource-command."""

from __future__ import annotations

import sys

from toolchain import plugin
from toolchain.command import faults, inputs
from toolchain.command.copy import CopyToRemote
from toolchain.command.kind import Command
from toolchain.command.local import Local
from toolchain.command.remote import Remote
from toolchain.resources import Kind

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
