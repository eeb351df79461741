"""What waits for what, and how big it all is: also with hundreds of nodes."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.plan.big import big
from tests.plan.graph import Graph
from tests.plan.providers import COMMAND
from tests.plan.registration import Run
from tests.plan.settled import Stacks
from tests.unit.configs import adopted, lab
from toolchain.values import encode

STDIN_LIMIT = 8192  # bytes; design, properties: a small graph

CONFIGS = {
    "3+2": lab(),
    "1+1": lab({"pools.master.count": 1, "pools.worker.count": 1}),
    "adopted": adopted(),
    "separate etcd": lab(
        {
            "pools.etcd": {"roles": ["etcd"], "count": 3},
            "pools.master": {"roles": ["master"], "count": 2},
        }
    ),
    "300 nodes": big(300),  # tests/bench/plan.py runs a thousand
}


@pytest.fixture(scope="module")
def grown(stacks: Stacks) -> Run:
    """The graph of a cluster that lives: an update that has something to change on every node."""
    engine, _ = stacks.settled(lab())
    return engine.up(lab({"converge.generation": 2}))


@pytest.fixture(params=CONFIGS)
def born(request: pytest.FixtureRequest, stacks: Stacks) -> Run:
    """The first update of each kind of stack."""
    return stacks.settled(CONFIGS[request.param])[1]


def test_graph_has_no_cycle_and_is_shallow(born: Run) -> None:
    assert max(Graph(born).depths.values()) < 300


def test_no_worker_joins_before_what_bounds_it_is_in_the_cluster(born: Run) -> None:
    graph = Graph(born)
    (token,) = (name for name in graph.resources if name.endswith("-join-token"))
    cluster = token.removesuffix("-join-token")
    guards = {f"{cluster}-addon-{name}" for name in ("admission-policies", "serving-certificates")}
    assert guards <= graph.needs(token)


def test_names_are_unique(born: Run) -> None:
    names = [resource.name for resource in born.custom]
    assert len(names) == len(set(names))


def test_every_resource_has_a_parent_other_than_the_stack(born: Run) -> None:
    orphans = [r.name for r in born.custom if "pulumi:pulumi:Stack::" in r.parent or not r.parent]
    assert orphans == []


def test_no_stdin_is_over_8_kib(born: Run) -> None:
    sizes = {resource.name: len(resource.text("stdin").encode()) for resource in born.commands}
    assert {name: size for name, size in sizes.items() if size > STDIN_LIMIT} == {}


def test_a_worker_has_at_most_five_resources(born: Run) -> None:
    workers: dict[str, int] = {}
    for resource in born.custom:
        if found := re.match(r"[a-z]+-(worker-\d+)-", resource.name):
            workers[found[1]] = workers.get(found[1], 0) + 1
    assert workers
    assert max(workers.values()) <= 5


def steps(graph: Graph) -> list[str]:
    """In their order, but for the protection: it waits for all, does nothing, and nothing waits for it."""
    (last,) = [name for name in graph.order if name.endswith("-protection")] or [""]
    assert not [name for name in graph.resources if last in graph.needs(name)]
    return [name for name in graph.order if name != last]


def test_no_resource_waits_for_many_workers(born: Run) -> None:
    graph = Graph(born)
    for name in steps(graph):
        waited = {other for other in graph.needs(name) if "-worker-" in other}
        nodes = {re.sub(r"^[a-z]+-(worker-\d+)-.*", r"\1", other) for other in waited}
        assert len(nodes) <= 1, f"{name} waits for {sorted(waited)[:5]}"


def test_workers_do_not_wait_for_each_other(born: Run) -> None:
    graph = Graph(born)
    before: dict[str, set[str]] = {}
    for name in steps(graph):
        workers = set(re.findall(r"-(worker-\d+)-", name))
        for other in graph.needs(name):
            workers |= before[other]
        assert len(workers) <= 1, f"{name} waits for {sorted(workers)}"
        before[name] = workers


def test_the_gate_waits_for_no_worker(born: Run) -> None:
    graph = Graph(born)
    gate = next(name for name in graph.resources if name.endswith("-gate"))
    assert [name for name in graph.before(gate) if "-worker-" in name] == []


# Bytes. A worker's is what a thousand nodes multiply; a master and its member of etcd hold keys. A connection has 88 of
# them for the mark of the key within it, as the official plugin stores it.
WORKER_STATE, MASTER_STATE, CLUSTER_STATE = 26_700, 146_000, 122_000


def test_state_stays_small(born: Run) -> None:
    names = {resource.name for resource in born.custom}
    nodes = {name.removesuffix("-node") for name in names if name.endswith("-node")}
    masters = {node for node in nodes if {f"{node}-master", f"{node}-etcd"} & names}
    state = dict.fromkeys([*nodes, ""], 0)
    for resource in born.custom:
        named = re.sub("^([a-z]+)-pki-", r"\1-", resource.name)  # a certificate is its node's
        owner = next((node for node in nodes if named.startswith(f"{node}-")), "")
        state[owner] += encode(resource.inputs).ByteSize() + encode(resource.outputs).ByteSize()
    assert state.pop("") < CLUSTER_STATE
    assert max(state[node] for node in masters) < MASTER_STATE
    assert max(state[node] for node in nodes - masters) < WORKER_STATE


def test_masters_of_a_new_cluster_are_made_one_after_another(stacks: Stacks) -> None:
    graph = Graph(stacks.settled(lab())[1])
    for phase in ("master", "etcd"):
        for earlier, later in pairwise(["master-1", "master-2", "master-3"]):
            assert f"dev-{earlier}-{phase}" in graph.before(f"dev-{later}-{phase}")


def test_masters_that_live_are_changed_one_at_a_time(grown: Run) -> None:
    graph = Graph(grown)
    for earlier, later in pairwise(["master-1", "master-2", "master-3"]):
        for name in graph.commands_of(later):
            # These change nothing that serves: leafs are read while their programs run.
            if name.endswith(("-scripts", "-preflight", "-etcd-keys", "-master-keys")):
                continue
            waiting = graph.before(name)
            left = {other for other in graph.commands_of(earlier) if other not in waiting}
            assert left == set(), f"{name} does not wait for {sorted(left)}"


def test_workers_that_live_are_changed_after_the_masters(grown: Run) -> None:
    graph = Graph(grown)
    for worker in ("worker-1", "worker-2"):
        assert "dev-master-3-master" in graph.before(f"dev-{worker}-node")


def test_a_new_worker_does_not_wait_for_changes_of_masters_to_be_prepared(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab())
    graph = Graph(engine.up(lab({"pools.worker.count": 3})))
    assert "dev-master-3-master" not in graph.before("dev-worker-3-node")


def test_members_may_be_founded_only_when_every_etcd_machine_is_prepared(stacks: Stacks) -> None:
    graph = Graph(stacks.settled(CONFIGS["separate etcd"])[1])
    founding = [name for name in graph.resources if name.endswith("-etcd-found")]
    assert founding == ["dev-etcd-1-etcd-found"]
    assert {f"dev-etcd-{number}-node" for number in (1, 2, 3)} <= graph.before(founding[0])


def test_lab_machines_take_what_was_on_them_along(stacks: Stacks) -> None:
    """No command runs on a container that is about to be removed."""
    run = stacks.settled(lab())[1]
    machines = {resource.urn: resource.name for resource in run.custom}
    for resource in run.custom:
        if "connection" not in resource.inputs:
            continue
        node = re.match(r"dev-((?:master|worker)-\d+)-", resource.name)
        gone_with = machines.get(resource.deleted_with, "")
        if node:
            assert gone_with == f"dev-{node[1]}-machine", resource.name


def test_adopted_machines_are_left_in_order(stacks: Stacks) -> None:
    """A machine that outlives its node is wiped, by the resource that was made first on it."""
    graph = Graph(stacks.settled(adopted())[1])
    for node in ("master-1", "worker-1"):
        own = graph.of_node(node, cluster="prod")
        wiping = [resource for resource in own if resource.text("delete")]
        assert [resource.name for resource in wiping] == [f"prod-{node}-preflight"]
        assert wiping[0].deleted_with == ""
        later = [r.name for r in own if r.type == COMMAND and r.name != wiping[0].name]
        for name in later:
            assert wiping[0].name in graph.before(name), f"{name} is deleted after the wipe"
