"""Story: two of three masters lose their power, the cluster is restored without them, and their power comes back: they serve nobody, until an update lets them join again."""

from __future__ import annotations

import time
from functools import partial

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.operations import operation, write, written
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

LEFT, OLD = "master-1", ("master-2", "master-3")
NODES = {LEFT, *OLD, "worker-1"}
_WATCHED_S = 30


def wanted() -> config.Config:
    return config.lab("test-old-members", "10.93.28.0/24", masters=3, workers=1)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.up()
    write(stack, "before")
    return stack


def test_restored_without_them_no_haproxy_leads_there(stack: Stack) -> None:
    for name in OLD:
        stack.node(name).kill()
    said = operation(stack, "restore", "--from", LEFT, "--on", LEFT, "--without", " ".join(OLD))
    assert "'kube-ha:nodes.master-2.state' lost" in said
    for name in (LEFT, "worker-1"):
        listed = stack.node(name).run("grep ' server ' /etc/haproxy/haproxy.cfg")
        assert LEFT in listed
        assert not any(old in listed for old in OLD), listed
    write_here = f"{stack.lab}-{LEFT}"
    stack.kubectl("create", "configmap", "after", context=write_here)


def _not_refused(stack: Stack, name: str) -> str:
    said = stack.node(name).asked("cat /var/lib/kube-ha/state/etcd.refused")
    return "" if said.startswith("older ") else said or "no word yet"


def test_back_with_power_they_serve_nobody(stack: Stack) -> None:
    """Two of three old voters would be a quorum of the cluster that was."""
    for name in OLD:
        stack.node(name).start()
    for name in OLD:
        wait_for(f"etcd of {name} refused", partial(_not_refused, stack, name), limit_s=60)
    time.sleep(_WATCHED_S)
    for name in OLD:
        node = stack.node(name)
        assert not node.runs("etcd")
        assert not node.runs("kube-apiserver")
    assert f"etcd of {OLD[0]} may not serve since" in operation(stack, "status")
    worker = stack.node("worker-1")
    for _ in range(20):
        assert "200" in worker.run(
            "curl -sk --max-time 5 -o /dev/null -w '%{http_code}' https://127.0.0.1:3446/readyz"
        )


def test_an_up_lets_them_join_anew(stack: Stack) -> None:
    stack.edit("converge.generation", 2)
    update = stack.up()
    stack.took("up after two old members had come back", update.seconds)
    stack.wait_healthy(NODES)
    assert {"before", "after"} <= written(stack)
    assert_sound(stack)
