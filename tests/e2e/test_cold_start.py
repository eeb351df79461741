"""Story: every machine loses its power, and the first master is back long before the others: alone it serves nobody, and with a quorum all is there again."""

from __future__ import annotations

import time

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.operations import write, written
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

MASTERS = ("master-1", "master-2", "master-3")
NODES = {*MASTERS, "worker-1"}
_ALONE_S = 100


def wanted() -> config.Config:
    return config.lab("test-cold", "10.93.72.0/24", masters=3, workers=1)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.up()
    write(stack, "before")
    return stack


@pytest.mark.parametrize("first", ["master-1", "master-3"])
def test_all_is_back_soon_after_the_quorum(stack: Stack, first: str) -> None:
    for name in NODES:
        stack.node(name).kill()
    stack.node(first).start()
    time.sleep(_ALONE_S)
    alone = stack.node(first)
    # It waits, and is not a cluster of its own.
    assert alone.runs("etcd")
    assert not alone.asked("cat /var/lib/kube-ha/state/etcd.refused")
    keys = "--cacert ca.crt --cert client.crt --key client.key"
    ask = f"cd /etc/kube-ha/etcd && etcdctl --endpoints https://127.0.0.1:2379 {keys} --command-timeout 4s get /registry/x"
    assert "answered" not in alone.asked(f"{ask} && echo answered")
    for name in NODES - {first}:
        stack.node(name).start()
    started = time.monotonic()
    wait_for(
        "etcd's quorum",
        lambda: "" if alone.asked(f"{ask} && echo answered") else "none",
        limit_s=120,
    )
    quorum = time.monotonic()
    stack.wait_healthy(NODES)
    stack.measured(
        f"cold start, {first} alone for {_ALONE_S} s: quorum {quorum - started:.0f} s after the others' power, "
        f"all Nodes Ready {time.monotonic() - quorum:.0f} s after the quorum"
    )
    assert "before" in written(stack)
    assert_sound(stack)
