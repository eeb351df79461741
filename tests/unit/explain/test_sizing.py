"""What a plan says of the size that settings are made for."""

from __future__ import annotations

import json

from stacks.explain import comment, document, terminal
from tests.unit.configs import lab
from tests.unit.explain.reports import made

WIDE = {"machines.lab": {"subnet": "10.92.0.0/16"}, "cluster.podCidr": "10.128.0.0/12"}
SMALL, BIGGER = lab(), lab({"sizing.nodes": 300})


def of(workers: int, **sections: object) -> dict[str, object]:
    return lab({**WIDE, "pools.worker.count": workers, **sections})


def test_a_small_cluster_hears_nothing_of_it() -> None:
    assert made(None, SMALL).sizing == ""
    assert made(SMALL, lab({"pools.worker.count": 3})).sizing == ""


def test_a_new_cluster_of_many_is_told_its_size() -> None:
    assert made(None, of(200)).sizing == "settings for up to 300 nodes; 203 are listed"


def test_an_edit_of_a_big_cluster_that_leaves_its_size_is_not_longer_by_it() -> None:
    assert made(of(200), of(201)).sizing == ""
    assert made(BIGGER, lab({"sizing.nodes": 300, "kubelet.maxPods": 60})).sizing == ""


def test_another_size_says_what_restarts() -> None:
    said = made(SMALL, BIGGER)
    assert said.sizing == (
        "settings for up to 300 nodes in place of 100; 5 are listed; restarts, one machine at a time: "
        "3 etcd members, 3 API servers"
    )
    assert "Change sizing: nodes 100 -> 300" in said.headline.edits
    settings = " ".join(said.headline.edits)
    for word in (
        "quotaBackendGib 2 -> 4",
        "checkIntervalMs 2000 -> 3000",
        "dnsReplicas 2 -> 20",
        "apiServerArgs.goaway-chance unset -> 0.001",
    ):
        assert word in settings


def test_nodes_that_do_not_fit_are_told_and_restart_nothing() -> None:
    said = made(of(97), of(98, sizing={"nodes": 100}))
    assert said.sizing == "settings for up to 100 nodes; 101 are listed"
    assert {node.name for node in said.changes.nodes} == {"worker-98"}


def test_every_form_of_the_plan_has_the_line() -> None:
    said = made(SMALL, BIGGER)
    assert "\n  Sizing      settings for up to 300 nodes" in terminal.as_text(said)
    assert "settings for up to 300 nodes" in comment.as_markdown(said)
    assert json.loads(document.as_json(said))["sizing"] == said.sizing
