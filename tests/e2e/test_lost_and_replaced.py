"""Story: machines die and are declared lost; no SSH is tried; one comes back to life, and serves nobody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.load import Load
from tests.e2e.harness.machines import Machines
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-lost"
STAY = {"master-1", "master-3", "worker-1"}


@pytest.fixture(scope="module")
def machines() -> Machines:
    return Machines(NAME, "10.93.21.0/24", ROOT / ".local/test/lost-machines")


@pytest.fixture(scope="module")
def stack(machines: Machines) -> Iterator[Stack]:
    hosts: dict[str, list[dict[str, object]]] = {"master": [], "worker": []}
    wanted = config.adopted(NAME, machines.mirror, machines.user_key, hosts)
    wanted["machines"]["ssh"] = {"user": "root", "privateKeyFile": str(machines.user_key)}
    with Stack("lost_and_replaced", wanted) as stack:
        machines.start_lab()
        hosts["master"] += [machines.start(f"master-{n}", 10 + n) for n in (1, 2, 3)]
        hosts["worker"] += [machines.start(f"worker-{n}", 100 + n) for n in (1, 2)]
        stack.write()
        yield stack


def test_a_lost_master_is_replaced_in_one_edit(stack: Stack, machines: Machines) -> None:
    stack.up()
    stack.make_leader("master-2")
    for name in ("master-2", "worker-2"):
        stack.node(name).kill()
    pools = stack.config["pools"]
    assert isinstance(pools["master"], dict)
    pools["master"]["hosts"].append(machines.start("master-4", 14))
    stack.set_nodes({"master-2": {"state": "lost"}, "worker-2": {"state": "lost"}})
    with Load(stack, "dead ones taken out") as load:
        update = stack.up()
    stack.took("a lost master replaced and a lost worker taken out", update.seconds)
    load.assert_unharmed()
    dialled = " ".join(update.ssh_connections)
    for dead in (machines.address(12), machines.address(102)):
        assert f"{dead}:" not in dialled, "a dead machine was dialled"
    stack.wait_healthy(STAY | {"master-4"}, limit_s=60)


def test_second_up_changes_nothing(stack: Stack) -> None:
    again = stack.up()
    assert again.changes == {}
    assert again.ssh_connections == []


def test_what_comes_back_to_life_serves_nobody(stack: Stack, machines: Machines) -> None:
    for name in ("master-2", "worker-2"):
        stack.node(name).start()
    worker, master = stack.node("worker-2"), stack.node("master-2")

    def tried() -> str:
        journal = worker.asked(
            "journalctl -q -b -u kubelet -o cat | grep -c 'declared lost' || true"
        )
        return "" if int(journal.strip() or 0) > 1 else "the kubelet was not refused yet"

    wait_for("the lost worker refused by the API", tried, limit_s=120)
    assert set(stack.ready()) == STAY | {"master-4"}
    rows = stack.node("master-1").etcdctl("member list -w simple").strip().splitlines()
    assert sorted(row.split(", ")[2] for row in rows) == ["master-1", "master-3", "master-4"]
    answer = master.asked(
        f"curl -sk --max-time 5 https://{machines.address(12)}:6443/readyz || echo none"
    )
    assert answer.strip() != "ok", "the API server of a removed member must not be ready"
    for name in sorted(STAY):
        assert machines.address(12) not in stack.node(name).run("cat /etc/haproxy/haproxy.cfg")
    assert stack.up().changes == {}


def test_it_comes_back_as_a_new_node_by_a_raised_generation(stack: Stack) -> None:
    stack.set_nodes({"master-2": {"state": "lost"}})
    refused = stack.preview(fails=True)
    assert "worker-2 was lost, and its old identity is refused; set it to 2" in refused.output
    stack.set_nodes({"master-2": {"state": "lost"}, "worker-2": {"generation": 2}})
    stack.up()

    def unready() -> str:
        ready = stack.ready()
        wanted = STAY | {"master-4", "worker-2"}
        return "" if set(ready) == wanted and all(ready.values()) else str(ready)

    wait_for("worker-2 back as a new node", unready, limit_s=60)
    assert stack.up().changes == {}
