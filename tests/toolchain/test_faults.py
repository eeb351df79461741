"""Faults on purpose act on the resources they name, as often as they say; connections are counted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.toolchain.conftest import StartPlugin
from tests.toolchain.plugin_client import CallError
from tests.toolchain.sshd import Sshd
from toolchain.command.faults import Rule, parse

KIND = "command:remote:Command"


def test_rules_are_read() -> None:
    assert parse("drop:master-2-*:once:2s, delay:*:500ms,refuse:w:3,") == [
        Rule("drop", "master-2-*", 1, 2.0),
        Rule("delay", "*", None, 0.5),
        Rule("refuse", "w", 3, 0.0),
    ]


@pytest.mark.parametrize("text", ["explode:*", "drop", "drop:*:soon", "delay:*:2m"])
def test_a_wrong_rule_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"KUBE_HA_FAULTS: "):
        parse(f"drop:*,{text}")


def test_a_dropped_connection_fails_once(sshd: Sshd, plugin: StartPlugin) -> None:
    command = plugin("command", KUBE_HA_FAULTS="drop:master-2-*:once:500ms")
    inputs = {"connection": sshd.connection(), "create": "echo began; sleep 2; echo ended"}
    assert command.create(KIND, "master-1-converge", **inputs).state["stdout"] == "began\nended"
    with pytest.raises(CallError) as caught:
        command.create(KIND, "master-2-converge", **inputs)
    assert str(caught.value).startswith(
        "wait: remote command exited without exit status or exit signal: running "
    )
    assert command.create(KIND, "master-2-converge", **inputs).state["stdout"] == "began\nended"


def test_a_refused_connection_is_tried_again(sshd: Sshd, plugin: StartPlugin) -> None:
    command = plugin("command", KUBE_HA_FAULTS="refuse:worker-1:2")
    inputs = {"connection": sshd.connection(dialErrorLimit=2), "create": "echo in"}
    assert command.create(KIND, "worker-1", **inputs).state["stdout"] == "in"
    assert command.log.lines == ["Dial 1/2 failed: retrying", "Dial 2/2 failed: retrying", "in"]


def test_a_connection_refused_for_good_fails(sshd: Sshd, plugin: StartPlugin) -> None:
    command = plugin("command", KUBE_HA_FAULTS="refuse:*")
    with pytest.raises(CallError, match=r"after 1 failed attempts: .* connection refused$"):
        command.create(KIND, "node", connection=sshd.connection(), create="true")


def test_a_delay_passes_before_the_connection(sshd: Sshd, plugin: StartPlugin) -> None:
    command = plugin("command", KUBE_HA_FAULTS="delay:node:1s")
    start = time.monotonic()
    command.create(KIND, "node", connection=sshd.connection(), create="true")
    assert time.monotonic() - start > 1


def test_a_command_made_to_fail_does_not_run(
    sshd: Sshd, plugin: StartPlugin, tmp_path: Path
) -> None:
    command = plugin("command", KUBE_HA_FAULTS="fail:*:2")
    inputs = {"create": f"touch {tmp_path}/ran"}
    with pytest.raises(CallError, match=r"^Process exited with status 1: running "):
        command.create(KIND, "node", connection=sshd.connection(), **inputs)
    with pytest.raises(CallError, match=r"^exit status 1: running "):
        command.create("command:local:Command", "here", **inputs)
    assert not (tmp_path / "ran").exists()


def test_every_connection_opened_is_counted(
    sshd: Sshd, plugin: StartPlugin, tmp_path: Path
) -> None:
    log = tmp_path / "connections"
    command = plugin("command", KUBE_HA_CONNECTION_LOG=str(log))
    inputs = {"connection": sshd.connection(), "create": "true"}
    made = command.create(KIND, "one", **inputs)
    command.create(KIND, "two", **inputs)
    command.planned(KIND, "three", **inputs)
    command.diff(made, **inputs)
    command.delete(made)
    lines = [line.split(" ") for line in log.read_text().splitlines()]
    assert [line[1:] for line in lines] == [
        [f"127.0.0.1:{sshd.port}", "one"],
        [f"127.0.0.1:{sshd.port}", "two"],
    ]
