"""The stand-in for the language host runs plugins written in Python, as the protocol has it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import grpc
import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

ROOT = Path(__file__).resolve().parents[2]
HOST = "import sys; from toolchain.language_host import main; main(sys.argv[1:])"
PLUGIN = """
import os, sys
print(12345, flush=True)
print("a word", file=sys.stderr)
print(*sys.argv[1:], os.environ["TOLD"], os.environ["VIRTUAL_ENV"], os.getcwd(), flush=True)
"""
LIMIT_S = 60


class Plugin(Protocol):
    """A plugin that runs: the call of the engine."""

    def __iter__(self) -> Iterator[language_pb2.RunPluginResponse]: ...

    def cancel(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Host:
    """A host that runs, and the folder of a plugin."""

    stub: language_pb2_grpc.LanguageRuntimeStub
    folder: Path
    process: subprocess.Popen[str]

    def write(self, program: str) -> None:
        (self.folder / "__main__.py").write_text(program)

    def run(self, *, virtualenv: str = sys.prefix, kind: str = "resource") -> Plugin:
        options = struct_pb2.Struct()
        options.update({"virtualenv": virtualenv})
        info = language_pb2.ProgramInfo(
            root_directory=str(self.folder),
            program_directory=str(self.folder),
            entry_point=".",
            options=options,
        )
        request = language_pb2.RunPluginRequest(
            pwd=str(self.folder.parent),
            args=["127.0.0.1:9", "--flag"],
            env=["TOLD=by=the engine"],
            info=info,
            kind=kind,
        )
        return self.stub.RunPlugin(request, timeout=LIMIT_S)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    words = [sys.executable, "-c", HOST, "--runner", "none", "127.0.0.1:9"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        (tmp_path / "plugin").mkdir()
        with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
            stub = language_pb2_grpc.LanguageRuntimeStub(channel)
            yield Host(stub, tmp_path / "plugin", process)
        process.terminate()


def test_what_a_plugin_prints_comes_as_it_comes_and_its_exit_code_last(host: Host) -> None:
    host.write(PLUGIN + "sys.exit(3)\n")
    told = [*host.run()]
    lines = b"".join(one.stdout for one in told).decode().splitlines()
    said = f"127.0.0.1:9 --flag by=the engine {sys.prefix} {host.folder.parent}"
    assert lines == ["12345", said]
    assert b"".join(one.stderr for one in told) == b"a word\n"
    assert told[-1].WhichOneof("output") == "exitcode"
    assert told[-1].exitcode == 3


@pytest.mark.parametrize("end", ["call", "host"])
def test_a_plugin_ends_with_the_call_that_runs_it_and_with_the_host(host: Host, end: str) -> None:
    host.write("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    call = host.run()
    pid = int(next(iter(call)).stdout)
    assert _state(pid) != "Z"
    if end == "call":
        call.cancel()
    else:
        host.process.terminate()
    limit = time.monotonic() + LIMIT_S
    while _state(pid) != "Z":
        assert time.monotonic() < limit, "the plugin runs on"
        time.sleep(0.05)


def _state(pid: int) -> str:
    """As the kernel tells it; Z: it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"virtualenv": ".none"}, "option in PulumiPlugin.yaml names"),
        ({"virtualenv": ""}, "/plugin/venv, and there is none. Run make setup"),
        ({"kind": "analyzer"}, "runs no policy packs"),
    ],
    ids=["no environment", "the usual one is not there", "policy pack"],
)
def test_what_cannot_be_run_is_said(host: Host, wrong: dict[str, str], words: str) -> None:
    host.write(PLUGIN)
    with pytest.raises(grpc.RpcError, match=words):
        [*host.run(**wrong)]


def test_a_folder_without_a_program_is_named(host: Host) -> None:
    with pytest.raises(grpc.RpcError, match=r"/plugin has no __main__\.py"):
        [*host.run()]
