"""Operations by hand: how machines are reached, what is compared between them, how it is told."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from components.ssh.hop import Hop
from operations import preflight, verify
from operations.engine import stack
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.ssh import client as machine
from operations.ssh.client import Answer, Target
from tests.unit.configs import adopted, host_key, planned

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nhidden\n-----END OPENSSH PRIVATE KEY-----"
HOP = Hop(address="192.0.2.11", port=22, user="ops", host_key=host_key(1), key=KEY)


class Client:
    """Stands for the SSH client: keeps its arguments, its stdin and what lay in its files."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        program = folder / "ssh"
        program.write_text(
            f"#!/bin/bash\nprintf '%s\\n' \"$@\" >{folder}/arguments\ncat >{folder}/stdin\n"
            "for word; do case $word in IdentityFile=*) file=${word#*=} ;; esac; done\n"
            f'[[ -z ${{file:-}} ]] || {{ stat -c %a "$file" && cat "$file"; }} >{folder}/key\n'
            "for word; do case $word in UserKnownHostsFile=*) "
            f"cat ${{word#*=}} >{folder}/known ;; esac; done\n"
            f"echo facts aa host 1.5; exit $(cat {folder}/status 2>/dev/null || echo 0)\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    @property
    def arguments(self) -> list[str]:
        return self.read("arguments").splitlines()


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    return Client(tmp_path, monkeypatch)


def run(target: Target) -> Answer:
    return machine.run(target, "preflight", {"NODE": "x", "TEXT": "value"}, limit_s=60)


def test_the_host_key_is_pinned_and_the_key_lies_in_a_private_file(client: Client) -> None:
    run(Target(hop=HOP))
    assert client.read("known") == f"192.0.2.11 {HOP.host_key}\n"
    assert client.read("key") == f"600\n{KEY}\n"
    assert "StrictHostKeyChecking=yes" in client.arguments
    assert "hidden" not in client.read("arguments")


def test_nothing_is_left_of_the_key(client: Client) -> None:
    run(Target(hop=HOP))
    path = next(w.partition("=")[2] for w in client.arguments if w.startswith("IdentityFile="))
    assert not Path(path).exists()


def test_values_and_scripts_travel_on_stdin(client: Client) -> None:
    run(Target(hop=HOP))
    text = client.read("stdin")
    assert text.startswith("NODE=x\nTEXT=value\n")
    assert text.endswith("main </dev/null\n")
    assert client.arguments[-1] == "timeout 60 sudo -n bash -s"


def test_without_a_key_file_the_agent_serves(client: Client) -> None:
    run(Target(hop=Hop(address="a", port=2222, user="root", host_key=None, key=None)))
    assert not [word for word in client.arguments if word.startswith("Identity")]
    assert "StrictHostKeyChecking=no" in client.arguments
    assert client.arguments[-1] == "timeout 60 bash -s"


def test_the_bastion_is_pinned_too(client: Client) -> None:
    bastion = Hop(address="192.0.2.1", port=2200, user="jump", host_key=host_key(2), key=KEY)
    run(Target(hop=HOP, bastion=bastion))
    proxy = next(word for word in client.arguments if word.startswith("ProxyCommand="))
    assert proxy.endswith("-W %h:%p 192.0.2.1")
    assert "StrictHostKeyChecking=yes" in proxy
    assert "-p 2200 -l jump" in proxy


def test_a_machine_that_does_not_answer_is_told_apart_from_a_failed_check(client: Client) -> None:
    (client.folder / "status").write_text("255")
    assert not run(Target(hop=HOP)).reached
    (client.folder / "status").write_text("1")
    assert run(Target(hop=HOP)).reached


def answer(text: str = "", status: int = 0) -> Answer:
    return Answer(status=status, text=text, asked_at_s=100.0)


REPORT = """facts aa one 100.2
ERROR one (192.0.2.11): 2 problem(s), nothing was changed on this machine
  - 1 CPUs, 2 needed
    do: give the machine more CPUs
  - swap is on: /dev/sda2
    do: run swapoff -a and take swap out of /etc/fstab"""


def test_problems_of_a_machine_are_read_from_its_report() -> None:
    found = preflight.of_answer(answer(REPORT, status=1))
    assert [problem.splitlines()[0] for problem in found] == [
        "1 CPUs, 2 needed",
        "swap is on: /dev/sda2",
    ]


def test_a_check_that_broke_off_is_a_problem() -> None:
    assert (
        "sudo: a password is required"
        in preflight.of_answer(answer("sudo: a password is required", status=1))[0]
    )


def test_clones_and_clocks_show_between_machines() -> None:
    answers = {
        "one": answer("facts aa host-1 100.5"),
        "two": answer("facts aa host-2 101.0"),
        "three": answer("facts bb host-2 100.1"),
        "four": answer("facts cc host-4 160.0"),
        "dead": answer("no route", status=255),
    }
    found = {name: preflight.between(name, answers) for name in answers}
    assert found["one"][0].startswith("machine-id is that of two too")
    assert [text.split()[0] for text in found["two"]] == ["machine-id", "hostname"]
    assert found["three"][0].startswith("hostname host-2 is that of two too")
    assert found["four"][0].startswith("clock is +59 s off")
    assert found["dead"] == []


def test_the_table_names_every_machine_and_counts() -> None:
    nodes = planned(adopted()).nodes[:2]
    text = preflight.table(nodes, {"master-1": [], "master-2": ["bad\n    do: fix"]})
    assert text.splitlines() == [
        "master-1  192.0.2.11       ok",
        "master-2  192.0.2.12       1 problem",
        "  - bad",
        "    do: fix",
        "1 of 2 machines have problems",
    ]


def test_verify_asks_the_next_master_when_one_cannot_be_reached(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = planned(adopted())
    found = Stack(
        plan=wanted, targets={node.name: Target(hop=HOP) for node in wanted.nodes}, cluster_id="1"
    )
    assert verify.verify(found) == 0
    (client.folder / "status").write_text("255")
    assert verify.verify(found) == 1
    out = capsys.readouterr().out
    assert out.count("any other master will do") == 3
    assert "ERROR no master can be reached" in out


def test_a_missing_stack_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StackError, match=r"Pulumi\.nope\.yaml: cannot be read"):
        stack.read("nope", applied=False)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the stack prod, of adopted machines; its engine says what is in files there.

    On `stack WORD` that is said-WORD, or else it fails with the words in `said`.
    """
    config = {f"kube-ha:{key}": value for key, value in adopted().items()}
    (tmp_path / "Pulumi.prod.yaml").write_text(json.dumps({"config": config}))
    program = tmp_path / "pulumi"
    program.write_text(
        "#!/bin/bash\n[[ ! -f said-$2 ]] || { cat said-$2; exit 0; }\ncat said >&2; exit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file://state")
    return tmp_path


def test_a_stack_that_cannot_be_read_is_told_apart_from_one_never_applied(engine: Path) -> None:
    (engine / "said").write_text("a warning\nerror: incorrect passphrase\n")
    with pytest.raises(StackError, match="prod cannot be read: error: incorrect passphrase"):
        stack.read("prod", applied=False)
    (engine / "said").write_text("error: no stack named 'prod' found\n")
    assert stack.read("prod", applied=False).cluster_id == ""
    with pytest.raises(StackError, match="never applied to its end"):
        stack.read("prod", applied=True)


def test_machines_of_a_failed_first_up_are_known_as_ours(engine: Path) -> None:
    (engine / "said-output").write_text("{}")
    stdin = "NODE=master-1\nCLUSTER=prod\nCLUSTER_ID=8809fcb83621\nCONTAINER=0\n"
    command = {"type": "command:remote:Command", "inputs": {"stdin": stdin}}
    (engine / "said-export").write_text(json.dumps({"deployment": {"resources": [command]}}))
    assert stack.read("prod", applied=False).cluster_id == "8809fcb83621"
    (engine / "said-output").write_text('{"clusterId": "0123456789ab"}')
    assert stack.read("prod", applied=False).cluster_id == "0123456789ab"
