"""Ways between machines: which are tried, by real sockets, and what is told of those that are closed."""

from __future__ import annotations

import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import permutations

import pytest

from components.ssh.hop import Hop
from operations import preflight
from operations.engine.stack import Stack
from operations.ports import matrix
from operations.ports.matrix import Probe, Report
from operations.ssh import client
from operations.ssh.client import Answer, Target
from stacks.cluster.plan import Node, Plan
from tests.toolchain.sshd import free_port
from tests.unit.configs import adopted, host, planned

EDGE = {
    "pools.edge": {"roles": ["loadbalancer"], "hosts": [host("edge", 1), host("edge", 2)]},
    "frontDoors.vip": {"address": "192.0.2.5"},
}


def doors(plan: Plan) -> set[tuple[str, str, str]]:
    return {(p.source.pool, p.target.pool, p.door) for batch in matrix.batches(plan) for p in batch}


def test_ports_are_those_that_the_roles_need_of_each_other() -> None:
    between = {("udp 8472", "node"), ("tcp 30000", "node"), ("udp 30000", "node")}
    nodes = {
        (a, b, door)
        for a in ("master", "worker")
        for b in ("master", "worker")
        for door, _ in between
    }
    assert doors(planned(adopted())) == nodes | {
        ("master", "master", "tcp 2379"),
        ("master", "master", "tcp 2380"),
        ("master", "master", "tcp 6443"),
        ("worker", "master", "tcp 6443"),
        ("master", "worker", "tcp 10250"),
        ("master", "master", "tcp 10250"),
    }


def test_a_network_and_a_vip_bring_their_own() -> None:
    for network in ({"backend": "host-gw"}, {"plugin": "none"}):
        assert not {door for *_, door in doors(planned(adopted({"network": network})))} & {
            "udp 8472"
        }
    found = doors(planned(adopted(EDGE)))
    assert {("edge", "master", "tcp 6443"), ("edge", "edge", "vrrp 0")} <= found
    assert not {row for row in found if row[1] == "edge"} - {("edge", "edge", "vrrp 0")}
    alone = doors(planned(adopted({"frontDoors.vip": {"address": "192.0.2.5"}})))
    assert ("master", "master", "vrrp 0") in alone


@pytest.mark.parametrize("size", [0, 1, 2, 3, 16, 17, 40])
def test_every_machine_is_tried_in_both_directions_and_a_batch_is_bounded(size: int) -> None:
    workers = [
        {**host("worker", 1), "name": f"worker-{n}", "address": f"192.0.3.{n}"}
        for n in range(1, size + 1)
    ]
    for number, entry in enumerate(workers):
        entry["hostKey"] = host("worker", 20 + number)["hostKey"]
    plan = planned(adopted({"pools.worker.hosts": workers}))
    batches = matrix.batches(plan)
    tried = {(p.source.name, p.target.name) for batch in batches for p in batch}
    for way in permutations([n.name for n in plan.nodes], 2):
        if "master" in "".join(way):
            assert way in tried
    if size > 1:
        for one in plan.workers:
            assert any(a == one.name and "worker" in b for a, b in tried)
            assert any(b == one.name and "worker" in a for a, b in tried)
    for batch in batches:
        assert len({p.target.name for p in batch if p.target.is_worker}) <= matrix.WORKERS


def node(name: str, number: int) -> Node:
    return replace(planned(adopted()).node(name), address=f"127.0.0.{number}")


