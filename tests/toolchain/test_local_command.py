"""`local.Command` of the stand-in does what the official plugin does."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.toolchain.conftest import StartPlugin
from tests.toolchain.plugin_client import CallError, Plugin
from toolchain.values import UNKNOWN

KIND = "command:local:Command"


def test_create_runs_with_stdin_folder_and_variables(command: Plugin, tmp_path: Path) -> None:
    made = command.create(
        KIND,
        "here",
        create="cat; pwd; echo $NAME",
        stdin="in\n",
        dir=str(tmp_path),
        environment={"NAME": "value"},
    )
    assert made.state["stdout"] == f"in\n{tmp_path}\nvalue"


def test_another_interpreter(command: Plugin) -> None:
    made = command.create(KIND, "here", create="print(6 * 7)", interpreter=["python3", "-c"])
    assert made.state["stdout"] == "42"


def test_failure_tells_status_command_and_all_output(command: Plugin) -> None:
    with pytest.raises(CallError, match=r'^exit status 4: running "echo why >&2; exit 4":\nwhy\n$'):
        command.create(KIND, "here", create="echo why >&2; exit 4")


def test_a_missing_interpreter_is_named(command: Plugin) -> None:
    with pytest.raises(CallError, match=r"^fork/exec /no/such: no such file or directory: running"):
        command.create(KIND, "here", create="true", interpreter=["/no/such"])


def test_a_missing_folder_is_named(command: Plugin) -> None:
    with pytest.raises(CallError, match=r"/no/such: no such file or directory: running"):
        command.create(KIND, "here", create="true", dir="/no/such")


def test_update_and_delete_know_what_was_printed(command: Plugin, tmp_path: Path) -> None:
    show = f"echo $PULUMI_COMMAND_STDOUT >> {tmp_path}/seen; echo second"
    made = command.create(KIND, "here", create="echo first", update=show, delete=show)
    made = command.update(made, create="echo first", update=show, delete=show, stdin="x")
    command.delete(made)
    assert (tmp_path / "seen").read_text().splitlines() == ["first", "second"]


def test_what_was_printed_can_be_kept_out(command: Plugin) -> None:
    inputs = {"create": 'echo "[$PULUMI_COMMAND_STDOUT]"', "addPreviousOutputInEnv": False}
    made = command.create(KIND, "here", **inputs)
    assert command.update(made, **inputs, stdin="x").state["stdout"] == "[]"


def test_preview_runs_nothing(command: Plugin, tmp_path: Path) -> None:
    planned = command.planned(KIND, "here", create=f"touch {tmp_path}/ran")
    assert planned["stdout"] == UNKNOWN
    assert not (tmp_path / "ran").exists()


def test_triggers_replace_and_the_rest_updates(command: Plugin) -> None:
    made = command.create(KIND, "here", create="true", triggers=["a"])
    assert command.diff(made, create="true", triggers=["b"]) == {"triggers[0]": "update_replace"}
    assert command.diff(made, create="false", triggers=["a"]) == {"create": "update"}
    assert command.diff(made, create="true", triggers=["a"]) == {}


def test_a_cancel_kills_the_process(plugin: StartPlugin) -> None:
    command = plugin("command")
    timer = threading.Timer(1, command.cancel)
    timer.start()
    start = time.monotonic()
    with pytest.raises(CallError, match=r"^signal: killed: running"):
        command.create(KIND, "here", create="exec sleep 30")
    assert time.monotonic() - start < 10
    timer.join()


def test_collecting_files_is_refused_clearly(command: Plugin) -> None:
    with pytest.raises(CallError, match=r"assetPaths: the lab's stand-in"):
        command.check(KIND, "here", {"create": "true", "assetPaths": ["*"]})
