"""`remote.Command` of the stand-in does what the official plugin does, on a real sshd."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.toolchain import sshd as servers
from tests.toolchain.plugin_client import CallError, Plugin
from tests.toolchain.sshd import Sshd
from toolchain.values import UNKNOWN, Properties, Secret, Unknown

KIND = "command:remote:Command"


def test_create_runs_the_command_with_its_stdin(sshd: Sshd, command: Plugin) -> None:
    made = command.create(
        KIND,
        "node",
        connection=sshd.connection(),
        create="bash -s",
        stdin="echo one; echo two >&2\n",
    )
    assert made.state["stdout"] == "one"
    assert made.state["stderr"] == "two"
    assert made.identity.startswith("node")
    assert len(made.identity) == len("node") + 8


def test_only_the_last_newline_is_cut(sshd: Sshd, command: Plugin) -> None:
    made = command.create(KIND, "node", connection=sshd.connection(), create=r"printf 'a\n\n'")
    assert made.state["stdout"] == "a\n"


def test_outputs_are_never_secret_even_if_stdin_is(sshd: Sshd, command: Plugin) -> None:
    made = command.create(
        KIND, "node", connection=sshd.connection(), create="cat", stdin=Secret("hidden")
    )
    assert made.state["stdout"] == "hidden"
    assert made.state["stdin"] == Secret("hidden")
    assert isinstance(made.state["connection"], Secret)


def test_failure_tells_status_command_and_all_output(sshd: Sshd, command: Plugin) -> None:
    with pytest.raises(CallError) as caught:
        command.create(
            KIND, "node", connection=sshd.connection(), create="echo out; echo err >&2; exit 3"
        )
    text = str(caught.value)
    assert text.startswith(
        'Process exited with status 3: running "echo out; echo err >&2; exit 3":\n'
    )
    assert {"out", "err"} <= set(text.splitlines())


def test_failure_by_a_signal_names_it(sshd: Sshd, command: Plugin) -> None:
    with pytest.raises(CallError, match=r"^Process exited with status 137 from signal KILL: "):
        command.create(KIND, "node", connection=sshd.connection(), create="kill -9 $$")


def test_quotes_and_newlines_of_the_command_are_escaped(sshd: Sshd, command: Plugin) -> None:
    with pytest.raises(CallError) as caught:
        command.create(KIND, "node", connection=sshd.connection(), create='echo "x"\nexit 1')
    assert r'running "echo \"x\"\nexit 1":' in str(caught.value)


def test_update_runs_create_again_when_there_is_no_update(sshd: Sshd, command: Plugin) -> None:
    inputs = {"connection": sshd.connection(), "create": "cat"}
    made = command.create(KIND, "node", **inputs, stdin="1")
    assert command.update(made, **inputs, stdin="2").state["stdout"] == "2"


def test_update_runs_update_when_there_is_one(sshd: Sshd, command: Plugin) -> None:
    inputs = {"connection": sshd.connection(), "create": "echo made", "update": "echo updated"}
    made = command.create(KIND, "node", **inputs)
    assert command.update(made, **inputs, delete="true").state["stdout"] == "updated"


def test_delete_gets_the_stdin_of_the_last_success(
    sshd: Sshd, command: Plugin, tmp_path: Path
) -> None:
    made = command.create(
        KIND,
        "node",
        connection=sshd.connection(),
        create="true",
        stdin="left behind",
        delete=f"cat > {tmp_path}/seen",
    )
    command.delete(made)
    assert (tmp_path / "seen").read_text() == "left behind"


def test_delete_without_a_command_connects_nowhere(sshd: Sshd, command: Plugin) -> None:
    made = command.create(
        KIND, "node", connection=sshd.connection(port=servers.free_port(), dialErrorLimit=0)
    )
    assert (made.state["stdout"], made.state["stderr"]) == ("", "")
    command.delete(made)


def test_preview_of_a_change_knows_no_output(sshd: Sshd, command: Plugin) -> None:
    inputs = {"connection": sshd.connection(), "create": "echo here"}
    planned = command.planned(KIND, "node", **inputs)
    assert (planned["stdout"], planned["stderr"]) == (UNKNOWN, UNKNOWN)
    made = command.create(KIND, "node", **inputs)
    changed = command.planned_update(made, **inputs, delete="true")
    assert isinstance(changed["stdout"], Unknown)
    assert changed["delete"] == "true"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, {}, id="no change"),
        pytest.param({"stdin": "other"}, {"stdin": "update"}, id="stdin updates"),
        pytest.param({"delete": "true"}, {"delete": "add"}, id="even delete alone updates"),
        pytest.param(
            {"stdin": Secret("text")}, {"stdin": "update"}, id="turning secret is a change"
        ),
        pytest.param({"triggers": [1]}, {"triggers": "add_replace"}, id="triggers replace"),
    ],
)
def test_which_change_does_what(
    sshd: Sshd, command: Plugin, change: dict[str, object], expected: dict[str, str]
) -> None:
    inputs: dict[str, object] = {
        "connection": sshd.connection(),
        "create": "cat",
        "stdin": "text",
    }
    made = command.create(KIND, "node", **inputs)
    assert command.diff(made, **{**inputs, **change}) == expected


def test_another_host_updates_and_shows_the_path(sshd: Sshd, command: Plugin) -> None:
    made = command.create(KIND, "node", connection=sshd.connection(), create="true")
    changed = command.diff(made, connection=sshd.connection(host="localhost"), create="true")
    assert changed == {"connection.host": "update"}


def test_a_change_of_one_trigger_replaces_by_it_alone(sshd: Sshd, command: Plugin) -> None:
    inputs = {"connection": sshd.connection(), "create": "true"}
    made = command.create(KIND, "node", **inputs, triggers=["a", "b"])
    assert command.diff(made, **inputs, triggers=["a", "c"]) == {"triggers[1]": "update_replace"}


def test_defaults_of_the_connection_are_filled_in(command: Plugin) -> None:
    checked = command.check(KIND, "node", {"connection": {"host": "a", "proxy": {"host": "b"}}})
    hop: Properties = {"user": "root", "port": 22.0, "dialErrorLimit": 10.0, "perDialTimeout": 15.0}
    assert checked["connection"] == Secret({**hop, "host": "a", "proxy": {**hop, "host": "b"}})


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        pytest.param({"create": "x"}, "connection: missing required property", id="no connection"),
        pytest.param({"connection": {}}, "connection.host: missing", id="no host"),
        pytest.param(
            {"connection": {"host": "a", "hostkey": "b"}}, "connection.hostkey: unknown", id="typo"
        ),
        pytest.param(
            {"connection": {"host": "a"}, "logging": "all"}, "logging: want one of", id="logging"
        ),
        pytest.param({"connection": {"host": "a"}, "stdin": 1}, "stdin: want a string", id="type"),
    ],
)
def test_wrong_inputs_are_refused_before_anything_runs(
    command: Plugin, inputs: dict[str, object], text: str
) -> None:
    with pytest.raises(CallError, match=text):
        command.check(KIND, "node", inputs)


def test_twelve_commands_run_at_once(sshd: Sshd, command: Plugin, tmp_path: Path) -> None:

    def meet(number: int) -> object:
        here = f"touch {tmp_path}/{number}; for ((tries = 0; tries < 600; tries++)); do"
        others = f"[[ $(ls {tmp_path} | wc -l) == 12 ]] && echo {number} && exit; sleep 0.1; done; exit 1"
        made = command.create(
            KIND, f"node-{number}", connection=sshd.connection(), create=f"{here} {others}"
        )
        return made.state["stdout"]

    with ThreadPoolExecutor(12) as threads:
        assert list(threads.map(meet, range(12))) == [str(number) for number in range(12)]


def test_no_connection_stays_open(sshd: Sshd, command: Plugin) -> None:
    for number in range(5):
        command.create(KIND, f"node-{number}", connection=sshd.connection(), create="true")
    end = time.monotonic() + 5
    while sshd.sessions() and time.monotonic() < end:
        time.sleep(0.05)
    assert sshd.sessions() == 0


def test_a_child_that_keeps_stdout_holds_the_command(sshd: Sshd, command: Plugin) -> None:
    start = time.monotonic()
    made = command.create(
        KIND, "node", connection=sshd.connection(), create="(sleep 1.5; echo late) & echo early"
    )
    assert made.state["stdout"] == "early\nlate"
    assert time.monotonic() - start > 1.4


def test_large_stdin_and_stdout_pass(sshd: Sshd, command: Plugin) -> None:
    text = ("0123456789abcdef" * 64 + "\n") * 2000
    made = command.create(
        KIND, "node", connection=sshd.connection(), create="cat", stdin=text, logging="none"
    )
    assert made.state["stdout"] == text.removesuffix("\n")