def run(
    nodes: list[Node], probes: list[Probe], monkeypatch: pytest.MonkeyPatch, *, most_s: int = 4
) -> dict[str, Report]:
    """What machines tell whose addresses are all this computer's."""
    monkeypatch.setattr(matrix, "SECONDS_MOST", most_s)

    def one(node: Node) -> Report:
        done = subprocess.run(
            ["bash", "-s"],
            input=matrix.script(node, probes),
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        return matrix.read(done.stdout)

    with ThreadPoolExecutor(len(nodes)) as pool:
        return dict(zip([n.name for n in nodes], pool.map(one, nodes), strict=True))


@pytest.fixture
def three() -> list[Node]:
    return [node("master-1", 2), node("master-2", 3), node("worker-1", 4)]


def every(nodes: list[Node], *kinds: str) -> list[Probe]:
    doors = [f"{kind} {free_port()}" for kind in kinds]
    return [Probe(a, b, door, "it") for a, b in permutations(nodes, 2) for door in doors]


def test_ways_that_are_open_are_told_so(three: list[Node], monkeypatch: pytest.MonkeyPatch) -> None:
    probes = every(three, "tcp", "udp")
    reports = run(three, probes, monkeypatch, most_s=20)
    assert all(report.ended for report in reports.values())
    for probe in probes:
        assert (probe.door, probe.source.name) in reports[probe.target.name].heard
        assert (
            reports[probe.source.name].dialled[probe.door, probe.target.name] == probe.target.name
        )


def test_another_source_address_is_told(three: list[Node], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection on this computer comes from 127.0.0.1, as behind one NAT."""
    found = matrix.problems(probes := every(three, "tcp"), run(three, probes, monkeypatch))
    assert set(found) == {"master-1", "master-2", "worker-1"}
    assert any(
        text.startswith("what master-1 sends (port ") and " arrives from 127.0.0.1" in text
        for text in found["worker-1"]
    )
    seen = [replace(one, address="127.0.0.1") for one in three]
    by_name = {one.name: one for one in seen}
    same = [p._replace(source=by_name[p.source.name]) for p in probes]
    assert matrix.problems(same, run(three, probes, monkeypatch)) == {}


def test_a_program_that_is_there_counts_and_one_in_between_does_not(
    three: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    master, _, worker = three
    with socket.socket() as service, socket.socket(type=socket.SOCK_DGRAM) as tunnel:
        service.bind((master.address, 0))
        service.listen()
        tunnel.bind((master.address, 0))
        tcp, udp = f"tcp {service.getsockname()[1]}", f"udp {tunnel.getsockname()[1]}"
        probes = [Probe(worker, master, tcp, "api"), Probe(worker, master, udp, "vxlan")]
        reports = run([master, worker], probes, monkeypatch)
    assert reports["master-1"].taken == {tcp, udp}
    assert matrix.problems(probes, reports) == {}
    free = {**reports, "master-1": Report(ended=True)}
    assert [
        text.splitlines()[0].rpartition(": ")[2]
        for text in matrix.problems(probes, free)["master-1"]
    ] == [
        "another program answers for it",
        "nothing arrives",
    ]


def test_a_service_that_has_the_node_port_counts_as_open(three: list[Node]) -> None:
    """Its packets are led to a pod before the port's listener has them."""
    probe = Probe(three[2], three[0], "tcp 30000", "node-ports")
    answered = {"master-1": Report(ended=True), "worker-1": Report(ended=True)}
    answered["worker-1"].dialled["tcp 30000", "master-1"] = "-"
    assert matrix.problems([probe], answered) == {}
    assert set(matrix.problems([probe._replace(what="api")], answered)) == {"master-1"}


def test_a_closed_port_is_told_of_all_who_cannot_reach_it(
    three: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    master, second, worker = three
    door = f"tcp {free_port()}"
    probes = [Probe(second, master, door, "api"), Probe(worker, master, door, "api")]
    deaf = replace(master, address="127.0.0.99")  # listens elsewhere than it is dialled
    reports = run([second, worker], probes, monkeypatch) | run([deaf], [], monkeypatch)
    (text,) = matrix.problems(probes, reports)["master-1"]
    number = door.partition(" ")[2]
    assert text == (
        f"port {number}/tcp (api) is not reached from master-2, worker-1: Connection refused\n"
        "    do: open it for them in the firewalls of master-1 and between"
    )


def test_it_ends_by_itself_when_nobody_comes(
    three: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = [Probe(three[1], three[0], f"udp {free_port()}", "vxlan")]
    reports = run(three[:1], probes, monkeypatch, most_s=1)
    assert reports["master-1"] == Report(ended=True)


def test_what_a_machine_prints_is_data() -> None:
    odd = "heard tcp 1 x; rm -rf\nheard tcp\ndialled icmp 1 a b\nbound tcp 99\nfacts\nend of it"
    assert matrix.read(odd) == Report(heard={("tcp 1", "x;"): {"rm -rf"}})


def stack_of(plan: Plan) -> Stack:
    hop = Hop(address="a", port=22, user="root", host_key=None, key=None)
    return Stack(plan=plan, targets={n.name: Target(hop=hop) for n in plan.nodes}, cluster_id="")


def test_a_machine_without_perl_is_not_tested_and_so_not_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = planned(adopted({"pools.worker.hosts": [host("worker", 1)]}))

    def send(_: Target, text: str, *, limit_s: int) -> Answer:
        name = text.partition("NAME=")[2].partition("\n")[0]
        said = "bash: exec: perl: not found" if name == "worker-1" else "end"
        return Answer(status=0, text=said, asked_at_s=0)

    monkeypatch.setattr(client, "send", send)
    found = preflight.ports(stack_of(plan), {"master-1", "worker-1"})
    assert found["worker-1"] == [
        "ports of it were not tested: bash: exec: perl: not found\n"
        "    do: apt-get install -y perl-base where it is missing, then run this again"
    ]
    assert "master-1" not in found
    assert preflight.ports(stack_of(plan), ()) == {}
