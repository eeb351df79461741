"""The near end of a tunnel to the bastion; `make tunnel` holds it, see operations/tunnel.py."""

from __future__ import annotations

import errno
import socket

from stacks.providers.cloud import LOCAL


def listens(port: int) -> bool:
    """Whether somebody listens at the port of this computer; found out without a connection.

    A connection would be led on to the bastion, and an `up` with nothing to do opens none.
    """
    with socket.socket() as probe:
        # So that connections which have just ended do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCAL, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            raise
    return False
