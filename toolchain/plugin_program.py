"""A plugin that is a Python program: run for the engine, its output handed on as it comes."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from toolchain.protocol import language_pb2

_BLOCK = 1 << 16


def problem(request: language_pb2.RunPluginRequest) -> str | None:
    """Why this host does not run it, if so."""
    if request.kind == "analyzer":
        return "the stand-in of the lab runs no policy packs; an official language host does"
    if not (Path(request.info.program_directory) / "__main__.py").is_file():
        return f"{request.info.program_directory} has no __main__.py, which is what would be run"
    return None


def words(python: Path, request: language_pb2.RunPluginRequest) -> list[str]:
    """The folder as a program, which is its __main__.py, and what the engine passes."""
    return [str(python), request.info.program_directory, *request.args]


def environment(own: Mapping[str, str], told: Iterable[str]) -> dict[str, str]:
    """Variables of the host, and over them those that the engine tells as `NAME=text`."""
    return {**own, **dict(pair.split("=", 1) for pair in told)}


def handed_on(program: subprocess.Popen[bytes]) -> Iterator[language_pb2.RunPluginResponse]:
    """What the program prints, and last its exit code."""
    lines: queue.SimpleQueue[language_pb2.RunPluginResponse | None] = queue.SimpleQueue()

    def read(stream: IO[bytes] | None, name: str) -> None:
        # os.read returns what is there: the engine waits for the port, which is one short line.
        while stream is not None and (block := os.read(stream.fileno(), _BLOCK)):
            lines.put(
                language_pb2.RunPluginResponse(stdout=block)
                if name == "stdout"
                else language_pb2.RunPluginResponse(stderr=block)
            )
        lines.put(None)

    streams = {"stdout": program.stdout, "stderr": program.stderr}
    for name, stream in streams.items():
        threading.Thread(target=read, args=(stream, name), daemon=True).start()
    for _ in streams:
        yield from iter(lines.get, None)
    yield language_pb2.RunPluginResponse(exitcode=program.wait())
