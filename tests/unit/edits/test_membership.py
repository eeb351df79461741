"""Node states and generations: who may leave, come back or be recreated, and what is refused."""

from __future__ import annotations

import json

import pytest

from stacks.edits import membership, memory, quorum
from stacks.edits.transition import TransitionError, check
from stacks.explain.changes import changes
from tests.unit.configs import adopted, edited, host_key, lab, planned

FIVE = {"pools.master.count": 5}


def state(**states: str) -> dict[str, object]:
    """`state(worker_1="lost")` as an edit."""
    return {f"nodes/{name.replace('_', '-')}": {"state": said} for name, said in states.items()}


def again(generation: int, *names: str) -> dict[str, object]:
    return {f"nodes/{name}": {"generation": generation} for name in names}


def known(config: dict[str, object]) -> memory.Memory:
    return memory.read(json.loads(json.dumps(memory.of(planned(config)))))


def refused(before: dict[str, object], after: dict[str, object]) -> list[tuple[str, str]]:
    try:
        check(known(before), planned(after))
    except TransitionError as error:
        return [(path, text) for path, text in error.problems]
    return []


def test_nodes_that_are_away_are_no_part_of_the_plan() -> None:
    plan = planned(lab(state(worker_1="lost", worker_2="decommissioned") | FIVE))
    assert [node.name for node in plan.workers] == []
    assert [(node.name, node.state) for node in plan.away] == [
        ("worker-1", "lost"),
        ("worker-2", "decommissioned"),
    ]
    removed = planned(lab(state(master_1="removed")))
    assert [node.name for node in removed.masters] == ["master-2", "master-3"]
    assert removed.away == ()


def test_a_node_in_maintenance_stays_in_the_plan() -> None:
    plan = planned(lab(state(worker_1="maintenance")))
    assert [node.state for node in plan.workers] == ["maintenance", "active"]


ALLOWED = [
    ({}, state(worker_1="maintenance")),
    ({}, state(master_1="removed")),
    ({}, state(master_1="decommissioned")),
    ({}, state(master_3="lost")),
    ({}, state(master_3="lost") | {"pools.master.count": 4}),
    (state(master_3="lost"), again(2, "master-3")),
    (state(master_3="lost"), {"pools.master.count": 2}),
    (state(worker_1="decommissioned"), {}),
    (state(worker_1="decommissioned"), again(2, "worker-1")),
    (state(worker_1="lost"), {"nodes/worker-1": {"state": "decommissioned", "generation": 2}}),
    (state(worker_1="decommissioned"), state(worker_1="lost")),
    (FIVE, FIVE | state(master_4="lost", master_5="lost")),
    ({}, again(2, "master-1")),
    ({}, again(7, "worker-1", "worker-2")),
    ({}, state(worker_1="lost", worker_2="lost", master_2="lost")),
]


@pytest.mark.parametrize(("before", "after"), ALLOWED)
def test_what_may_happen_to_nodes(before: dict[str, object], after: dict[str, object]) -> None:
    assert refused(lab(before), lab(after)) == []


def no_quorum(name: str, up: int, voters: int, needed: int) -> tuple[str, str]:
    text = (
        f"when {name} leaves, etcd would have no quorum: {up} of {voters} members are up to decide "
        f"it, {needed} are needed; bring dead members back, recreate fewer per update, or, where they "
        "are gone for good, go on from one that has the data: `make restore FROM=node "
        'WITHOUT="dead ones"`'
    )
    return ("pools.master", text)


