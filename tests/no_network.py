"""Commands on a computer without a network: a namespace that has loopback and no other interface."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

_ENTER = 'ip link set lo up && exec "$@"'


def without_network(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command line that runs `command` there, as the user of the test, with this environment alone.

    Making the namespace takes root: by sudo, where the test is not root's.
    """
    given = ["env", "-i", *(f"{name}={text}" for name, text in environment.items())]
    enter = ["unshare", "--net", "sh", "-c", _ENTER, "sh"]
    if os.geteuid() == 0:
        return [*enter, *given, *command]
    user = ["setpriv", f"--reuid={os.getuid()}", f"--regid={os.getgid()}", "--clear-groups"]
    return ["sudo", "-n", *enter, *user, *given, *command]
