"""Story: a worker in maintenance, decommissioned and back, removed from the middle, recreated under its name."""

from __future__ import annotations

import json

from tests.e2e.harness import config, lab
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

NAME = "test-states"
ALL = {"master-1", "worker-1", "worker-2", "worker-3"}
STOPPED = "pgrep -xl 'kubelet|containerd|haproxy|etcd|kube-proxy|flanneld' || true"


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.20.0/24", masters=1, workers=3)


def test_maintenance_cordons_and_leaves_pods_alone(stack: Stack) -> None:
    stack.up()
    stack.settled()
    processes = stack.node("worker-1").processes()
    stack.set_nodes({"worker-1": {"state": "maintenance"}})
    words = stack.preview().output
    assert "cordon for maintenance, its pods stay" in words
    update = stack.up()
    stack.settled()
    assert set(update.changes) == {f"{NAME}-acceptance-attempt", f"{NAME}-nodes", f"{NAME}-gate"}
    assert cordoned(stack) == {"worker-1"}
    assert stack.node("worker-1").processes() == processes
    stack.set_nodes({})
    stack.up()
    assert cordoned(stack) == set()


def test_decommissioned_leaves_in_order_and_keeps_its_machine(stack: Stack) -> None:
    stack.settled()
    others = {name: stack.node(name).processes() for name in ("worker-1", "worker-3")}
    images = stack.node("worker-2").run("ctr -n k8s.io images ls -q | sort")
    stack.set_nodes({"worker-2": {"state": "decommissioned"}})
    with Load(stack, "a worker is decommissioned") as load:
        stack.up()
    load.assert_unharmed()
    stack.wait_healthy(ALL - {"worker-2"}, limit_s=30)
    machine = stack.node("worker-2")
    assert machine.run(STOPPED).strip() == ""
    assert machine.run("ls /etc/kubernetes/kubelet.conf 2>/dev/null || true") == ""
    assert machine.run("ls /var/lib/containerd").strip()
    stack.settled()
    # What ran there runs on; pods that were evicted, of CoreDNS say, may have come to it.
    for name, processes in others.items():
        assert processes.items() <= stack.node(name).processes().items(), name
    assert stack.up().changes == {}

    stack.set_nodes({})
    stack.up()
    stack.wait_healthy(ALL, limit_s=60)
    assert set(machine.run("ctr -n k8s.io images ls -q").split()) >= set(images.split())


def test_a_worker_of_the_middle_is_removed_and_another_made_anew_in_one_edit(stack: Stack) -> None:
    before = machine_id(stack, "worker-3")
    stack.set_nodes({"worker-2": {"state": "removed"}, "worker-3": {"generation": 2}})
    with Load(stack, "one removed and one recreated") as load:
        stack.up()
    load.assert_unharmed()
    stack.wait_healthy(ALL - {"worker-2"}, limit_s=60)
    assert machine_id(stack, "worker-3") != before
    assert f"kube-ha-{NAME}-worker-2" not in lab.containers(NAME)


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def cordoned(stack: Stack) -> set[str]:
    rows = json.loads(stack.kubectl("get", "nodes", "-o", "json"))["items"]
    return {row["metadata"]["name"] for row in rows if row["spec"].get("unschedulable")}


def machine_id(stack: Stack, name: str) -> str:
    return stack.node(name).run("cat /etc/machine-id").strip()
