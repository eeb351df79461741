"""Story: a load balancer of the user's before three masters, made of what the stack says, and etcd at 127.0.0.1 of a worker; a master dies, masters leave."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.harness import config, history
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.history import Seen
from tests.e2e.harness.lab import LabError
from tests.e2e.harness.load import Client, Keys, Load
from tests.e2e.harness.stack import Stack

# The load balancer is on the lab's mirror, which no edit touches.
DOOR = "10.93.69.2:9443"
ETCD_DOOR = "127.0.0.1:2379"
_RELOADS = 10
# A request in hand with a machine that dies ends after 8 s, as clients/count.sh has it; the next one is asked of another.
_SERVED_AGAIN_MS = 13_000

_FRAME = """\
global
  maxconn 500
defaults
  mode tcp
  timeout connect 2s
  retries 3
  option redispatch 1
  timeout client {idle}h
  timeout server {idle}h
  timeout check {timeout}ms
listen api
  bind :{port}
  option httpchk GET {path}
  http-check expect status {status}
  default-server inter {interval}ms fall {fall} rise {rise}
"""


def wanted() -> config.Config:
    out = config.lab("test-own-doors", "10.93.69.0/24", masters=3, workers=1)
    out["cluster"]["endpoint"] = DOOR
    out["frontDoors"] = {"etcd": {"pools": ["worker"]}}
    return out


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.up()
    return stack


def test_a_load_balancer_made_of_the_stacks_word_leads_to_the_api(stack: Stack) -> None:
    _start_load_balancer(stack)
    stack.edit("frontDoors.verify", "here")
    stack.up()
    # By the kubeconfig's first context, which goes by that door alone.
    assert stack.ready() == dict.fromkeys(["master-1", "master-2", "master-3", "worker-1"], True)
    assert_up_changes_nothing(stack)


def test_one_that_leads_nowhere_fails_the_up_with_its_last_answer(stack: Stack) -> None:
    stack.node("mirror").run("kill $(cat /run/lb.pid)")
    stack.edit("pools.worker.labels", {"tier": "one"})
    told = stack.up(fails=True).tail()
    assert f"{DOOR}: API not ready in 60 s; last answer: " in told
    assert "see that the load balancer runs, and sends TCP to port 6443 of every master" in told
    _start_load_balancer(stack)
    stack.up()


def test_reloads_of_a_nodes_haproxy_are_felt_by_nobody(stack: Stack) -> None:
    worker = stack.node("worker-1")
    with Load(stack, "ten reloads", outside=[DOOR]) as load, _by_the_door(stack) as programs:
        for _ in range(_RELOADS):
            worker.run("systemctl reload haproxy")
            time.sleep(0.5)
    load.assert_unharmed()
    assert load.seen()["API by a worker's HAProxy"].failed == 0
    assert _seen(programs).failed == 0, _seen(programs)


def test_a_master_that_leads_etcd_dies_under_load(stack: Stack) -> None:
    stack.make_leader("master-2")
    with Load(stack, "a master dies", outside=[DOOR]) as load, _by_the_door(stack) as programs:
        stack.node("master-2").kill()
        time.sleep(20)
        stack.node("master-2").start()
        stack.wait_healthy({"master-1", "master-2", "master-3", "worker-1"})
    load.assert_served_again(within_ms=_SERVED_AGAIN_MS)
    _assert_served_again(programs)


def test_programs_without_the_certificate_are_not_let_in(stack: Stack) -> None:
    node = stack.node("worker-1")
    node.put("/run/kube-ha-test/etcd-ca.crt", _etcd_keys(stack).ca)
    asked = f"curl -sS --max-time 8 --cacert /run/kube-ha-test/etcd-ca.crt https://{ETCD_DOOR}/v3/cluster/member/list -d {{}}"
    with pytest.raises(LabError, match="certificate required"):
        node.run(asked)


def test_masters_leave_under_load_and_the_stack_says_who_is_left(stack: Stack) -> None:
    stack.make_leader("master-3")
    stack.edit("pools.master.count", 1)
    with Load(stack, "masters leave", outside=[DOOR]) as load, _by_the_door(stack) as programs:
        stack.up()
    load.assert_unharmed()
    _assert_served_again(programs)
    said = stack.output("loadBalancer")
    assert isinstance(said, dict)
    assert [backend["name"] for backend in said["backends"]] == ["master-1"]
    _start_load_balancer(stack)
    assert stack.ready() == {"master-1": True, "worker-1": True}


def _start_load_balancer(stack: Stack) -> None:
    """HAProxy as the output describes it; one that runs is replaced without losing a connection."""
    said = stack.output("loadBalancer")
    assert isinstance(said, dict)
    check, backends = said["healthCheck"], said["backends"]
    text = _FRAME.format(
        idle=said["idleTimeoutHours"],
        port=DOOR.rpartition(":")[2],
        timeout=check["timeoutMs"],
        path=check["path"],
        status=check["status"],
        interval=check["intervalMs"],
        fall=check["fall"],
        rise=check["rise"],
    )
    servers = "".join(
        f"  server {one['name']} {one['address']}:{one['port']} check check-ssl verify none tcp-ut 20s\n"
        for one in backends
    )
    mirror = stack.node("mirror")
    mirror.put("/run/lb.cfg", text + servers)
    mirror.run("haproxy -D -f /run/lb.cfg -p /run/lb.pid -sf $(cat /run/lb.pid 2>/dev/null)")


def _etcd_keys(stack: Stack) -> Keys:
    told = stack.output("etcdClient")
    assert isinstance(told, dict)
    assert told["endpoint"] == f"https://{ETCD_DOOR}"
    return Keys(ca=told["ca"], certificate=told["certificate"], key=told["key"])


@contextmanager
def _by_the_door(stack: Stack) -> Iterator[Client]:
    """A program on the worker that wants etcd and knows no member."""
    folder = stack.evidence / "etcd-door"
    folder.mkdir(exist_ok=True)
    client = Client(stack.node("worker-1"), "etcd-door", "count.sh etcd-door", folder)
    client.start(_etcd_keys(stack), [ETCD_DOOR])
    try:
        yield client
    finally:
        client.stop()
        stack.served("the leader dies, then masters leave", "etcd by 127.0.0.1", _seen(client))


def _seen(client: Client) -> Seen:
    return history.seen(history.attempts(client.lines))


def _assert_served_again(client: Client) -> None:
    """Its one door led to the member that went; the next member answers, and nothing acknowledged is lost."""
    seen = _seen(client)
    assert seen.requests > 10, seen
    assert (seen.lost, seen.stale) == (0, 0), seen
    assert seen.longest_gap_ms < _SERVED_AGAIN_MS, seen
