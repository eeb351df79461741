"""Story: the firewall of machines begins under load, is there again after a boot, what somebody changes of it is told, and it ends."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_acceptance
from tests.e2e.harness.load import Load
from tests.e2e.harness.node import Node
from tests.e2e.harness.operations import drifted
from tests.e2e.harness.stack import Stack

NET = "10.93.150"
# Clients of the load are at the mirror, .2; they ask etcd, too.
FRIENDS = [f"{NET}.0/30"]
FIREWALL = {
    "networks": [f"{NET}.8/29", f"{NET}.96/27"],
    "sshFrom": FRIENDS,
    "apiFrom": FRIENDS,
    "more": [{"protocol": "tcp", "ports": 2379, "from": FRIENDS}],
}
NAMES = ("master-1", "master-2", "master-3", "worker-1")


def wanted() -> config.Config:
    return config.lab("test-firewall-begins", f"{NET}.0/24", masters=3, workers=1)


def table(node: Node) -> str:
    """Empty where there is none."""
    return node.asked("nft -s list table inet kube-ha-firewall")


def test_it_begins_while_clients_work(stack: Stack) -> None:
    stack.up()
    stack.edit("machines.firewall", {**FIREWALL})
    with Load(stack, "the firewall begins") as load:
        stack.took("the firewall on four machines", stack.up().seconds)
    load.assert_unharmed()
    assert all("counter drop" in table(stack.node(name)) for name in NAMES)
    assert_acceptance(stack)


def test_a_machine_that_boots_has_it_again(stack: Stack) -> None:
    worker = stack.node("worker-1")
    before = table(worker)
    worker.kill()
    worker.start()
    stack.wait_healthy(set(NAMES), limit_s=180)
    assert table(worker) == before
    assert drifted(stack) == []


def test_the_systems_own_rules_do_not_take_it_away_and_what_somebody_changes_is_told(
    stack: Stack,
) -> None:
    worker = stack.node("worker-1")
    before = table(worker)
    worker.run("systemctl restart nftables")  # begins with: flush ruleset
    assert table(worker) == before
    worker.run("nft add rule inet kube-ha-firewall lets-in tcp dport 9 accept")
    assert ["rules in the kernel are not those" in line for line in drifted(stack)] == [True]
    worker.run("systemctl reload kube-ha-firewall")
    assert table(worker) == before
    assert drifted(stack) == []


def test_it_ends_and_nothing_of_it_is_left(stack: Stack) -> None:
    stack.edit("machines.firewall", None)
    with Load(stack, "the firewall ends") as load:
        stack.up()
    load.assert_unharmed()
    for name in NAMES:
        node = stack.node(name)
        assert table(node) == "", name
        assert "firewall" not in node.run(
            "ls -A /etc/kube-ha /etc/systemd/system /var/lib/kube-ha/state"
        ), name
    assert drifted(stack) == []
