"""The real engine runs a real program on the stand-ins: stories of a resource's life."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.toolchain.project import Project
from tests.toolchain.sshd import Sshd

pytestmark = pytest.mark.slow

PROGRAM = """
import json, uuid
import pulumi
import pulumi_tls as tls
from pulumi import ResourceOptions
from pulumi_command import local, remote

config = pulumi.Config()
text = config.get("text") or "one"
with open("connection.json") as file:
    connection = remote.ConnectionArgs(**json.load(file))

key = tls.PrivateKey("ca", algorithm="ECDSA", ecdsa_curve="P256")
ca = tls.SelfSignedCert("ca", private_key_pem=key.private_key_pem, is_ca_certificate=True,
    validity_period_hours=24, allowed_uses=["cert_signing"],
    subject=tls.SelfSignedCertSubjectArgs(common_name="kubernetes"))

machine = local.Command("machine", create="true", delete="echo machine deleted >> log",
    add_previous_output_in_env=False)
stamp = pulumi.Stash("stamp", input=str(uuid.uuid4()),
    opts=ResourceOptions(ignore_changes=["input"], replacement_trigger=text))
script = stamp.output.apply(
    lambda value: f"# attempt {value}\\necho {text} >> {config.require('log')}\\n{config.get('more') or ''}\\n")
if config.get("node") != "gone":
    node = remote.Command("node", connection=connection, create="bash -s", stdin=script,
        delete=f"echo node deleted >> {config.require('log')}", add_previous_output_in_env=False,
        opts=ResourceOptions(deleted_with=machine))
    secret = remote.Command("secret", connection=connection, create="sha256sum", stdin=key.private_key_pem,
        logging=remote.Logging.NONE, add_previous_output_in_env=False,
        opts=ResourceOptions(additional_secret_outputs=["stdout", "stderr"]))
    gate = remote.Command("gate", connection=connection, create="true", stdin=text,
        add_previous_output_in_env=False, opts=ResourceOptions(depends_on=[node]))
    pulumi.export("memory", gate.stdout.apply(lambda _: text))
