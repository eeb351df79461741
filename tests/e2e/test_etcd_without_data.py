"""Story: a master boots without its etcd data. No client is ever answered out of an empty store, and the repair that is named works."""

from __future__ import annotations

import time

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.load import Load
from tests.e2e.harness.operations import operation
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NODES = {"master-1", "master-2", "master-3", "worker-1"}
WITHOUT = "master-2"
_WATCHED_S = 60  # an empty cluster was served to half of all requests from 10 s after the boot on


def wanted() -> config.Config:
    return config.lab("test-no-data", "10.93.19.0/24", masters=3, workers=1)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.up()
    return stack


def test_nobody_is_answered_out_of_an_empty_store(stack: Stack) -> None:
    node = stack.node(WITHOUT)
    with Load(stack, "no data") as load:
        node.run("systemctl stop etcd; rm -rf /var/lib/kube-ha/etcd/member; sync")
        node.kill()
        node.start()
        refused = "cat /var/lib/kube-ha/state/etcd.refused"
        wait_for(
            "etcd refused",
            lambda: "" if node.asked(refused).startswith("empty ") else "no word yet",
            limit_s=60,
        )
        time.sleep(_WATCHED_S)
        # Nothing that could be asked has an answer: neither the store, nor the API server beside it.
        assert not node.asked("pgrep -x etcd")
        ready = "curl -sk --max-time 5 -o /dev/null -w '%{http_code}' https://127.0.0.1:6443/readyz"
        assert node.asked(f"{ready} || true") != "200"
    for place, client in load.attempts().items():
        # An object of kube-ha is not there: the answer of a store that is empty.
        empty = [one for one in client if one.status == "404"]
        assert not empty, f"{place}: {empty[:5]}"
        assert len(client) > 10
    for place, seen in load.seen().items():
        assert (seen.lost, seen.stale) == (0, 0), f"{place}: {seen}"


def test_status_names_it_and_the_named_repair_brings_it_back(stack: Stack) -> None:
    said = operation(stack, "status")
    assert f"ATTENTION: etcd of {WITHOUT} may not serve since" in said
    assert "there is no data" in said
    stack.edit("converge.generation", 2)
    update = stack.up()
    stack.took("up after a master had lost its etcd data", update.seconds)
    stack.wait_healthy(NODES)
    assert "ATTENTION" not in operation(stack, "status")
    assert_sound(stack)
