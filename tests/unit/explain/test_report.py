"""The plan in words, in its three forms, and the command that prints it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from stacks.__main__ import main
from stacks.edits import memory, transition
from stacks.explain import report
from stacks.explain.report import Report
from tests.unit.configs import adopted, edited, lab, planned

WORKER_MORE = """\
cluster dev, against its last successful up: 1 new, 5 untouched
1. new machines, side by side
     worker-3
       - make the machine
       - preflight, then packages, kernel settings, HAProxy, containerd, kubelet
     checked: preflight lists all that is wrong with a machine before anything is changed on it
     an abort here leaves: machines that nobody uses; the next up goes on
2. add-ons, side by side
     serving-certificates kubelets get certificates for these addresses, nothing restarts
     checked: applied by the API server; that their pods run is asked by the gate
     an abort here leaves: old or new manifests, each whole
3. workers that join, side by side
     a token to join by is made known to the cluster, and ends after 120 minutes
     worker-3
       - join as a worker
     checked: every node is Ready and has announced what it applied
     an abort here leaves: fewer workers; the next up joins them with a new token
4. list of nodes: labels, taints, and those that leave, one by one
     compared with the config, from a master
     checked: every wanted node is Ready and as wanted before one leaves; before an etcd member \
leaves, those that stay have a quorum of their own
     an abort here leaves: a node cordoned or gone; those that stay are untouched
5. acceptance gate, once
     API, controllers, add-ons; a pod on every node reaches pods, Service, NodePort and DNS
     checked: only now the stack remembers this config as applied
     an abort here leaves: everything done, not yet remembered; the next up asks again
needs downtime of: nothing
"""

FIRST_MASTER_LEAVES = """\
cluster prod, against its last successful up: 4 changed, 1 leaving, 0 untouched
1. etcd snapshot, once
     kept on master-3, because these change: members, masters, settings of masters
     checked: it is whole, of this cluster, and holds all that a quorum had
     an abort here leaves: nothing that serves has been touched
2. etcd members and masters, each whole before the next, one by one
     master-2, master-3
       - haproxy.cfg: HAProxy reloads, open connections stay
       - list of etcd members: nothing restarts
       - phase master runs again, nothing else restarts
     checked: a member restarts only where the others have a quorum without it; after it, it votes \
and is healthy
     an abort here leaves: the one in hand old or new, the others untouched and serving
3. add-ons, side by side
     admission-policies is applied from master-2 from now on, nothing restarts
     coredns is applied from master-2 from now on, nothing restarts
     flannel is applied from master-2 from now on, nothing restarts
     kube-proxy is applied from master-2 from now on, nothing restarts
     lost-nodes is applied from master-2 from now on, nothing restarts
     serving-certificates kubelets get certificates for these addresses, nothing restarts
     checked: applied by the API server; that their pods run is asked by the gate
     an abort here leaves: old or new manifests, each whole
4. workers, wave 1 of 2 (pool worker), side by side
     worker-1
       - haproxy.cfg: HAProxy reloads, open connections stay
     checked: every node of it is Ready and has announced what it applied
     an abort here leaves: some workers of this wave old, some new, one in hand perhaps cordoned; \
the next up goes on, and later waves are untouched
5. workers, wave 2 of 2 (pool worker), side by side
     worker-2
       - haproxy.cfg: HAProxy reloads, open connections stay
     checked: every node of it is Ready and has announced what it applied
     an abort here leaves: some workers of this wave old, some new, one in hand perhaps cordoned; \
the next up goes on, and later waves are untouched
6. list of nodes: labels, taints, and those that leave, one by one
     compared with the config, from a master
     master-1
       - evict its pods (PodDisruptionBudgets are respected; emptyDir and local volumes do not move along, pods without a controller end for good)
       - leave etcd: removed by those that stay, once they have a quorum without it
       - delete its Node
     checked: every wanted node is Ready and as wanted before one leaves; before an etcd member \
leaves, those that stay have a quorum of their own
     an abort here leaves: a node cordoned or gone; those that stay are untouched
7. acceptance gate, once
     API, controllers, add-ons; a pod on every node reaches pods, Service, NodePort and DNS
     checked: only now the stack remembers this config as applied
     an abort here leaves: everything done, not yet remembered; the next up asks again
8. machines that have left, after the gate, side by side
     master-1
       - stop everything of ours; files and data stay, put the host back to have it again
     checked: no process and no data of ours is left
     an abort here leaves: machines that no longer belong to the cluster; the next up goes on
