"""Story: the first hour on given machines, by the very commands of the install page. Their user is not root, but has sudo."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.machines import Machines
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

LAB = "test-day-one"
SUBNET = "10.93.102.0/24"
PAGE = ROOT / "docs/install/your-machines.md"
CALLED = "mycluster"  # the stack, on the page
LAST = "kubectl get nodes"
NAMES = {"master-1": 11, "master-2": 12, "master-3": 13, "worker-1": 101}
# In this order, whatever else the page says between them.
STEPS = (
    *(
        "make engine",
        f"cp examples/adopted.yaml Pulumi.{CALLED}.yaml",
        f"make hostkeys STACK={CALLED}",
    ),
    *(f"make {verb} STACK={CALLED}" for verb in ("preflight", "preview", "up", "outputs")),
    LAST,
)


def commands() -> list[str]:
    """Lines of the page's shell blocks without their comments, up to the one that shows the cluster."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    lines = [re.sub(r"\s+#.*", "", line).strip() for block in blocks for line in block.splitlines()]
    assert LAST in lines, f"{PAGE} shows no cluster at its end"
    return [line for line in lines[: lines.index(LAST) + 1] if line]


class Reader:
    """Somebody who types what the page says, in one terminal."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._exports: list[str] = []

    def types(self, line: str) -> subprocess.CompletedProcess[str]:
        """The command with the stack's name of this story; a question is answered with yes."""
        own = line.replace(CALLED, self.stack.name)
        if own.startswith("export "):
            self._exports.append(own)
        text = "\n".join([*self._exports, own])
        keyboard, terminal = pty.openpty()
        try:
            os.write(keyboard, b"y\n")
            done = subprocess.run(
                ["bash", "-c", text],
                cwd=ROOT,
                env=self.stack.environment,
                stdin=terminal,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=900,
                check=False,
            )
        finally:
            os.close(keyboard)
            os.close(terminal)
        with (self.stack.evidence / "typed.log").open("a") as log:
            log.write(f"$ {own}\n{done.stdout}\n")
        return done


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """With machines that run, of whom their owner knows name and address, and no host key."""
    machines = Machines(LAB, SUBNET, tmp_path_factory.mktemp("day-one"))
    known: dict[str, list[dict[str, object]]] = {"master": [], "worker": []}
    with Stack("day_one", config.adopted(LAB, machines.mirror, machines.user_key, known)) as stack:
        machines.start_lab()
        for name, number in NAMES.items():
            entry = machines.start(name, number)
            del entry["hostKey"]
            known[name.partition("-")[0]].append(entry)
        stack.write()
        for name in NAMES:
            wait_for(f"{name} booted", stack.node(name).is_booting, limit_s=120)
        try:
            yield Reader(stack)
        finally:
            shutil.rmtree(ROOT / ".local/outputs" / stack.name, ignore_errors=True)


def test_the_page_has_the_commands_in_this_order() -> None:
    page = commands()
    assert [line for line in page if line in STEPS] == list(STEPS)


def test_the_page_makes_a_cluster_of_them(reader: Reader) -> None:
    stack = reader.stack
    assert stack.config["machines"]["ssh"] != {"user": "root"}
    for line in commands():
        if line.startswith("git clone"):
            continue  # this is the clone
        if line.startswith("cp examples/"):
            _writes_its_own_file(reader, line)
            continue
        done = reader.types(line)
        if line.startswith("make hostkeys"):
            assert f"0 of {len(NAMES)} host keys are on record" in done.stdout
            assert done.returncode != 0
            _compares_and_pastes(stack, done.stdout)
            done = reader.types(line)
            assert f"{len(NAMES)} of {len(NAMES)} host keys are on record" in done.stdout
        assert done.returncode == 0, f"{line}\n{done.stdout}"
        if line.startswith("make preflight"):
            assert "all machines are ready" in done.stdout
        if line.startswith("make preview"):
            assert all(name in done.stdout for name in ("master", "worker"))
        if line == LAST:
            ready = [row.split()[0] for row in done.stdout.splitlines() if " Ready " in row]
            assert sorted(ready) == sorted(NAMES)


def test_the_second_update_changes_nothing(reader: Reader) -> None:
    assert_up_changes_nothing(reader.stack)


def test_on_a_cluster_that_lives_preflight_finds_nothing_either(reader: Reader) -> None:
    """Its own services listen at the ports now, and count."""
    done = reader.types(f"make preflight STACK={CALLED}")
    assert done.returncode == 0, done.stdout
    assert "all machines are ready" in done.stdout


def test_a_closed_port_is_told_with_both_ends(reader: Reader) -> None:
    master = reader.stack.node("master-2")
    master.run("iptables -I INPUT -p tcp --dport 6443 -s 10.93.102.101 -j DROP")
    try:
        done = reader.types(f"make preflight STACK={CALLED}")
    finally:
        master.run("iptables -D INPUT -p tcp --dport 6443 -s 10.93.102.101 -j DROP")
    assert done.returncode != 0
    assert "port 6443/tcp (api) is not reached from worker-1" in done.stdout


def _writes_its_own_file(reader: Reader, line: str) -> None:
    """The example is a stack file; of it the reader keeps the form, and puts in own names and addresses."""
    stack = reader.stack
    before = yaml.safe_load(stack.file.read_text())
    assert reader.types(line).returncode == 0
    example = yaml.safe_load(stack.file.read_text())["config"]
    assert {"kube-ha:cluster", "kube-ha:machines", "kube-ha:pools"} <= set(example)
    stack.file.write_text(yaml.safe_dump(before, sort_keys=False))  # with the salt of its secrets
    stack.write()


def _compares_and_pastes(stack: Stack, told: str) -> None:
    """Each fingerprint against what the machine itself says, then the lines into the stack file."""
    pools = stack.config["pools"]
    assert isinstance(pools, dict)
    rows = told.splitlines()
    for pool in pools.values():
        assert isinstance(pool, dict)
        for host in pool["hosts"]:
            (index,) = [n for n, row in enumerate(rows) if row.split()[:1] == [host["name"]]]
            console = stack.node(str(host["name"])).run(
                "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key"
            )
            assert rows[index].split()[2] == console.split()[1]
            assert "is not on record" in rows[index]
            host["hostKey"] = rows[index + 1].strip().removeprefix("hostKey: ")
    stack.write()