RAISED = {"nodes/worker-1": {"state": "decommissioned", "generation": 2}}
STAYS = "worker-1 is decommissioned, and its machine stays as it is; set it to 1, and raise it when worker-1 comes back"
REFUSED = [
    ({}, state(master_2="lost", master_3="lost"), [no_quorum("master-2", 1, 3, 2)]),
    ({}, again(2, "master-1", "master-2"), [
        ("nodes.master-1.generation", "master-1, master-2 would be recreated at once; raise one generation per update"),
        no_quorum("master-1", 1, 3, 2),
    ]),
    ({"pools.master.count": 1}, {"pools.master.count": 1} | again(2, "master-1"), [
        ("pools.master", "no etcd member of the running cluster would stay (leaving: master-1); add the new ones and run up, then take the old ones out"),
        ("pools.master", "no master of the running cluster would stay (leaving: master-1); add the new ones and run up, then take the old ones out"),
    ]),
    (state(master_3="lost"), {}, [
        ("nodes.master-3.generation", "master-3 was lost, and its old identity is refused; set it to 2, so that the machine is wiped and joins as a new one"),
    ]),
    (again(3, "worker-1"), again(2, "worker-1"), [
        ("nodes.worker-1.generation", "2 is under 3, which was applied; set it back or raise it"),
    ]),
    (state(worker_1="decommissioned"), RAISED, [("nodes.worker-1.generation", STAYS)]),
    ({}, RAISED, [("nodes.worker-1.generation", STAYS)]),
    ({}, state(master_3="removed", worker_2="removed"), [
        ("pools.master", "master-3 and worker-2 would leave together; put the lines of master-3 back and run up, then take them out and run up again; if you mean it: `allow: [leave-together/master-3]`"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), REFUSED)
def test_what_must_not_happen_to_nodes(
    before: dict[str, object], after: dict[str, object], expected: list[tuple[str, str]]
) -> None:
    assert refused(lab(before), lab(after)) == expected


def test_a_machine_made_anew_may_have_another_address_and_host_key() -> None:
    other = {
        "pools.worker.hosts.0.address": "192.0.2.150",
        "pools.worker.hosts.0.hostKey": host_key(900),
    }
    assert refused(adopted(), adopted(other)) != []
    assert refused(adopted(), adopted(other | again(2, "worker-1"))) == []


def test_dead_members_go_before_others_join() -> None:
    steps = quorum.steps(["a", "b", "c"], ["a", "b", "d"], lost=["c"])
    assert [(step.member, step.action, step.up, len(step.voters)) for step in steps] == [
        ("c", "leaves", 2, 2),
        ("d", "joins", 3, 3),
    ]
    again = quorum.steps(["a", "b", "c"], ["a", "b", "c"], rebuilt=["c"])
    assert [(step.member, step.action) for step in again] == [("c", "leaves"), ("c", "joins")]
    assert all(step.has_quorum for step in [*steps, *again])
    assert not quorum.steps(["a", "b", "c"], ["a"], lost=["b", "c"])[0].has_quorum


def test_those_that_go_first_are_named_until_it_has_succeeded() -> None:
    before, after = lab(), lab(state(worker_1="lost") | again(2, "worker-2"))
    assert membership.going_first(known(before), planned(after)) == ("worker-1", "worker-2")
    assert membership.going_first(known(after), planned(after)) == ()
    assert membership.going_first(None, planned(after)) == ()
    died_while_joining = lab({"pools.worker.count": 3} | state(worker_3="lost"))
    assert membership.going_first(known(before), planned(died_while_joining)) == ("worker-3",)


def test_of_load_balancers_nobody_takes_anything_out_but_what_they_were_before() -> None:
    def with_edge(roles: list[str], generation: int = 1) -> dict[str, object]:
        pool = {"roles": roles, "count": 1, "addressOffset": 60}
        doors = {"frontDoors.vip": {"address": "10.92.0.5"}}
        edge = {"roles": ["loadbalancer"], "count": 1}
        edits = doors | {"pools.edge": edge, "pools.other": pool} | again(generation, "other-1")
        return lab(edits)

    worker, balancer = known(with_edge(["worker"])), known(with_edge(["loadbalancer"]))
    now = planned(with_edge(["loadbalancer"], 2))
    assert [node.name for node in membership.taken_out_first(worker, now)] == ["other-1"]
    assert membership.taken_out_first(balancer, now) == []


OUT = "its Node is removed by the remaining nodes"
WORDS = [
    ("adopted", state(worker_1="lost"), ["leaving", OUT, "forget the machine, no SSH is tried"]),
    ("lab", state(worker_1="lost"), ["leaving", OUT, "DELETE the machine and its disks"]),
    ("lab", state(worker_1="maintenance"), ["changed", "cordon for maintenance, its pods stay"]),
    ("lab", {"nodes": {"worker-1": {"state": "maintenance", "drain": True}}}, ["changed", "cordon for maintenance, evict its pods"]),
    ("lab", {"nodes": {"worker-1": {"state": "maintenance", "keepPodsS": 600}}}, [
        "changed", "cordon for maintenance, its pods stay, its pods stay for 600 s while it is unresponsive",
    ]),
    ("lab", state(worker_1="removed"), [
        "leaving", "evict its pods (PodDisruptionBudgets are respected; emptyDir and local volumes do not move along, pods without a controller end for good)", "delete its Node", "DELETE the machine and its disks",
    ]),
    ("lab", state(worker_1="decommissioned"), [
        "leaving", "evict its pods (PodDisruptionBudgets are respected; emptyDir and local volumes do not move along, pods without a controller end for good)", "delete its Node",
        "stop everything of kube-ha; machine and disks stay",
    ]),
    ("adopted", again(2, "worker-1"), [
        "rebuilt", f"{OUT} (evicted before, if it still answers)", "wipe the machine and adopt it again",
        "preflight, then packages, kernel settings, HAProxy, containerd, kubelet", "join as a worker",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "edit", "expected"), WORDS)
def test_words_for_states(kind: str, edit: dict[str, object], expected: list[str]) -> None:
    base = adopted() if kind == "adopted" else lab()
    found = changes(known(base), planned(edited(base, edit)))
    said = {node.name: [node.kind, *(a.text for a in node.actions)] for node in found.nodes}
    assert said == {"worker-1": expected}


def test_what_is_away_and_forgotten_is_told_once() -> None:
    before = lab(state(worker_1="lost", worker_2="decommissioned"))
    assert changes(known(before), planned(before)).nodes == ()
    gone = planned(lab({"pools.worker.count": 0}))
    found = changes(known(before), gone)
    assert [(node.name, [a.text for a in node.actions]) for node in found.nodes] == [
        ("worker-2", ["DELETE the machine and its disks"])
    ]


def test_a_machine_that_is_kept_is_not_said_to_be_wiped() -> None:
    keep = adopted({"machines.onRelease": "keep"})
    found = changes(known(keep), planned(edited(keep, state(worker_1="removed"))))
    assert (
        found.nodes[0].actions[-1].text
        == "stop everything of kube-ha; files and data stay, put the host back to have it again"
    )