pulumi.export("stamp", stamp.output)
pulumi.export("key", key.private_key_pem)
"""


@pytest.fixture
def project(sshd: Sshd, tmp_path: Path) -> Project:
    """A stack with a PKI, a machine, a node on it with an attempt stamp, and a gate."""
    made = Project.make(tmp_path / "project", PROGRAM)
    options = {
        "host": "127.0.0.1",
        "port": sshd.port,
        "user": sshd.user,
        "private_key": sshd.private_key(),
        "host_key": sshd.host_key(),
        "dial_error_limit": 1,
    }
    (made.folder / "connection.json").write_text(json.dumps(options), encoding="utf-8")
    made.set(log=str(_log(made)))
    return made


def _log(project: Project) -> Path:
    return project.folder / "log"


def _ran(project: Project) -> list[str]:
    log = _log(project)
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def test_a_second_up_changes_nothing_and_connects_nowhere(project: Project) -> None:
    connections = project.folder / "connections"
    project.up(KUBE_HA_CONNECTION_LOG=str(connections)).succeeded()
    assert len(connections.read_text().splitlines()) == 3
    connections.unlink()
    second = project.up(KUBE_HA_CONNECTION_LOG=str(connections)).succeeded()
    assert "8 unchanged" in second.text
    assert not connections.exists()
    assert _ran(project) == ["one"]
    assert project.changes() == {}
    refreshed = project.pulumi("refresh", "--yes", "--skip-preview").succeeded()
    assert "8 unchanged" in refreshed.text


def test_preview_shows_the_text_that_changes_and_no_secret(project: Project) -> None:
    project.up().succeeded()
    project.set(text="two")
    assert project.changes() == {"stamp": "replace", "node": "update", "gate": "update"}
    shown = project.pulumi("preview", "--diff").succeeded().text
    assert f"- echo one >> {_log(project)}" in shown
    assert f"+ echo two >> {_log(project)}" in shown
    assert "PRIVATE KEY" not in shown
    assert _ran(project) == ["one"]


def test_no_secret_lies_in_state_or_output(project: Project) -> None:
    shown = project.up().succeeded().text
    body = project.output("key").splitlines()[1]
    assert body not in shown
    assert body not in project.state()


def test_a_failed_update_that_is_reverted_runs_again(project: Project) -> None:
    project.up().succeeded()
    first = project.output("stamp")
    project.set(text="two", more="echo broke >&2; exit 3")
    failed = project.up()
    assert failed.code != 0
    assert 'Process exited with status 3: running "bash -s":' in failed.text
    assert project.output("memory") == "one"
    project.set(text="one", more="")
    project.up().succeeded()
    assert _ran(project) == ["one", "two", "one"]
    assert project.output("stamp") != first
    assert project.changes() == {}


def test_a_failed_update_is_tried_again_without_an_edit(project: Project) -> None:
    project.up().succeeded()
    project.set(text="two")
    assert project.up(KUBE_HA_FAULTS="fail:node:once").code != 0
    project.up().succeeded()
    assert _ran(project) == ["one", "two"]
    assert project.output("memory") == "two"


def test_a_failed_create_is_not_in_the_state(project: Project) -> None:
    assert project.up(KUBE_HA_FAULTS="fail:node").code != 0
    changes = project.changes()
    assert changes["node"] == changes["gate"] == "create"
    # The engine stops at a failure: what does not wait for the node is there or not, by how far it was.
    assert changes.keys() - {"node", "gate"} <= {"secret", "ca"}
    project.up().succeeded()
    assert _ran(project) == ["one"]


def test_removing_the_node_runs_its_delete(project: Project) -> None:
    project.up().succeeded()
    project.set(node="gone")
    project.up().succeeded()
    assert _ran(project) == ["one", "node deleted"]


def test_a_node_deleted_with_its_machine_is_not_asked(project: Project) -> None:
    project.up().succeeded()
    project.pulumi("destroy", "--yes", "--skip-preview").succeeded()
    assert _ran(project) == ["one", "machine deleted"]


def test_a_killed_engine_leaves_no_process_and_can_go_on(project: Project, sshd: Sshd) -> None:
    project.set(more=f"touch {project.folder}/started; sleep 20")
    running = project.start("up", "--yes", "--skip-preview")
    _wait(lambda: (project.folder / "started").exists())
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    _wait(lambda: not _of_session(running.pid))
    _wait(lambda: sshd.sessions() == 0)
    project.pulumi("cancel", "--yes").succeeded()
    project.set(more="true")
    project.up().succeeded()
    assert _ran(project) == ["one", "one"]
    assert project.changes() == {}


def test_an_interrupt_lets_the_command_end(project: Project) -> None:
    project.set(more=f"touch {project.folder}/started; sleep 3; echo ended >> {_log(project)}")
    running = project.start("up", "--yes", "--skip-preview")
    _wait(lambda: (project.folder / "started").exists())
    os.kill(running.pid, signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode != 0
    assert _ran(project) == ["one", "ended"]
    assert project.changes() == {"gate": "create"}


def test_a_program_that_raises_says_where(tmp_path: Path) -> None:
    project = Project.make(
        tmp_path / "project", "def plan():\n    raise ValueError('no master')\nplan()\n"
    )
    failed = project.up()
    assert failed.code != 0
    assert "ValueError: no master" in failed.text


def test_a_program_that_has_shown_its_error_ends_with_that_alone(tmp_path: Path) -> None:
    """As the program refuses a config: by the exit code that language hosts know, official ones too."""
    refusal = "import sys, pulumi\npulumi.log.error('2 problems\\n  no master')\nsys.exit(32)\n"
    project = Project.make(tmp_path / "project", refusal)
    for refused in (project.pulumi("preview"), project.up()):
        assert refused.code != 0
        shown = refused.text[refused.text.index("Diagnostics:") : refused.text.index("Resources:")]
        assert [line.strip() for line in shown.splitlines() if line.strip()] == [
            "Diagnostics:",
            "pulumi:pulumi:Stack (tiny-test):",
            "error: 2 problems",
            "no master",
        ]


def test_an_engine_that_is_too_old_is_refused(tmp_path: Path) -> None:
    """Pulumi.yaml says which; an engine that reads it names both versions."""
    project = Project.make(tmp_path / "project", "")
    file = project.folder / "Pulumi.yaml"
    file.write_text(f"{file.read_text()}requiredPulumiVersion: '>=99.0.0'\n", encoding="utf-8")
    refused = project.pulumi("preview")
    assert refused.code != 0
    assert 'does not satisfy the version range ">=99.0.0"' in refused.text
    own = yaml.safe_load((Path(__file__).parents[2] / "Pulumi.yaml").read_text())
    wanted = f"requiredPulumiVersion: '{own['requiredPulumiVersion']}'"
    file.write_text(file.read_text().replace("requiredPulumiVersion: '>=99.0.0'", wanted))
    project.up().succeeded()


def test_a_missing_virtual_environment_is_named(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project", "", virtualenv=".no-venv")
    failed = project.up()
    assert failed.code != 0
    assert "/project/.no-venv, and there is none. Run make setup" in failed.text


OWN_OUTPUTS = """
import pulumi
from pulumi.runtime.sync_await import _sync_await

name = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
own = pulumi.StackReference("self", stack_name=name)
before = _sync_await(own.get_output_details("memory")).value
if before == {"masters": 3.0} and pulumi.Config().get("masters") == "0":
    raise SystemExit("refused: the last masters cannot go")
pulumi.export("before", before)
pulumi.export("memory", {"masters": 3})
"""


def test_own_outputs_are_known_before_any_resource(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project", OWN_OUTPUTS)
    project.up().succeeded()
    project.up().succeeded()
    assert json.loads(project.output("before")) == {"masters": 3}
    project.set(masters="0")
    for refused in (project.pulumi("preview"), project.up()):
        assert refused.code != 0
        assert "refused: the last masters cannot go" in refused.text


def _of_session(leader: int) -> list[str]:
    """Processes of a session, whose leader may be gone."""
    words = ["ps", "-s", str(leader), "-o", "pid=,args="]
    listed = subprocess.run(words, capture_output=True, text=True, check=False)
    return listed.stdout.splitlines()


def _wait(fact: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not fact():
        assert time.monotonic() < end, "not seen in 20 s"
        time.sleep(0.1)


PROTECTED = """
import pulumi
from pulumi import ResourceOptions
from components.protection import Protection

cluster = pulumi.ComponentResource("a:b:Cluster", "prod")
keys = pulumi.ComponentResource("a:b:Pki", "prod-pki")
key = pulumi.Stash("key", input="k", opts=ResourceOptions(parent=keys))
nodes = [
    pulumi.Stash(f"node-{n}", input=key.output, opts=ResourceOptions(parent=cluster)) for n in (1, 2)
]
if pulumi.Config().get("protects"):
    Protection("prod", [cluster, keys])
"""


def test_a_protected_cluster_is_not_destroyed_in_part_either(tmp_path: Path) -> None:
    """The engine deletes what it can until it meets what is protected: it has to meet that first."""
    project = Project.make(tmp_path / "project", PROTECTED)
    own = {"PYTHONPATH": str(Path(__file__).parents[2])}
    project.up(**own).succeeded()
    project.set(protects="true")
    assert "+ 2 created" in project.up(**own).succeeded().text, "nothing that is there changes"
    for words in (["--yes"], ["--yes", "--skip-preview"]):
        refused = project.pulumi("destroy", *words)
        assert refused.code != 0
        assert '::prod-protection" cannot be deleted' in refused.text
    assert project.pulumi("preview", "--expect-no-changes", **own).succeeded()
    project.pulumi("state", "unprotect", "--all", "--yes").succeeded()
    assert "8 deleted" in project.pulumi("destroy", "--yes", "--skip-preview").succeeded().text


def test_install_makes_the_environment_that_a_first_update_runs_in(tmp_path: Path) -> None:
    """As docs/reference/plain-pulumi.md has it, with no make: install, init, up, refresh, destroy."""
    project = Project.make(tmp_path / "project", "", virtualenv=".venv")
    (project.folder / "requirements.txt").write_text("")
    assert project.pulumi("preview").code != 0
    project.pulumi("install").succeeded()
    python = project.folder / ".venv/bin/python"
    assert python.is_file()
    # In place of a download: the SDK of whoever runs the tests.
    (site,) = (project.folder / ".venv/lib").glob("python3*/site-packages")
    [here] = [path for path in sys.path if path.endswith("site-packages")]
    (site / "here.pth").write_text(here)
    for words in (["up"], ["refresh"], ["destroy"], ["stack", "rm"]):
        project.pulumi(*words, "--yes").succeeded()
