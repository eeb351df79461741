"""Names of thousands of nodes are no arguments: a program takes 128 KiB in one, whatever its limit for all."""

from __future__ import annotations

import json

import pytest

from tests.scripts import node_list
from tests.scripts.shell import Shell
from tests.scripts.test_gate import VALUES as GATE
from tests.scripts.test_nodes import VALUES as NODES

COUNT = 5000
PREFIX = "n" * 55  # names of 57 to 60 letters
NAMES = [f"{PREFIX}-{number}" for number in range(1, COUNT + 1)]
SHORT = f"{PREFIX}-[1-{COUNT}]"
ARGUMENT = 128 * 1024


def kubectl(shell: Shell, answer: object) -> None:
    """Lists `answer`, keeps what is applied or patched."""
    (shell.folder / "answer").write_text(json.dumps(answer))
    cases = """*" get "*) cat answer ;; *apply* | *patch*) cat >told ;;"""
    shell.stub("kubectl", f'case "$*" in {cases} esac')


def told(shell: Shell) -> dict[str, str]:
    data: dict[str, str] = json.loads((shell.folder / "told").read_text())["data"]
    return data


def test_all_of_them_are_longer_than_an_argument() -> None:
    assert len(" ".join(NAMES)) > 2 * ARGUMENT


def test_all_of_them_may_join_by_one_token(shell: Shell) -> None:
    kubectl(shell, {})
    shell.run("tell_joining abcdef", phase="mint", values={"JOINING": SHORT, "TOKEN_S": "60"})
    assert told(shell)["names"].split() == NAMES


def test_the_gate_counts_a_pod_on_each_and_none_on_those_of_others(shell: Shell) -> None:
    pods = [
        {
            "metadata": {"name": f"pod-{number}"},
            "spec": {"nodeName": name},
            "status": {"podIP": "10.244.0.2", "hostIP": "10.0.0.1"},
        }
        for number, name in enumerate([*NAMES, "somebody-elses"])
    ]
    kubectl(shell, {"items": pods})
    code = f"OURS=$(expand '{SHORT}'); test_pods"
    rows = shell.run(code, phase="gate", values=GATE).splitlines()
    assert sorted(row.split()[0] for row in rows) == sorted(NAMES)


def test_the_record_takes_names_that_do_not_count_on(shell: Shell) -> None:
    kubectl(shell, {})
    code = f"""each=$(expand '{SHORT}' | paste -sd,)
settle_record "$each" "$each"$'\\t'a=b "$each"$'\\t'c=d:NoSchedule"""
    shell.run(code, phase="nodes", values=NODES)
    found = told(shell)
    assert found["known"].split(",") == NAMES
    assert found["labels"] == found["known"] + "\ta=b"
    assert found["taints"] == found["known"] + "\tc=d:NoSchedule"


@pytest.mark.parametrize(
    ("phase", "code"),
    [("nodes", "missing"), ("wave", 'unfinished_nodes "$WANTED"')],
)
def test_all_of_them_may_be_in_maintenance_and_silent(shell: Shell, phase: str, code: str) -> None:
    rows = [f"{name}|{'a' * 16}|Unknown||" for name in NAMES]
    kubectl(shell, json.loads(node_list.listing(rows, ("applied", "ready", "begun", "failed"))))
    wanted = f"worker {'a' * 16} {SHORT},{PREFIX}-0"
    values = {**NODES, "WANTED": wanted, "MAINTENANCE": SHORT}
    out = shell.run(code, phase=phase, values=values).splitlines()
    assert [line.split()[1] for line in out] == [f"{PREFIX}-0"]
