"""The SSH handshake: which keys are offered, which host key is accepted, what a refusal is called.

Imported when the first connection is made, because the SSH library takes 0.3 s to load and most
runs of the engine connect nowhere.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import asyncssh

from toolchain.command.hop import Connection, DialError
from toolchain.resources import OperationError

# Go's preference, which decides the key that a server with several host keys shows, where none is
# pinned. Of a pinned one the official plugin takes its type alone, by the very word in its first
# column: of an RSA key that is a signature with SHA-1, which servers of today refuse.
_HOST_KEY_ALGORITHMS = (
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-256",
    "rsa-sha2-512",
    "ssh-ed25519",
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Keys to offer, in order, and the host key to insist on; parsed once for all attempts."""

    keys: list[asyncssh.SSHKeyPair]
    host_key: asyncssh.SSHKey | None
    agent: asyncssh.SSHAgentClient | None

    def close(self) -> None:
        """Let go of the agent; its keys are of use up to the login only."""
        if self.agent is not None:
            self.agent.close()


class _Client(asyncssh.SSHClient):
    """Decides on the host key, and answers a keyboard-interactive server with the password."""

    def __init__(self, pinned: asyncssh.SSHKey | None, password: str | None) -> None:
        self._pinned = pinned
        self._password = password
        self.refused: asyncssh.SSHKey | None = None
        self.ended: Exception | None = None

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        if self._pinned is None or key == self._pinned:
            return True
        self.refused = key
        return False

    @property
    def shows_another_kind(self) -> bool:
        if self.refused is None or self._pinned is None:
            return False
        return bool(self.refused.get_algorithm() != self._pinned.get_algorithm())

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = exc

    def kbdint_auth_requested(self) -> str | None:
        return None if self._password is None else ""

    def kbdint_challenge_received(
        self, name: str, instructions: str, lang: str, prompts: Sequence[tuple[str, bool]]
    ) -> list[str]:
        return [self._password or "" for _ in prompts]


async def credentials(connection: Connection) -> Credentials:
    """Parse keys and ask the agent. Raises OperationError at once: waiting fixes no wrong key."""
    keys: list[asyncssh.SSHKeyPair] = []
    pinned = agent = None
    path = connection.agent_socket_path or os.environ.get("SSH_AUTH_SOCK")
    try:
        if connection.private_key is not None:
            key = asyncssh.import_private_key(
                connection.private_key, connection.private_key_password
            )
            keys += asyncssh.load_keypairs(key)
        if connection.host_key is not None:
            pinned = asyncssh.import_public_key(connection.host_key)
        if path:
            agent = await asyncssh.connect_agent(path)
            keys += await agent.get_keys()
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise OperationError(f"ssh: {error}") from None
    except OSError as error:
        message = f"dial unix {path}: connect: {(error.strerror or str(error)).lower()}"
        raise OperationError(message) from None
    return Credentials(keys, pinned, agent)


async def handshake(
    way: socket.socket | asyncssh.SSHClientConnection,
    connection: Connection,
    offered: Credentials,
) -> asyncssh.SSHClientConnection:
    """Log in over a TCP connection, or through a hop that is logged in already. Raises DialError.

    There is no time limit, as there is none in the official plugin: a machine whose kernel accepts
    connections and whose sshd is frozen holds an operation until somebody interrupts it.
    """
    client = _Client(offered.host_key, connection.password)
    direct = isinstance(way, socket.socket)
    try:
        return await asyncssh.connect(
            connection.host,
            connection.port,
            sock=way if direct else None,
            tunnel=() if direct else way,
            client_factory=lambda: client,
            username=connection.user,
            password=connection.password,
            client_keys=offered.keys or None,
            preferred_auth="publickey,password,keyboard-interactive",
            # A function, so that no known_hosts file of this computer is read; the client above
            # decides.
            known_hosts=lambda *_: ([], [], []),
            server_host_key_algs=_algorithms(offered.host_key),
            config=None,
            agent_path=None,
            login_timeout=0,
        )
    except (OSError, asyncssh.Error, asyncssh.ChannelOpenError) as error:
        raise DialError(_reason(error, client, connection, offered)) from None


def _algorithms(pinned: asyncssh.SSHKey | None) -> Sequence[str]:
    """A machine without a key of the pinned kind shows another one, by which that is known.

    Were the others not offered, it would hang up, and why is in its log alone. So does a machine
    that has nothing but an RSA key, where one is pinned: its end is told as EOF.
    """
    if pinned is None:
        return _HOST_KEY_ALGORITHMS
    kind = pinned.get_algorithm()
    others = [name for name in _HOST_KEY_ALGORITHMS if not name.startswith("rsa-") and name != kind]
    return (kind, *others)


def _reason(error: Exception, client: _Client, connection: Connection, offered: Credentials) -> str:
    """The failure in the words of the official plugin's SSH library."""
    if client.shows_another_kind:
        return "ssh: handshake failed: ssh: no common algorithm for host key"
    if client.refused is not None:
        shown = f"{client.refused.get_algorithm()} {client.refused.get_fingerprint()}"
        return f"ssh: handshake failed: ssh: host key mismatch (the machine shows {shown})"
    if isinstance(error, asyncssh.PermissionDenied):
        methods = ["none"]
        methods += ["publickey"] if offered.keys else []
        methods += ["password"] if connection.password is not None else []
        return (
            "ssh: handshake failed: ssh: unable to authenticate, attempted methods "
            f"[{' '.join(methods)}], no supported methods remain"
        )
    if isinstance(error, asyncssh.ChannelOpenError):
        return f"ssh: rejected: connect failed ({error.reason})"
    if isinstance(error, asyncssh.ConnectionLost | ConnectionResetError):
        return "ssh: handshake failed: EOF"
    return f"ssh: handshake failed: {error}"
