"""The change plan: its waves, and the command that prints it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from stacks.__main__ import main
from stacks.edits import memory
from stacks.explain import rollout, terminal
from stacks.explain.actions import NodeChange
from stacks.explain.report import Report
from tests.unit.configs import edited, lab, planned
from tests.unit.explain.reports import made

ROLLOUT = {
    "parallel": 2,
    "canary": {"count": 1},
    "pauseS": 60,
    "failureBudgetPercent": 40,
    "critical": ["worker-3"],
    "windows": ["Mon-Fri 09:00-17:00 UTC"],
    "holdAfter": 2,
    "drain": {"when": "always", "timeoutS": 120},
}


# A pool before the other one, whose machines get something else.
TWO_POOLS = {
    "pools.gpu": {"roles": ["worker"], "count": 2, "addressOffset": 150},
    "pools.worker.count": 2,
    "frontDoors.etcd.pools": ["worker"],
    "rollout.parallel": 1,
}


def rolled(**edits: object) -> Report:
    start = lab({"pools.worker.count": 5})
    return made(start, edited(start, {"rollout": ROLLOUT, **edits}))


def test_a_rollout_is_told_wave_by_wave_with_all_that_ends_it() -> None:
    said = rolled(**{"loadBalancing.maxConnections": 5000})
    waves = [wave for wave in said.waves if wave.title.startswith("workers")]
    assert [wave.title for wave in waves] == [
        "workers, wave 1 of 3 (canary)",
        "workers, wave 2 of 3 (pool worker)",
        "workers, wave 3 of 3 (pool worker)",
    ]
    assert [[node.name for node in wave.nodes] for wave in waves] == [
        ["worker-1"],
        ["worker-2", "worker-3"],
        ["worker-4", "worker-5"],
    ]
    evicted = "pods are evicted first, as PodDisruptionBudgets allow, within 120 s a node"
    assert [wave.lines for wave in waves] == [
        (
            "before any node is cordoned all evictions are tried dry",
            evicted,
            "waves begin only Mon-Fri 09:00-17:00 UTC",
        ),
        (evicted,),
        ("not in this update: rollout.holdAfter is 2",),
    ]
    one = "every node of it is Ready and has announced what it applied, but for 2 that may fail"
    assert [wave.checked for wave in waves] == [
        f"{one} in all waves together; then a pause of 60 s",
        f"{one} in all waves together, worker-3 not among them; then a pause of 60 s",
        f"{one} in all waves together",
    ]


def test_evictions_are_tried_dry_before_a_first_wave_that_evicts_nobody() -> None:
    plan = planned(lab({"pools.worker.count": 2, "rollout.parallel": 1}))
    changed = [
        NodeChange(name=name, kind="changed", roles=("worker",), actions=())
        for name in ("worker-1", "worker-2")
    ]
    dry = "before any node is cordoned all evictions are tried dry"
    first, second = rollout.waves(plan, changed, {"worker-2"})
    assert first.lines == (dry,)
    assert dry not in second.lines
    assert second.lines[0].startswith("pods are evicted first")
    assert [line for wave in rollout.waves(plan, changed, set()) for line in wave.lines] == []


def test_a_gate_that_asks_others_than_before_is_told() -> None:
    """Who leaves moves those behind it into other waves; their gates run, and nothing else."""
    start = lab(TWO_POOLS)
    said = made(start, edited(start, {"nodes.gpu-1.state": "removed"}))
    (told,) = [wave for wave in said.waves if wave.title.startswith("gates")]
    assert told.lines == (
        "gate 2 of 3 asks again whether the workers of the waves are as wanted; nothing changes on "
        "them",
    )
    assert not [wave for wave in said.waves if wave.title.startswith("workers, wave")]


def test_when_leafs_are_renewed_is_told_where_nothing_else_changes() -> None:
    said = made(lab(), lab({"pki.leafRenewalHours": 82}))
    assert [line for wave in said.waves for line in wave.lines if "leafs" in line] == [
        "leafs are renewed by the first update within 82 hours of their end (2160 before); that is "
        "noted with each of them in the state"
    ]


def test_pods_are_evicted_where_kubelet_or_containerd_get_another_minor_version() -> None:
    start = lab({"cluster.kubernetes": "1.35.4"})
    said = terminal.as_text(made(start, lab()), verbose=True)
    assert said.count("pods are evicted first") == 2
    quiet = terminal.as_text(made(lab(), lab({"kubelet/maxPods": 60})), verbose=True)
    assert "pods are evicted" not in quiet


def test_packages_of_the_operating_system_are_a_rollout_of_every_node() -> None:
    said = terminal.as_text(made(lab(), lab({"os/packages": "june"})), verbose=True)
    assert said.count("pods are evicted first") == 2
    assert said.count("packages are brought up to date, and it reboots if os.reboot says so") == 3
    back = terminal.as_text(made(lab({"os/packages": "june"}), lab()), verbose=True)
    assert "packages of the operating system: left as they are" in back
    assert "pods are evicted" not in back


def test_another_rollout_alone_touches_no_node() -> None:
    [wave] = rolled().waves
    assert wave.lines == ("how changes reach the workers: it counts from their next change on",)
    assert rolled().headline.nodes.words.endswith("0 to remove, 8 unchanged")
    assert wave.nodes == ()


def file(folder: Path, name: str, config: dict[str, object]) -> str:
    path = folder / name
    keys = {f"kube-ha:{key}": value for key, value in config.items()}
    path.write_text(yaml.safe_dump({"config": keys}))
    return str(path)


def test_the_command_compares_with_a_file_or_with_a_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = file(tmp_path, "now.yaml", lab({"pools.worker.count": 3}))
    then = file(tmp_path, "then.yaml", lab())
    kept = tmp_path / "kept.json"
    text = json.dumps(memory.of(planned(lab())))
    answers = []
    for previous, content in ((Path(then), None), (kept, text), (kept, json.dumps(text))):
        if content is not None:
            previous.write_text(content)
        assert main([now, "--previous", str(previous)]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0].startswith("Plan for cluster dev, compared with the config last applied\n")
    assert "+ worker-3" in answers[0]
    assert len(set(answers)) == 1


def test_the_command_prints_every_node_action_and_check_where_it_is_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = file(tmp_path, "now.yaml", lab({"pools.worker.count": 3}))
    then = file(tmp_path, "then.yaml", lab())
    short, nodes = [], "  master-1  etcd+master  10.92.0.11   amd64\n"
    for words in ([now], [now, "--previous", then]):
        assert main(words) == 0
        short.append(capsys.readouterr().out)
        assert main([*words, "--verbose"]) == 0
        said = capsys.readouterr().out
        assert nodes in said
        assert "       checked: only now the stack remembers" in said
        assert "       interrupted: " in said
    # Of a new cluster a line for each group of equal nodes.
    assert "  master-1 to master-3  etcd+master  10.92.0.11 to 10.92.0.13    amd64\n" in short[0]
    assert nodes not in "".join(short)
    assert "checked: " not in "".join(short)


def test_the_command_tells_warnings_in_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = {"addons": {"x": {"manifests": ["none.yaml"]}}}
    now = file(tmp_path, "now.yaml", lab({"pools.master.count": 2, **missing}))
    for form, wanted in (
        ("text", "  Warnings    3\n              pools: "),
        ("markdown", "> **Warnings: 3**\n> - `pools`: "),
        ("json", '"warnings": [\n    {\n      "path": "pools",'),
    ):
        assert main([now, "--format", form]) == 0
        out, err = capsys.readouterr()
        assert wanted in out
        assert "addons.x.manifests[0]" in out
        assert err == ""


def test_the_command_refuses_with_all_problems_in_every_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = lab({"cluster.podCidr": "10.200.0.0/16", "network.backend": "host-gw"})
    now, then = file(tmp_path, "now.yaml", bad), file(tmp_path, "then.yaml", lab())
    for form in ("text", "json", "markdown"):
        assert main([now, "--previous", then, "--format", form]) == 1
        out, err = capsys.readouterr()
        assert err.startswith(f"{now}: 2 problems, nothing was touched\n  cluster.podCidr: ")
        if form == "json":
            paths = [problem["path"] for problem in json.loads(out)["refused"]]
            assert paths == ["cluster.podCidr", "network.backend"]
        elif form == "markdown":
            assert out.startswith(f"**{now} is refused: 2 problems. Nothing is touched.**\n\n- `")
        else:
            assert out == ""


def test_a_previous_file_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, empty = file(tmp_path, "now.yaml", lab()), tmp_path / "empty"
    for content in ("", "[]", "config: {}"):
        empty.write_text(content)
        assert main([now, "--previous", str(empty)]) == 1
        assert f"--previous {empty}: " in capsys.readouterr().err
    assert main([now, "--previous", str(tmp_path / "none")]) == 1
    assert "cannot be read" in capsys.readouterr().err
