"""SSH connections as the command plugin makes them: which hops, how often tried, how long."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from toolchain.command.faults import Faults
from toolchain.command.hop import Connection, DialError
from toolchain.resources import Operation, OperationError

if TYPE_CHECKING:
    import asyncssh

_FIRST_WAIT_S, _WAIT_FACTOR, _LONGEST_WAIT_S = 0.1, 1.5, 5.0

T = TypeVar("T")


@asynccontextmanager
async def connected(
    connection: Connection, operation: Operation, faults: Faults
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A connection for one command, closed afterwards.

    The official plugin leaves its connections open until it ends; nothing a program sees depends on
    that, and 200 commands would mean 200 open connections. Raises OperationError when the attempts
    are used up.
    """
    if slow := faults.find("delay", operation.name):
        await asyncio.sleep(slow.time_s)
    limit_s = operation.timeout_s or None
    try:
        async with asyncio.timeout(limit_s):
            opened = await _dial(connection, operation, faults)
    except TimeoutError:
        raise OperationError("context deadline exceeded") from None
    try:
        yield opened[-1]
    finally:
        for hop in reversed(opened):
            hop.close()


async def _dial(
    connection: Connection, operation: Operation, faults: Faults
) -> list[asyncssh.SSHClientConnection]:
    """The hops from here to the machine, the machine's own connection last."""
    from toolchain.command.handshake import credentials, handshake

    async def log_in(
        way: socket.socket | asyncssh.SSHClientConnection,
    ) -> asyncssh.SSHClientConnection:
        opened = await handshake(way, connection, offered)
        faults.count(connection.endpoint, operation.name)
        return opened

    async def direct() -> asyncssh.SSHClientConnection:
        if faults.find("refuse", operation.name):
            raise DialError(f"dial tcp {connection.endpoint}: connect: connection refused")
        return await log_in(await _reach(connection))

    limit = connection.dial_error_limit
    offered = await credentials(connection)
    try:
        if connection.proxy is None:
            return [await _retried("Dial", limit, operation, direct)]
        hops = await _dial(connection.proxy, operation, faults)
        hops.append(await _retried("Dial", limit, operation, lambda: log_in(hops[-1])))
    except OperationError as error:
        prefix = "" if connection.proxy is None else "proxy: "
        raise OperationError(f"{prefix}{error}") from None
    finally:
        offered.close()
    return hops


async def _retried(
    what: str, limit: int, operation: Operation, attempt: Callable[[], Awaitable[T]]
) -> T:
    """Try again after each DialError until more than `limit` attempts failed; -1: forever."""
    wait_s, failed = _FIRST_WAIT_S, 0
    while True:
        try:
            return await attempt()
        except DialError as error:
            if -1 < limit <= failed:
                raise OperationError(f"after {failed} failed attempts: {error}") from None
        failed += 1
        shown = "inf" if limit == -1 else str(limit)
        await operation.status(f"{what} {failed}/{shown} failed: retrying")
        try:
            await asyncio.wait_for(operation.cancelled.wait(), wait_s)
        except TimeoutError:
            wait_s = min(wait_s * _WAIT_FACTOR, _LONGEST_WAIT_S)
            continue
        raise OperationError("context canceled")


async def _reach(connection: Connection) -> socket.socket:
    """A TCP connection. The timeout bounds this step alone, not the handshake after it."""
    loop = asyncio.get_running_loop()
    limit_s = connection.per_dial_timeout_s or None
    where = f"dial tcp {connection.endpoint}"
    # The first address of a name only: Go tries the others too, but machines are given by address.
    try:
        async with asyncio.timeout(limit_s):
            found = await loop.getaddrinfo(
                connection.host, connection.port, type=socket.SOCK_STREAM
            )
            family, kind, protocol, _, address = found[0]
            reached = socket.socket(family, kind, protocol)
            reached.setblocking(False)  # noqa: FBT003 (its only form)
            try:
                await loop.sock_connect(reached, address)
            except BaseException:
                reached.close()
                raise
    except TimeoutError:
        raise DialError(f"{where}: i/o timeout") from None
    except OSError as error:
        # The loop words its own text into the error; the number is the system's.
        known = not isinstance(error, socket.gaierror) and error.errno is not None
        text = os.strerror(error.errno).lower() if known and error.errno else str(error)
        raise DialError(f"{where}: connect: {text}") from None
    # Go's defaults: a peer that is gone is noticed after 15 s of silence and 9 unanswered probes.
    reached.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
    reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
    reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 9)
    return reached
