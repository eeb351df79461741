"""Fixtures of the script tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.ssh.hop import Hop
from operations import verify
from operations.engine.stack import Stack
from operations.etcd_snapshots import transfer
from operations.ssh import client
from operations.ssh.client import Target
from stacks.cluster import artifacts
from stacks.cluster.resolve import plan
from stacks.load import load
from stacks.phases import downloads
from tests.scripts.real_api import RealApi
from tests.scripts.real_etcd import BACKUP_KEY, CLUSTER_ID, Members
from tests.scripts.restores import Lab
from tests.scripts.shell import Shell
from tests.unit.configs import lab


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    """A real API server, one for all tests of a file."""
    server = RealApi(tmp_path_factory.mktemp("api"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    found = Members(tmp_path / "machines")
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Three members that hold /registry/a = written."""
    monkeypatch.chdir(tmp_path)
    members = Members(tmp_path / "machines")
    wanted = plan(load(lab({"pools.master.count": 3})))
    targets = {
        node.name: Target(
            hop=Hop(address=node.address, port=22, user=node.name, host_key="", key="")
        )
        for node in wanted.nodes
    }
    known = Stack(plan=wanted, targets=targets, cluster_id=CLUSTER_ID, backup_key=BACKUP_KEY)
    found = Lab(members, known)
    monkeypatch.setattr(client, "run", found.run)
    monkeypatch.setattr(transfer, "send", found.send)
    monkeypatch.setattr(transfer, "fetch", found.fetch)
    monkeypatch.setattr(verify, "verify", lambda _: 0)
    monkeypatch.setattr(artifacts, "files", lambda *_, **__: {})
    monkeypatch.setattr(downloads, "artefacts", lambda *_: "")
    try:
        members.start()
        members.put(members[1], {"/registry/a": "written"})
        yield found
    finally:
        members.stop()
