"""Story: the firewall of one lab machine without a cluster, by its phases over real SSH: who is let in, who is not, and that nobody is locked out."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stacks.phases import firewall
from stacks.phases.scripts import script_sum
from tests.e2e.harness import lab
from tests.e2e.harness.machines import Machines
from tests.e2e.harness.node import Node
from tests.e2e.harness.waiting import wait_for
from tests.scripts.shell import OWNER, SCRIPTS, VALUES
from tests.unit import configs

LAB = "test-firewall-alone"
NET = "10.93.148"
PORTS = (22, 2379, 6443, 9100, 10250)
US = f"{NET}.1/32"
FRIENDLY = {"sshFrom": [US], "apiFrom": [US]}
HOSTILE = {"sshFrom": ["192.0.2.0/24"]}
# Addresses of the other machine: no machine of the cluster, a master, a worker, and one that is about to join.
STRANGER, MASTER, WORKER, NEW = 9, 12, 101, 103


@dataclass(frozen=True, slots=True)
class Place:
    """The machine, the other one, and how this computer runs phases."""

    key: Path
    machine: Node
    other: Node

    def ssh(self, command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        known = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
        return subprocess.run(
            ["ssh", "-q", "-i", str(self.key), *known, f"admin@{NET}.11", command],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def phase(self, name: str, said: object, *, workers: int = 2, fails: bool = False) -> str:
        done = self.ssh(f"sudo -n bash .kube-ha/run.sh {name}", _stdin(name, said, workers))
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout

    def reached(self, number: int) -> set[int]:
        """Ports that let in a connection of the other machine, from that address of its."""
        dialled = "".join(
            f"timeout 3 curl -sv --interface {NET}.{number} telnet://{NET}.11:{port} </dev/null 2>&1 | "
            f"grep -q 'Connected to' && echo {port}\n"
            for port in PORTS
        )
        return {int(port) for port in self.other.run(f"{dialled}true").split()}

    def table(self) -> str:
        return self.machine.asked("nft -s list table inet kube-ha")


def _stdin(phase: str, said: object, workers: int) -> str:
    edits = {
        "machines.lab.subnet": f"{NET}.0/24",
        "machines.firewall": said,
        "pools.worker.count": workers,
    }
    plan = configs.planned(configs.lab(edits))
    values = {**VALUES, "SCRIPT_SUM": script_sum(phase)}
    values |= firewall.of_firewall(plan, plan.node("master-1")) if phase != "leave" else {}
    lines = (f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    return "".join(lines) + "# end\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    machines = Machines(LAB, f"{NET}.0/24", Path(tmp_path_factory.mktemp("firewall")))
    lab.free(LAB)
    try:
        machines.start_lab()
        machines.start("master-1", 11)
        machines.start("other", STRANGER)
        place = Place(machines.user_key, Node(LAB, "master-1"), Node(LAB, "other"))
        for number in (MASTER, WORKER, NEW):
            place.other.run(f"ip address add {NET}.{number}/24 dev eth0")
        _bring_scripts(place)
        _listen(place)
        yield place
    finally:
        lab.free(LAB)


def _bring_scripts(place: Place) -> None:
    place.ssh("mkdir -p .kube-ha")
    for file in SCRIPTS.glob("*.sh"):
        place.machine.put(f"/home/admin/.kube-ha/{file.name}", file.read_text())


def _listen(place: Place) -> None:
    for port in PORTS[1:]:
        place.machine.start_program(f"socat TCP-LISTEN:{port},fork,reuseaddr EXEC:/bin/cat")
    wait_for(
        "listeners", lambda: "" if place.reached(STRANGER) == {*PORTS} else "not yet", limit_s=30
    )


def test_rules_that_keep_this_computer_out_are_taken_back_within_the_run(place: Place) -> None:
    told = place.phase("firewall", HOSTILE, fails=True)
    assert f"the new rules keep out {NET}.1" in told
    assert place.table() == ""
    assert place.reached(STRANGER) == {*PORTS}


def test_it_lets_in_who_has_to_come_in(place: Place) -> None:
    began = time.monotonic()
    place.phase("firewall", FRIENDLY)
    assert time.monotonic() - began < 60
    assert place.reached(STRANGER) == set()
    assert place.reached(MASTER) == {22, 2379, 6443, 10250}
    assert place.reached(WORKER) == {22, 6443, 10250}
    assert place.ssh("true").returncode == 0
    assert "changes=0" in place.phase("firewall", FRIENDLY)


def test_a_stream_that_is_open_goes_on_when_the_firewall_begins(place: Place) -> None:
    place.machine.run("systemctl stop kube-ha-firewall")
    told = "for n in $(seq 40); do echo $n >&3; read -t 5 -r got <&3; echo $got; sleep 0.5; done"
    # From the first address, which is nobody's in the cluster: a new connection is kept out.
    place.other.start_program(f"(exec 3<>/dev/tcp/{NET}.11/2379; {told}) >/tmp/echoed 2>&1")
    time.sleep(1)
    place.phase("firewall", FRIENDLY)
    assert place.reached(STRANGER) == set()
    ended = "test $(wc -l </tmp/echoed) -ge 40 || echo short"
    wait_for("the stream's end", lambda: place.other.asked(ended), limit_s=60)
    assert place.other.run("cat /tmp/echoed").split() == [str(n) for n in range(1, 41)]


def test_a_machine_that_is_to_join_is_let_in_before_anybody_is_kept_out(place: Place) -> None:
    assert place.reached(NEW) == set()
    place.phase("firewall-open", FRIENDLY, workers=3)
    assert place.reached(NEW) == place.reached(WORKER) == {22, 6443, 10250}
    place.phase("firewall-open", HOSTILE, workers=3)
    assert place.ssh("true").returncode == 0
    place.phase("firewall", FRIENDLY, workers=1)
    assert place.reached(NEW) == set()
    assert "before-" not in place.table()


def test_a_run_that_is_killed_over_new_rules_leaves_the_old_ones(place: Place) -> None:
    before = place.table()
    began = place.machine.run("date +%s").strip()
    place.machine.put("/run/stdin", _stdin("firewall", HOSTILE, 2))
    with subprocess.Popen(
        ["ssh", "-q", "-i", str(place.key), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
         f"admin@{NET}.11", "sudo -n bash -c 'bash .kube-ha/run.sh firewall </run/stdin'"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
    ) as run:  # fmt: skip
        wait_for(
            "the trial", lambda: "" if "chain tried" in place.table() else "not yet", limit_s=60
        )
        place.machine.run("pkill -9 -f 'run.sh firewal[l]'")
        run.kill()
    wait_for("the old rules", lambda: "" if place.table() == before else "not yet", limit_s=90)
    assert int(place.machine.run("date +%s")) - int(began) >= 30
    assert place.ssh("true").returncode == 0


def test_a_machine_that_boots_has_the_rules(place: Place) -> None:
    before = place.table()
    place.machine.kill()
    place.machine.start()
    assert place.table() == before
    assert place.machine.run("systemctl is-enabled kube-ha-firewall").strip() == "enabled"


def test_a_machine_that_leaves_keeps_nothing_of_it(place: Place) -> None:
    assert place.machine.run("cat /var/lib/kube-ha/state/owner").strip() == OWNER
    place.phase("leave", {})
    assert place.table() == ""
    left = place.machine.run(
        "ls -A /etc/systemd/system /etc/kube-ha /var/lib/kube-ha 2>/dev/null || true"
    )
    assert "firewall" not in left
    assert place.reached(STRANGER) >= {22}
