"""The plan on a terminal: first what matters, then a few lines for each phase, on one screen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stacks.edits.endings import Ending
from stacks.explain import folding, terminal
from tests.plan.big import big
from tests.unit.configs import adopted, edited, lab
from tests.unit.explain.reports import made

SCREEN = 40  # lines
FOOTER = "\n  Every action, check and interruption: --verbose (make plan VERBOSE=1).\n"

WORKER_MORE = """\
Plan for cluster dev, compared with the config last applied

  Changes     Add 1 worker (worker-3)
  Nodes       1 to add, 0 to change, 0 to replace, 0 to remove, 5 unchanged
  Disruption  none (no API server restarts; no etcd member restarts; no pod is evicted)
  Roll back   at any time: edit back, then run up again
  Warnings    none

   1  new machines   + worker-3
       make the machine · preflight, then packages, kernel settings, HAProxy, containerd, kubelet
   2  add-ons
       serving-certificates: kubelets get certificates for these addresses, nothing restarts
   3  workers that join   + worker-3
       a token to join by is made known to the cluster, and ends after 120 minutes · join as a
       worker
   4  list of nodes: labels, taints, and those that leave
       compared with the config, from a master
   5  acceptance gate
       API, controllers, add-ons; a pod on every node reaches pods, Service, NodePort and DNS
"""

FIRST_MASTER_LEAVES = """\
Plan for cluster prod, compared with the config last applied

  Changes     Remove 1 master (master-1)
  Nodes       0 to add, 4 to change, 0 to replace, 1 to remove, 0 unchanged
  Disruption  API clients outside: the endpoint 192.0.2.11:6443 becomes 192.0.2.12:6443: clients of
              the old one need a new kubeconfig
              etcd: once master-1 has left, one more failure ends its quorum (2 of 2 members are up)
              pods: evicted from master-1, which leaves the cluster
              API clients inside: none (no API server restarts)
  Roll back   master-1 until out of the cluster: from then on only as a new node
  Warnings    2
              pools: an even number
              allow: allows nothing

   1  etcd snapshot
       kept on master-3, because these change: members, masters, settings of masters
   2  etcd members and masters, each whole before the next, one at a time   ~ master-2, master-3
       haproxy.cfg (HAProxy reloads, open connections stay) · list of etcd members (nothing
       restarts) · phase master runs again, nothing else restarts
   3  add-ons
       admission-policies, coredns, flannel, kube-proxy, lost-nodes: applied from master-2 from now
       on, nothing restarts · serving-certificates: kubelets get certificates for these addresses,
       nothing restarts
   4  workers, waves 1 to 2 of 2 (pool worker), 1 node each   ~ worker-1, worker-2
       haproxy.cfg (HAProxy reloads, open connections stay)
   5  list of nodes: labels, taints, and those that leave   - master-1
       compared with the config, from a master · evict its pods · leave etcd · delete its Node
   6  acceptance gate
       API, controllers, add-ons; a pod on every node reaches pods, Service, NodePort and DNS
   7  machines that have left, after the gate   - master-1
       stop everything of kube-ha; files and data stay, put the host back to have it again
