"""Story: bad config is refused before anything is touched, all problems at once."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.harness import config, lab
from tests.e2e.harness.config import Config
from tests.e2e.harness.stack import Stack

NAME = "test-refused"


def wanted() -> config.Config:
    return _nonsense()


def test_every_problem_is_listed_at_once_and_nothing_is_made(stack: Stack) -> None:
    for update in (stack.preview(fails=True), stack.up(fails=True)):
        lines = update.output.splitlines()
        for path, word in (
            ("cluster.kubernetes", "1.2"),
            ("cluster.serviceCidr", "overlaps"),
            ("pools", "master"),
            ("network.colour", "colour"),
            ("pools.worker.hosts", "10.93.11.101"),
            ("machines.ssh.privateKeyFile", "/nowhere/key"),
        ):
            assert any(path in line and word in line for line in lines), f"{path}\n{update.output}"
        assert "nothing was touched" in update.output
        assert update.ssh_connections == []
    kept = [str(entry["type"]) for entry in stack.resources()]
    assert [kind for kind in kept if kind != "pulumi:pulumi:Stack"] == []
    assert lab.containers(NAME) == []


def test_even_number_of_etcd_members_is_a_warning(stack: Stack) -> None:
    stack.config = config.lab(NAME, "10.93.11.0/24", masters=2, workers=1)
    stack.write()
    update = stack.preview()
    assert "pools: 2 etcd members survive the loss of 0" in update.output
    assert lab.containers(NAME) == []


def _nonsense() -> Config:
    """Unknown key, no master, an address twice, networks that overlap, no such version, no key file."""
    host_keys = [
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICvGxhT6F/q9yjfQ2FKiTvsSbJlFknt06zDr6R+RNxFN",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG1xaO8mEpnGzK7dg6rsTpccEgl0Tx9PBSEwJWVQDca5",
    ]
    hosts: list[dict[str, object]] = [
        {"name": f"worker-{number}", "address": "10.93.11.101", "hostKey": key}
        for number, key in enumerate(host_keys, start=1)
    ]
    out = config.adopted(NAME, "10.93.11.2", Path("/nowhere/key"), {"worker": hosts})
    out["cluster"] |= {"kubernetes": "1.2.3", "serviceCidr": "10.244.128.0/17"}
    out["network"] = {"colour": "red"}
    return out