needs downtime of: the API at 192.0.2.11:6443: the endpoint becomes 192.0.2.12:6443, so clients \
with the old one need a new kubeconfig
"""


def made(before: dict[str, object] | None, after: dict[str, object]) -> Report:
    known = None if before is None else transition.remembered(memory.of(planned(before)))
    wanted = planned(after)
    return report.report(known, wanted, transition.check(known, wanted))


def without(name: str) -> dict[str, object]:
    config = adopted()
    pools = config["pools"]
    assert isinstance(pools, dict)
    hosts = [host for host in pools["master"]["hosts"] if host["name"] != name]
    return edited(config, {"pools.master.hosts": hosts})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(lab(), lab({"pools.worker.count": 3}), WORKER_MORE, id="a worker more"),
        pytest.param(adopted(), without("master-1"), FIRST_MASTER_LEAVES, id="first master leaves"),
    ],
)
def test_an_edit_in_words(
    before: dict[str, object], after: dict[str, object], expected: str
) -> None:
    assert report.as_text(made(before, after)) == expected


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
            f"{evicted}; before any node is cordoned all evictions are tried dry",
            "waves begin only Mon-Fri 09:00-17:00 UTC",
        ),
        (evicted,),
        ("not in this up: rollout.holdAfter is 2", evicted),
    ]
    one = "every node of it is Ready and has announced what it applied, but for 2 that may fail"
    assert [wave.checked for wave in waves] == [
        f"{one} in all waves together; then a pause of 60 s",
        f"{one} in all waves together, worker-3 not among them; then a pause of 60 s",
        f"{one} in all waves together",
    ]


def test_pods_are_evicted_where_kubelet_or_containerd_get_another_minor_version() -> None:
    start = lab({"cluster.kubernetes": "1.35.4"})
    said = report.as_text(made(start, lab()))
    assert said.count("pods are evicted first") == 2
    assert "pods are evicted" not in report.as_text(made(lab(), lab({"kubelet/maxPods": 60})))


def test_packages_of_the_operating_system_are_a_rollout_of_every_node() -> None:
    said = report.as_text(made(lab(), lab({"os/packages": "june"})))
    assert said.count("pods are evicted first") == 2
    assert said.count("packages are brought up to date, and it reboots if os.reboot says so") == 3
    back = report.as_text(made(lab({"os/packages": "june"}), lab()))
    assert "packages of the operating system: left as they are" in back
    assert "pods are evicted" not in back
    one = {"pools.master.count": 1}
    assert made(lab(one), lab({**one, "os/packages": "june"})).downtime == (
        "the API does not answer while its only API server restarts (master-1)",
        "the API can neither read nor write while etcd's only member restarts (master-1)",
    )


def test_another_rollout_alone_touches_no_node() -> None:
    [wave] = rolled().waves
    assert wave.lines == ("how changes reach the workers: it counts from the next change on",)
    assert "8 untouched" in report.as_text(rolled())
    assert wave.nodes == ()


def test_nothing_to_do_is_one_line_that_does_not_promise_more_than_is_known() -> None:
    said = report.as_text(made(lab(), lab()))
    assert said.startswith("cluster dev: nothing to do: the config is the one of the last")
    assert "has failed or was broken off" in said
    assert said.count("\n") == 1


def test_the_only_master_needs_downtime_and_the_words_say_so() -> None:
    one = {"pools.master.count": 1}
    flag = {**one, "controlPlane.apiServerArgs": {"v": "3"}, "etcd.quotaBackendGib": 3}
    assert made(lab(one), lab(flag)).downtime == (
        "the API does not answer while its only API server restarts (master-1)",
        "the API can neither read nor write while etcd's only member restarts (master-1)",
    )
    assert made(lab(), lab({"controlPlane.apiServerArgs": {"v": "3"}})).downtime == ()


VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
POOL = {**VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}}
AWAY = "the VIP 10.92.0.5:8443"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {}, ()),
        ({}, {"edge-2": {"generation": 2}}, ()),
        ({}, {"edge-1": {"state": "maintenance"}}, ()),
        (
            {"edge-1": {"state": "maintenance"}},
            {"edge-1": {"state": "maintenance"}, "edge-2": {"generation": 2}},
            (f"{AWAY} while edge-2 is made anew",),
        ),
        (
            {},
            {"edge-1": {"state": "maintenance"}, "edge-2": {"generation": 2}},
            (f"{AWAY} for some seconds, while it moves to edge-2",),
        ),
    ],
)
def test_the_vip_is_away_where_nobody_who_stands_by_for_it_stays(
    before: dict[str, object], after: dict[str, object], said: tuple[str, ...]
) -> None:
    assert made(lab({**POOL, "nodes": before}), lab({**POOL, "nodes": after})).downtime == said


def test_what_was_allowed_is_the_first_thing_to_read() -> None:
    edit = {"network.backend": "host-gw", "allow": ["network-backend/host-gw"]}
    said = made(lab(), lab(edit))
    assert report.as_text(said).splitlines()[1].startswith("ALLOWED network-backend/host-gw: ")
    assert "> **allowed** `network-backend/host-gw`: " in report.as_markdown(said)
    assert json.loads(report.as_json(said))["allowed"][0]["id"] == "network-backend/host-gw"


def test_markdown_is_a_table_with_a_row_for_each_group_of_nodes() -> None:
    lines = report.as_markdown(made(lab(), lab({"pools.worker.count": 4}))).splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert rows[:3] == [
        "| wave | nodes | what happens |",
        "| 1. new machines, side by side | worker-3, worker-4 | make the machine<br>preflight, "
        "then packages, kernel settings, HAProxy, containerd, kubelet |",
        "| 2. add-ons, side by side | | serving-certificates kubelets get certificates for these "
        "addresses, nothing restarts |",
    ]
    assert "needs downtime of: nothing" in lines


def test_json_holds_the_waves_with_every_node_by_name() -> None:
    said = json.loads(report.as_json(made(lab(), lab({"pools.worker.count": 1}))))
    assert said["unchanged"] == 4
    assert [wave["title"] for wave in said["waves"]][-1] == (
        "machines that have left, after the gate"
    )
    leaving = said["waves"][1]["nodes"][0]
    assert (leaving["name"], leaving["kind"]) == ("worker-2", "leaving")


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
    assert answers[0].endswith(WORKER_MORE)
    assert len(set(answers)) == 1


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
