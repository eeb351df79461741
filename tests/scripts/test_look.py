"""A look at a whole stack: in parallel, within bounds, and a machine that is dead is a row."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from components.ssh.hop import Hop
from operations import drift, status
from operations.engine import stack
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.observe import expected, observation, probe
from operations.ssh import client
from operations.ssh.client import Target
from stacks.cluster.plan import Plan
from tests.unit.configs import adopted, host_key, lab, planned
from tests.unit.operations import probed

PLAN = planned(adopted())


class Machines:
    """Stands for the SSH client and the machines behind it: a file by address is what one answers."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        wanted = {
            node.name: expected.of(plan, node, files={}, ca="", cluster_id=probed.CLUSTER_ID)
            for node in plan.nodes
        }
        for node in plan.nodes:
            self.answer(node.name, probed.machine(plan, node, wanted[node.name], {}))
        for master in plan.masters:
            self.answer(master.name, probed.cluster(plan, wanted, {}), kind="cluster")
        program = folder / "ssh"
        program.write_text(
            "#!/bin/bash\nwhile [[ $1 != -- ]]; do shift; done\nkind=machine\n"
            "if [[ $(cat) == *ASK=cluster* ]]; then kind=cluster; fi\n"
            f'echo "$kind $2" >>{folder}/asked\n'
            f"for ((tries = 0; tries < 300; tries++)); do\n"
            f"  (($(grep -c ^machine {folder}/asked) < $(cat {folder}/together 2>/dev/null || echo 0))) || break\n"
            "  sleep 0.2\ndone\nif ((tries == 300)); then exit 255; fi\n"
            f"cat {folder}/$kind-$2 2>/dev/null && exit\n"
            'echo "ssh: connect to host $2 port 22: No route to host"; exit 255\n'
        )
        program.chmod(0o755)

    def answer(self, name: str, text: str | None, kind: str = "machine") -> None:
        """What a machine answers; None: it is dead."""
        file = self.folder / f"{kind}-{self.plan.node(name).address}"
        if text is None:
            file.unlink()
        else:
            file.write_text(text)

    @property
    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()

    def look(self) -> probe.Findings:
        targets = {
            node.name: Target(
                hop=Hop(address=node.address, port=22, user="root", host_key=host_key(1), key=None)
            )
            for node in self.plan.nodes
        }
        return probe.ask(Stack(plan=self.plan, targets=targets, cluster_id=probed.CLUSTER_ID))


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return Machines(tmp_path, PLAN)


def test_machines_are_asked_side_by_side(machines: Machines) -> None:
    (machines.folder / "together").write_text("5")  # none answers before all are asked
    found = machines.look()
    assert [one.trouble for one in found.machines.values()] == [""] * 5
    assert found.cluster is not None


def test_a_dead_machine_is_told_and_the_others_answer(machines: Machines) -> None:
    machines.answer("worker-1", None)
    machines.answer("master-2", "sudo: a password is required")
    found = machines.look()
    dead, strange = found.machines["worker-1"], found.machines["master-2"]
    assert (dead.is_reached, dead.trouble) == (
        False,
        "ssh: connect to host 192.0.2.101 port 22: No route to host",
    )
    assert (strange.is_reached, strange.trouble) == (
        True,
        "the probe was interrupted: sudo: a password is required",
    )
    assert found.machines["master-1"].machine is not None


def test_the_cluster_is_asked_of_one_master_that_serves(machines: Machines) -> None:
    machines.answer("master-1", None)
    machines.look()
    assert [line for line in machines.asked if line.startswith("cluster")] == ["cluster 192.0.2.12"]


def test_where_one_master_does_not_tell_the_next_is_asked(machines: Machines) -> None:
    for name in ("master-1", "master-2"):
        machines.answer(name, "refused\tconnection refused\nend", kind="cluster")
    assert machines.look().cluster is not None
    machines.answer("master-3", "", kind="cluster")
    found = machines.look()
    assert found.cluster is None
    assert found.trouble == (
        "master-1: connection refused; master-2: connection refused; "
        "master-3: the probe was interrupted: no answer"
    )


def test_a_machine_that_hangs_is_given_up(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machines.folder / "together").write_text("2")  # a second one never comes
    monkeypatch.setattr(client, "_HANDSHAKE_S", 1)
    target = Target(hop=Hop(address="192.0.2.11", port=22, user="root", host_key=None, key=None))
    answer = client.run(target, "probe", {"NODE": "x"}, limit_s=1)
    assert not answer.reached
    assert answer.text == "no answer within 2 s"


def test_a_clock_counts_only_beyond_the_time_of_the_question() -> None:
    def skew(clock_s: float) -> float:
        answer = client.Answer(status=0, text="", asked_at_s=100, took_s=20)
        return probe.skew_s(clock_s, answer)

    assert [skew(clock) for clock in (90, 100, 110, 120, 150)] == [-10, 0, 0, 0, 30]


@pytest.fixture
def applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with stack dev, whose engine knows no machine but master-1 to master-3 and worker-1."""
    config = {f"kube-ha:{key}": value for key, value in lab().items()}
    (tmp_path / "Pulumi.dev.yaml").write_text(json.dumps({"config": config}))
    nodes = ("master-1", "master-2", "master-3", "worker-1")
    ssh = {n: {"host": n, "user": "root", "hostKey": "k", "privateKey": "p"} for n in nodes}
    outputs = {"ssh": ssh, "clusterId": "0123", "applied": json.dumps({"format": 1})}
    program = tmp_path / "pulumi"
    program.write_text(f"#!/bin/bash\necho '{json.dumps(outputs)}'\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file://state")
    return tmp_path


def test_a_machine_of_the_config_that_is_not_made_yet_stops_no_look(applied: Path) -> None:
    with pytest.raises(StackError, match="worker-2: in Pulumi"):
        stack.read("dev", applied=False)
    found = stack.read("dev", applied=False, whole=False)
    assert "worker-2" not in found.targets
    assert found.remembered == {"format": 1}


@pytest.mark.parametrize("main", [drift.main, status.main])
def test_what_cannot_be_looked_at_is_exit_code_2(
    main: object, applied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(main)
    assert main(["nope"]) == 2
    assert "Pulumi.nope.yaml: cannot be read" in capsys.readouterr().err


def test_both_tools_end_to_end(
    applied: Path, machines: Machines, capsys: pytest.CaptureFixture[str]
) -> None:
    """Machines of another cluster's plan: nothing here is reached, and both tools say so."""
    assert drift.main(["dev"]) == 2
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "not applied yet, so the machines cannot be as Pulumi.dev.yaml says:"
    assert any(line.startswith("worker-2") and line.endswith("not made") for line in out)
    assert "no master can be reached over SSH" in "\n".join(out)
    assert drift.main(["dev", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["nodes"]["worker-2"]["verdict"] == "not made"
    assert status.main(["dev", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["api"]["answers"] is False
    assert status.main(["dev"]) == 2
    assert "DOES NOT ANSWER" in capsys.readouterr().out


def test_a_look_is_one_of_the_stack_that_is_named(applied: Path, machines: Machines) -> None:
    assert observation.take("dev").stack == "dev"
