"""What a stand-in stores is what pulumi-command 1.2.1 stores, so a stack may go from one to the other.

The recorded properties were taken from that version, built from its sources: the same calls, the answers as they were.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from components.ssh.commands import ANY_CHANGE
from tests.toolchain.plugin_client import Made, Plugin
from tests.toolchain.project import Project
from tests.toolchain.sshd import Sshd
from toolchain import standins
from toolchain.values import ASSET, SIGNATURE, UNKNOWN, Properties, Secret

REMOTE = "command:remote:Command"
LOCAL = "command:local:Command"
COPY = "command:remote:CopyToRemote"
HOP: Properties = {"user": "root", "port": 22.0, "dialErrorLimit": 10.0, "perDialTimeout": 15.0}
FILE: Properties = {SIGNATURE: ASSET, "text": "hi", "hash": "aaa"}

RECORDED: list[tuple[str, dict[str, object], Properties]] = [
    (
        REMOTE,
        {"connection": {"host": "h"}, "create": "true"},
        {"connection": Secret({**HOP, "host": "h"}), "create": "true"},
    ),
    (
        REMOTE,
        {
            "connection": Secret({"host": "h", "privateKey": "k", "hostKey": "l", "port": 2.0}),
            "create": "true",
            "stdin": Secret("x"),
            "logging": "none",
            "addPreviousOutputInEnv": False,
        },
        {
            "connection": Secret(
                {**HOP, "host": "h", "privateKey": Secret("k"), "hostKey": "l", "port": 2.0}
            ),
            "create": "true",
            "stdin": Secret("x"),
            "logging": "none",
            "addPreviousOutputInEnv": False,
        },
    ),
    (
        REMOTE,
        {
            "connection": {
                "host": "h",
                "password": "p",
                "privateKeyPassword": "q",
                "proxy": {"host": "b", "privateKey": Secret("k")},
            },
            "create": "true",
            "triggers": ["a", 1.0, Secret("x")],
        },
        {
            "connection": Secret(
                {
                    **HOP,
                    "host": "h",
                    "password": Secret("p"),
                    "privateKeyPassword": Secret("q"),
                    "proxy": {**HOP, "host": "b", "privateKey": Secret("k")},
                }
            ),
            "create": "true",
            "triggers": ["a", 1.0, Secret("x")],
        },
    ),
    (
        REMOTE,
        {"connection": {"host": UNKNOWN, "privateKey": "k"}, "create": "true", "stdin": UNKNOWN},
        {
            "connection": Secret({**HOP, "host": UNKNOWN, "privateKey": Secret("k")}),
            "create": "true",
            "stdin": UNKNOWN,
        },
    ),
    (LOCAL, {"create": "true"}, {"create": "true"}),
    (
        LOCAL,
        {"create": "true", "dir": "/srv", "stdin": Secret("x"), "interpreter": ["sh", "-c"]},
        {"create": "true", "dir": "/srv", "stdin": Secret("x"), "interpreter": ["sh", "-c"]},
    ),
    (
        COPY,
        {"connection": {"host": "h", "privateKey": "k"}, "remotePath": "x", "source": FILE},
        {
            "connection": Secret({**HOP, "host": "h", "privateKey": Secret("k")}),
            "remotePath": "x",
            "source": FILE,
        },
    ),
]


@pytest.mark.parametrize(("kind", "given", "stored"), RECORDED)
def test_inputs_are_stored_as_the_official_plugin_stores_them(
    command: Plugin, kind: str, given: dict[str, object], stored: Properties
) -> None:
    assert command.check(kind, "node", given) == stored


def test_outputs_hold_the_inputs_as_they_are_stored(sshd: Sshd, command: Plugin) -> None:
    where = Secret(sshd.connection())  # type: ignore[arg-type]  # numbers are floats on the wire
    made = command.create(REMOTE, "node", connection=where, create="echo hi", logging="none")
    assert made.state == {**made.inputs, "stdout": "hi", "stderr": ""}


@pytest.mark.parametrize(
    ("ignored", "found"),
    [
        ([], {}),
        (["connection"], {"connection.host": "update"}),
        (["*"], {}),
        (list(ANY_CHANGE), {}),
    ],
)
def test_an_ignored_input_is_taken_from_the_outputs_where_it_is_named_as_they_are(
    command: Plugin, ignored: list[str], found: dict[str, str]
) -> None:
    """The engine has put it back before; so where the output differs, the command runs in every up."""
    given: dict[str, object] = {"connection": {"host": "input"}, "create": "true"}
    inputs = command.check(REMOTE, "node", given)
    state = command.check(REMOTE, "node", {**given, "connection": {"host": "output"}})
    made = Made(REMOTE, "node", "node1", inputs, state)
    assert command.diff_ignoring(made, ignored, given) == found


ONCE = f"""
import sys
from pathlib import Path

sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
import pulumi
from pulumi_command import remote

from components.ssh.commands import ANY_CHANGE

config = pulumi.Config()
connection = remote.ConnectionArgs(
    host="127.0.0.1",
    port=config.require_int("port"),
    user=config.require("user"),
    private_key=Path(config.require("key")).read_text(),
)
for name, ignored in (("always", None), ("once", list(ANY_CHANGE))):
    remote.Command(
        name,
        connection=connection,
        create=f"echo {{name}} >>{{config.require('log')}}",
        opts=pulumi.ResourceOptions(ignore_changes=ignored),
    )
"""
# As stand-ins of before stored it: no secret within the secret.
BEFORE = """
from toolchain.command import inputs, plugin

inputs._SECRET_KEYS = ()
plugin.main()
"""


def test_stacks_of_earlier_stand_ins_store_the_same_after_one_up_that_runs_nothing(
    tmp_path: Path, sshd: Sshd
) -> None:
    project = Project.make(tmp_path / "project", ONCE)
    log = tmp_path / "log"
    project.set(log=str(log), port=str(sshd.port), user=sshd.user, key=str(sshd.folder / "user"))
    program = _own_plugin(project)
    standins.put_script(program, standins.launcher(f"exec({BEFORE!r})"))
    project.up().succeeded()
    assert sorted(log.read_text().split()) == ["always", "once"]
    log.unlink()
    now = standins.launcher("from toolchain.command.plugin import main; main()")
    standins.put_script(program, now)
    assert project.changes() == {}
    project.up().succeeded()
    # The official plugin compares marks of secrecy too, and gets what is stored now.
    standins.put_script(program, standins.launcher(f"exec({STRICT!r})"))
    assert project.changes() == {}
    project.up().succeeded()
    assert not log.exists()


STRICT = """
from toolchain import differences
from toolchain.command import plugin

differences._bare = lambda value: value
plugin.main()
"""


def _own_plugin(project: Project) -> Path:
    """The plugin's program, in a folder of this project alone."""
    plugins = project.folder / "home/plugins"
    plugins.unlink()
    name = "resource-command-v1.2.1"
    (plugins / name).mkdir(parents=True)
    (plugins / f"{name}.lock").touch()
    return plugins / name / "pulumi-resource-command"
