"""A provider as a process: serve until the engine says stop, or is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping

import grpc.aio

from toolchain.protocol import provider_pb2_grpc as rpc
from toolchain.provider import Provider
from toolchain.resources import Kind

_PARENT_POLL_S = 0.5

# A log of a large cluster's inputs passes gRPC's default of 4 MiB; the engine itself allows 400
# MiB.
_OPTIONS = (("grpc.max_receive_message_length", 400 << 20), ("grpc.max_send_message_length", -1))


def main(name: str, version: str, kinds: Mapping[str, Kind], arguments: list[str]) -> None:
    """Run the plugin. `arguments` is what the engine passes: its own address, last."""
    if not arguments:
        message = (
            f"pulumi-resource-{name}: started by the Pulumi engine, with its address; not by hand"
        )
        raise SystemExit(message)
    provider = Provider(name, version, kinds, arguments[-1])
    asyncio.run(_serve(provider))
    sys.stdout.flush()
    # Remote commands may be under way in threads of libraries: an orphan must not wait for them.
    os._exit(0)


async def _serve(provider: Provider) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    server = grpc.aio.server(options=_OPTIONS)
    rpc.add_ResourceProviderServicer_to_server(provider, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)  # the engine reads the port from the first line
    watch = asyncio.create_task(_watch_parent(stop))
    await stop.wait()
    watch.cancel()


async def _watch_parent(stop: asyncio.Event) -> None:
    """Set `stop` when the engine is gone: killed, it cannot tell its plugins to end."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(_PARENT_POLL_S)
    stop.set()
