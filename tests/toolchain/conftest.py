"""Fixtures of the toolchain's tests: a real sshd, plugins as processes, projects for the engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.toolchain import sshd as servers
from tests.toolchain.plugin_client import Plugin
from tests.toolchain.release_server import Server, serving
from tests.toolchain.sshd import Sshd

StartPlugin = Callable[..., Plugin]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A release server that has everything the toolchain wants."""
    with serving(tmp_path / "releases") as server:
        yield server


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A server with one Ed25519 host key."""
    server = servers.start(tmp_path_factory.mktemp("sshd"))
    yield server
    server.process.terminate()
    server.process.wait(10)


@pytest.fixture(scope="session")
def _shared_command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugin]:
    with Plugin("command", tmp_path_factory.mktemp("command"), _environment()) as started:
        yield started


@pytest.fixture
def command(_shared_command: Plugin) -> Plugin:
    """The stand-in for the command plugin, with an empty log; one process for all tests."""
    _shared_command.log.lines.clear()
    return _shared_command


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugin]:
    """The stand-in for the tls plugin; one process for all tests."""
    with Plugin("tls", tmp_path_factory.mktemp("tls"), _environment()) as started:
        yield started


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[StartPlugin]:
    """Starts stand-ins of the test's own: plugin("command", KUBE_HA_FAULTS="...")."""
    with ExitStack() as started:

        def start(name: str, **environment: str) -> Plugin:
            folder = tmp_path / f"plugin-{name}"
            folder.mkdir()
            return started.enter_context(Plugin(name, folder, {**_environment(), **environment}))

        yield start


def _environment() -> dict[str, str]:
    # Not the agent of whoever runs the tests: its keys would open what must stay closed.
    return {key: text for key, text in os.environ.items() if key != "SSH_AUTH_SOCK"}