"""


def without(name: str) -> dict[str, object]:
    config = adopted()
    pools = config["pools"]
    assert isinstance(pools, dict)
    hosts = [host for host in pools["master"]["hosts"] if host["name"] != name]
    return edited(config, {"pools.master.hosts": hosts})


def test_a_worker_more() -> None:
    said = made(lab(), lab({"pools.worker.count": 3}))
    assert terminal.as_text(said, []) == WORKER_MORE + FOOTER


def test_the_first_master_leaves() -> None:
    warnings = [("pools", "an even number"), ("allow", "allows nothing")]
    said = made(adopted(), without("master-1"))
    assert terminal.as_text(said, warnings) == FIRST_MASTER_LEAVES + FOOTER


def test_the_page_about_plans_shows_what_is_printed() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/plan.md").read_text()
    said = made(lab({"cluster.kubernetes": "1.35.4"}), lab())
    assert f"```\n{terminal.as_text(said, [])}```\n" in page


def test_warnings_are_left_out_where_the_engine_tells_them() -> None:
    assert "Warnings" not in terminal.as_text(made(None, lab()))


def test_nothing_to_do_does_not_promise_more_than_is_known() -> None:
    assert terminal.as_text(made(lab(), lab())) == (
        "Plan for cluster dev, compared with the config last applied\n\n"
        "  Changes     nothing to do: the config is the one last applied. If an update has failed or "
        "was\n"
        "              interrupted since, the engine's own list shows the commands that run again to "
        "take it\n"
        "              back.\n"
    )


def test_what_was_allowed_is_read_before_the_phases() -> None:
    edit = {"network.backend": "host-gw", "allow": ["network-backend/host-gw"]}
    text = terminal.as_text(made(lab(), lab(edit)))
    assert "\n  ALLOWED     network-backend/host-gw: network.backend: " in text
    assert text.index("ALLOWED") < text.index("\n   1  ")


def test_every_label_of_the_headline_stands_apart_from_what_it_is_about() -> None:
    ends = datetime(2027, 1, 2, tzinfo=UTC)
    said = made(lab(), lab({"network.backend": "host-gw", "allow": ["network-backend/host-gw"]}))
    said = replace(
        said,
        changes=replace(said.changes, program=("other scripts",), comparable=False),
        endings=(Ending(kind="ca", name="etcd", ends=ends),),
    )
    head = terminal.as_text(said, [("pools", "two")]).split("\n   1  ")[0].splitlines()[2:]
    labels = {line[:14] for line in head if line[:14].strip()}
    assert len(labels) > 7
    assert all(label.startswith("  ") and label.endswith("  ") for label in labels), labels


def test_verbose_tells_every_action_with_what_is_checked_and_what_an_interruption_leaves() -> None:
    said = made(lab({"cluster.kubernetes": "1.35.4"}), lab())
    text = terminal.as_text(said, verbose=True)
    for wave in said.waves:
        assert f"\n       checked: {wave.checked}\n" in text
        assert f"\n       interrupted: {wave.abort}\n" in text
        for node in wave.nodes:
            assert all(f"           {action.text}\n" in text for action in node.actions)
    assert "--verbose" not in text


ALL = {
    "rollout": {
        "canary": {"count": 3},
        "order": [{"zones": ["a"]}, {"zones": ["b"]}],
        "pauseS": 60,
    },
    "os": {"packages": "june"},
}


@pytest.mark.parametrize(
    ("before", "edit"),
    [
        ({"cluster.kubernetes": "1.35.4"}, {}),
        ({}, {"kubelet.maxPods": 60}),
        ({}, {"loadBalancing.maxConnections": 9000}),
        ({}, ALL),
        (None, {}),
    ],
    ids=["upgrade", "kubelet", "haproxy", "zones and a canary", "new"],
)
def test_a_thousand_nodes_fit_on_a_screen(
    before: dict[str, object] | None, edit: dict[str, object]
) -> None:
    start = big(1000)
    pools = start["pools"]
    assert isinstance(pools, dict)
    for number, host in enumerate(pools["worker"]["hosts"]):
        host["zone"] = "abc"[number % 3]
    then = None if before is None else edited(start, before)
    lines = terminal.as_text(made(then, edited(start, edit)), []).splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= 100


def test_equal_neighbours_are_one_row_and_others_are_not() -> None:
    start = lab(
        {"pools.worker.count": 50, "rollout": {"parallel": 5, "pauseS": 60, "canary": {"count": 1}}}
    )
    said = made(start, edited(start, {"loadBalancing.maxConnections": 9000}))
    rows = [row for row in folding.rows(said.waves) if row.title.startswith("workers")]
    assert [row.title for row in rows] == [
        "workers, wave 1 of 11 (canary)",
        "workers, waves 2 to 11 of 11 (pool worker), up to 5 nodes each",
    ]
    assert [group.nodes for group in rows[1].groups] == ["~ worker-2 to worker-50"]
    # The last one has no pause behind it, and the verbose text says so.
    assert rows[1].checked[0].endswith("then a pause of 60 s")
    assert rows[1].checked[1].startswith("from wave 11 on, every node of it is Ready")


def test_a_wave_with_another_change_is_a_row_of_its_own() -> None:
    start = lab({"pools.worker.count": 4, "rollout": {"parallel": 1}})
    label = {"pools.worker.labels": {"a": "b"}, "loadBalancing.maxConnections": 9000}
    said = made(start, edited(start, {**label, "nodes": {"worker-2": {"generation": 2}}}))
    titles = [row.title for row in folding.rows(said.waves) if row.title.startswith("workers, w")]
    assert titles == [
        "workers, wave 1 of 4 (pool worker)",
        "workers, waves 3 to 4 of 4 (pool worker), 1 node each",
    ]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("haproxy.cfg: HAProxy reloads, open connections stay", "haproxy.cfg (HAProxy reloads, open connections stay)"),
        ("Kubernetes 1.35.4 -> 1.36.3: images are fetched while it serves, and then the rest", "Kubernetes 1.35.4 -> 1.36.3"),
        ("evict its pods (PodDisruptionBudgets are respected; emptyDir does not move along)", "evict its pods"),
        ("join as a worker", "join as a worker"),
    ],
)  # fmt: skip
def test_an_action_in_a_few_words(text: str, short: str) -> None:
    assert folding.short(text) == short
