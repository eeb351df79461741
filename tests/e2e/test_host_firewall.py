"""Story: machines filter what comes in. Rules that keep this computer out come to nothing; then the firewall begins, a worker joins, a master is replaced, a machine boots, and it ends again."""

from __future__ import annotations

import re

import pytest

from tests.e2e.harness import config, lab
from tests.e2e.harness.assertions import assert_acceptance
from tests.e2e.harness.load import Load
from tests.e2e.harness.machines import Machines
from tests.e2e.harness.node import Node
from tests.e2e.harness.operations import operation
from tests.e2e.harness.stack import Stack

# This computer and the mirror, where the clients outside are; they ask etcd, too.
FRIENDS = "10.93.147.0/30"
FIREWALL = {
    "sshFrom": [FRIENDS],
    "apiFrom": [FRIENDS],
    "more": [{"protocol": "tcp", "ports": 2379, "from": [FRIENDS]}],
}
CLOSED = {
    "master": (22, 2379, 2380, 6443, 10250, 10257, 10259),
    "worker": (22, 10250, 10256),
}
OFFSETS = {"master": 10, "worker": 100}
MASTERS, WORKERS = ("master-1", "master-2", "master-3"), ("worker-1",)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.up()
    Machines(stack.lab, "10.93.147.0/24", stack.evidence).start_alone("stranger", 9)
    return stack


def wanted() -> config.Config:
    return config.lab("test-host-firewall", "10.93.147.0/24", masters=3, workers=1)


def reached(stack: Stack, source: str, node: Node) -> set[int]:
    """Ports of a machine that let a connection in, from the mirror or a stranger."""
    role, _, number = node.name.partition("-")
    address = f"10.93.147.{OFFSETS[role] + int(number)}"
    dialled = "".join(
        f"timeout 3 curl -sv telnet://{address}:{port} </dev/null 2>&1 | "
        f"grep -q 'Connected to' && echo {port}\n"
        for port in CLOSED[role]
    )
    return {int(port) for port in stack.node(source).run(f"{dialled}true").split()}


def table(node: Node) -> str:
    """Empty where there is none."""
    return node.asked("nft list table inet kube-ha")


def test_strangers_reach_what_listens_where_nothing_is_filtered(stack: Stack) -> None:
    assert {22, 2379, 6443, 10250} <= reached(stack, "stranger", stack.node("master-1"))


def test_rules_that_keep_this_computer_out_are_taken_back_by_the_machine(stack: Stack) -> None:
    stack.edit("machines.firewall", {"sshFrom": ["192.0.2.0/24"]})
    told = stack.up(fails=True).tail()
    assert "the new rules keep out 10.93.147.1" in told
    assert not [name for name in (*MASTERS, *WORKERS) if table(stack.node(name))]
    assert not stack.node("master-1").asked("systemctl is-active kube-ha-firewall")


def test_it_begins_while_clients_work_and_keeps_strangers_out(stack: Stack) -> None:
    stack.edit("machines.firewall", FIREWALL)
    with Load(stack, "the firewall begins") as load:
        stack.took("the firewall on four machines", stack.up().seconds)
    load.assert_unharmed()
    for name in (*MASTERS, *WORKERS):
        assert reached(stack, "stranger", stack.node(name)) == set(), name
    assert reached(stack, "mirror", stack.node("master-1")) == {22, 2379, 6443}
    assert stack.ready() == dict.fromkeys([*MASTERS, *WORKERS], True)
    assert_acceptance(stack)
    assert stack.up().changes == {}  # the stranger counts no logins


def test_a_worker_joins_and_a_master_is_replaced_under_it(stack: Stack) -> None:
    with Load(stack, "a worker joins and a master is replaced") as load:
        stack.edit("pools.worker.count", 2)
        stack.took("a worker joins", stack.up().seconds)
        stack.edit("pools.master.count", 4)
        stack.set_nodes({"master-1": {"state": "removed"}})
        stack.took("a master is replaced", stack.up().seconds)
        load.read_kubeconfig_again()
    load.assert_unharmed()
    for name in ("master-2", "master-3", "master-4", "worker-1", "worker-2"):
        assert reached(stack, "stranger", stack.node(name)) == set(), name
        assert not re.search(r"10\.93\.147\.11\b", table(stack.node(name))), "master-1 has left"
    assert_acceptance(stack)


def test_a_machine_that_boots_has_it_again(stack: Stack) -> None:
    worker = stack.node("worker-1")
    before = worker.run("nft -s list table inet kube-ha")
    worker.kill()
    worker.start()
    stack.wait_healthy({"master-2", "master-3", "master-4", "worker-1", "worker-2"}, limit_s=180)
    assert worker.run("nft -s list table inet kube-ha") == before
    assert operation(stack, "drift")


def test_what_somebody_changes_in_the_kernel_is_told(stack: Stack) -> None:
    stack.node("worker-2").run("nft add rule inet kube-ha lets-in tcp dport 9 accept")
    assert "the loaded rules" in operation(stack, "drift", fails=True)


def test_it_ends_and_nothing_of_it_is_left(stack: Stack) -> None:
    stack.edit("machines.firewall", None)
    with Load(stack, "the firewall ends") as load:
        stack.up()
    load.assert_unharmed()
    for name in ("master-2", "master-3", "master-4", "worker-1", "worker-2"):
        node = stack.node(name)
        assert table(node) == "", name
        left = node.run("ls -A /etc/kube-ha /etc/systemd/system /var/lib/kube-ha/state")
        assert "firewall" not in left, name
    assert {22, 2379, 6443, 10250} <= reached(stack, "stranger", stack.node("master-2"))
    assert operation(stack, "drift")
    assert lab.containers("test-host-firewall")
