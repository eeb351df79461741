"""What a remote command prints is shown while it runs, if that is wanted; and nothing else is."""

from __future__ import annotations

import pytest

from tests.toolchain.plugin_client import CallError, Plugin
from tests.toolchain.sshd import Sshd
from toolchain.values import Secret

KIND = "command:remote:Command"


@pytest.mark.parametrize(
    ("logging", "shown"),
    [
        pytest.param(None, {"out", "err"}, id="both without a word"),
        pytest.param("stdoutAndStderr", {"out", "err"}, id="both"),
        pytest.param("stdout", {"out"}, id="stdout"),
        pytest.param("stderr", {"err"}, id="stderr"),
        pytest.param("none", set(), id="none"),
    ],
)
def test_logging_chooses_the_streams(
    sshd: Sshd, command: Plugin, logging: str | None, shown: set[str]
) -> None:
    chosen = {} if logging is None else {"logging": logging}
    made = command.create(
        KIND, "node", connection=sshd.connection(), create="echo out; echo err >&2", **chosen
    )
    assert set(command.log.lines) == shown
    assert (made.state["stdout"], made.state["stderr"]) == ("out", "err")


def test_a_line_that_hangs_the_official_plugin_fails(sshd: Sshd, command: Plugin) -> None:
    inputs = {"connection": sshd.connection(), "create": "head -c 70000 /dev/zero | tr '\\0' x"}
    with pytest.raises(CallError, match=r"a line of .* bytes on stdout"):
        command.create(KIND, "node", **inputs)
    made = command.create(KIND, "node", **inputs, logging="none")
    assert made.state["stdout"] == "x" * 70000


def test_no_secret_reaches_log_or_stderr(sshd: Sshd, command: Plugin) -> None:
    inputs = {"create": "cat >/dev/null; exit 1", "stdin": Secret("s3cret-token")}
    with pytest.raises(CallError) as caught:
        command.create(KIND, "node", connection=sshd.connection(), **inputs)
    with pytest.raises(CallError) as unkeyed:
        command.create(KIND, "node", connection=sshd.connection(privateKey="s3cret-key"), **inputs)
    texts = [str(caught.value), str(unkeyed.value), command.errors, *command.log.lines]
    assert not [text for text in texts if "s3cret" in text or "PRIVATE KEY" in text]


def test_a_variable_the_server_refuses_fails(sshd: Sshd, command: Plugin) -> None:
    inputs = {"connection": sshd.connection(), "create": "echo $WELCOME$REFUSED"}
    made = command.create(KIND, "node", **inputs, environment={"WELCOME": "hello"})
    assert made.state["stdout"] == "hello"
    with pytest.raises(CallError, match=r'could not set environment variable "REFUSED"'):
        command.create(KIND, "node", **inputs, environment={"REFUSED": "x"})


def test_previous_output_is_offered_and_its_refusal_only_warned_of(
    sshd: Sshd, command: Plugin
) -> None:
    inputs = {"connection": sshd.connection(), "create": "echo out", "logging": "none"}
    made = command.create(KIND, "node", **inputs)
    command.update(made, **inputs, stdin="x")
    assert [line for line in command.log.lines if "Unable to set 'PULUMI_COMMAND_STDOUT'" in line]
    command.log.lines.clear()
    command.update(made, **inputs, stdin="x", addPreviousOutputInEnv=False)
    assert command.log.lines == []
