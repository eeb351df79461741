"""Story: three masters share a virtual IP: its HAProxy reloads and gets rubbish, the API behind it fails, and it stays where it is."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.doors import assert_reloads_lose_nothing
from tests.e2e.harness.holders import Holders
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

ADDRESS = "10.93.61.5"
DOOR = f"{ADDRESS}:8443"
MASTERS = ("master-1", "master-2", "master-3")
NODES = {*MASTERS, "worker-1"}
PHASE = "bash /root/.kube-ha/scripts/run.sh"


def wanted() -> config.Config:
    out = config.lab("test-vip", "10.93.61.0/24", masters=3, workers=1)
    out["frontDoors"] = {"vip": {"address": ADDRESS}}
    return out


@pytest.fixture(scope="module")
def holders(stack: Stack) -> Iterator[Holders]:
    stack.up()
    with Holders([stack.node(name) for name in MASTERS], ADDRESS) as holders:
        yield holders


def test_clients_outside_go_by_it_from_the_first_day(stack: Stack, holders: Holders) -> None:
    assert stack.output("endpoint") == f"https://{DOOR}"
    holders.wait_for_one()
    assert set(stack.ready()) == NODES  # by the kubeconfig's own context


def test_rubbish_never_replaces_what_runs(stack: Stack, holders: Holders) -> None:
    stack.settled()
    holder = stack.node(holders.wait_for_one())
    files, processes = holder.files(), holder.processes()
    for phase, good, bad, said in (
        ("vip", "interface eth0", "interface nope0", "keepalived refuses"),
        ("vip", "vrrp_instance", "vrrp_insistence", "keepalived refuses"),
        ("node", "balance random", "balance by-magic", "HAProxy refuses"),
    ):
        stdin = _stdin(stack, f"{stack.lab}-{holder.name}-{phase}").replace(good, bad)
        holder.put("/run/kube-ha-test-values", stdin)
        told = holder.run(f"{PHASE} {phase} </run/kube-ha-test-values 2>&1 || echo exit $?")
        assert said in told, told
        assert "exit 1" in told, told
    kept = {path: text for path, text in holder.files().items() if not path.endswith(".new")}
    assert kept == files
    assert holder.processes() == processes
    assert holders.now() == [holder.name]


def test_ten_reloads_of_haproxy_lose_no_connection(stack: Stack, holders: Holders) -> None:
    assert_reloads_lose_nothing(stack, holders, DOOR)


def test_an_api_that_fails_does_not_move_it(stack: Stack, holders: Holders) -> None:
    before = holders.moves()
    unready = "curl -s -o /dev/null -w '%{http_code}' --max-time 5 --cacert /etc/kube-ha/ca.crt"
    for name in MASTERS[:2]:
        stack.node(name).run("systemctl stop etcd")
    try:
        wait_for(
            "no API server ready",
            lambda: "" if _status(stack, unready) != "200" else "it is",
            limit_s=60,
        )
        time.sleep(8)  # twice what it takes to move
        assert holders.moves() == before
        assert holders.now() == before[-1:]
    finally:
        for name in MASTERS[:2]:
            stack.node(name).run("systemctl start etcd")
    stack.wait_healthy(NODES)
    assert holders.moves() == before


def _status(stack: Stack, curl: str) -> str:
    return stack.node("worker-1").asked(f"{curl} https://127.0.0.1:3446/readyz").strip()


def _stdin(stack: Stack, name: str) -> str:
    """The values of a command, as the state holds them."""
    (found,) = [one for one in stack.resources() if str(one["urn"]).endswith(f"::{name}")]
    inputs = found["inputs"]
    assert isinstance(inputs, dict)
    text = inputs["stdin"]
    return str(text)
