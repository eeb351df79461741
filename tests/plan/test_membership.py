"""Which resources an edit of node states changes, on which machine they run, and in which order."""

from __future__ import annotations

from collections.abc import Mapping

from tests.plan.graph import Graph
from tests.plan.registration import Run
from tests.plan.settled import Stacks, assert_exactly
from tests.unit.configs import adopted, lab


def state(name: str, said: str) -> dict[str, object]:
    return {f"nodes/{name}": {"state": said}}


def rebuilt(name: str, generation: int = 2) -> dict[str, object]:
    return {f"nodes/{name}": {"generation": generation}}


def edit(stacks: Stacks, before: Mapping[str, object], after: Mapping[str, object]) -> Run:
    """The run of an edit; one more changes nothing."""
    engine, _ = stacks.settled(before)
    run = engine.up(after)
    assert_exactly(engine.up(after), [])
    return run


def waits(run: Run, later: str, earlier: str) -> bool:
    return earlier in Graph(run).before(later)


def names(run: Run) -> set[str]:
    return {str(change) for change in run.changes}


def test_a_lost_machine_is_never_dialled(stacks: Stacks) -> None:
    run = edit(stacks, adopted(), adopted(state("worker-2", "lost")))
    assert {"~ prod-retire", "~ prod-nodes", "~ prod-gate"} < names(run)
    left = [change for change in run.changes if change.mark == "-"]
    assert {change.name for change in left} == {
        "prod-worker-2-scripts",
        "prod-worker-2-node",
        "prod-worker-2-join",
        "prod-wave-1",  # one worker makes one wave; taking its gate away runs nothing
    }
    # What they leave behind runs nothing; the one that would is kept, and retained when it goes.
    assert [c.name for c in left if c.before is not None and c.before.text("delete")] == []
    kept = run.named("prod-worker-2-preflight")
    assert kept.retained
    assert {"connection", "create", "delete", "stdin"} <= set(kept.ignores)
    assert not [c for c in run.changes if c.mark != "-" and "prod-worker-2" in c.name]


def test_a_machine_lost_before_it_had_joined_gets_nothing_either(stacks: Stacks) -> None:
    engine, _ = stacks.settled(adopted())
    more = adopted()
    pools = more["pools"]
    assert isinstance(pools, dict)
    pools["worker"]["hosts"].append(
        {**pools["worker"]["hosts"][0], "name": "worker-9", "address": "192.0.2.109"}
    )
    del pools["worker"]["hosts"][2]["hostKey"]
    more["machines"]["ssh"]["insecureIgnoreHostKey"] = True  # type: ignore[index]
    run = engine.up({**more, "nodes": {"worker-9": {"state": "lost"}}})
    made = run.named("prod-worker-9-preflight")
    assert made.text("create") == "true"
    assert made.value("connection") == run.named("prod-master-1-preflight").value("connection")


def test_what_is_dead_or_made_anew_goes_before_everything_else(stacks: Stacks) -> None:
    run = edit(stacks, lab(), lab(state("master-2", "lost") | rebuilt("worker-1")))
    stdin = run.named("dev-retire").text("stdin")
    assert "INCARNATIONS='master-2=1:lost worker-1=2:active'" in stdin
    assert "GOING_MEMBERS=master-2=10.92.0.12" in stdin
    for name in ("dev-worker-1-machine", "dev-master-1-node", "dev-master-3-etcd"):
        assert waits(run, name, "dev-retire"), name
    assert run.named("dev-worker-1-machine").value("environment") == {
        "ADDRESS": "10.92.0.101",
        "GENERATION": "2",
        "LAB": "dev",
        "MACHINE": "worker-1",
    }
    again = {c.name for c in run.changes if c.name.startswith("dev-worker-1-")}
    assert again == {
        f"dev-worker-1-{part}" for part in ["machine", "scripts", "preflight", "node", "join"]
    }


def test_those_that_stay_do_it(stacks: Stacks) -> None:
    """The first master recreated: another one takes it out."""
    run = edit(stacks, lab(), lab(rebuilt("master-1")))
    assert "NODE=master-2" in run.named("dev-retire").text("stdin")
    assert "NODE=master-1" in run.named("dev-nodes").text("stdin")


def test_a_decommissioned_machine_keeps_what_it_leaves_by(stacks: Stacks) -> None:
    run = edit(stacks, adopted(), adopted(state("worker-2", "decommissioned")))
    assert {
        "! prod-worker-2-scripts",
        "+ prod-worker-2-decommission",
        "- prod-worker-2-node",
        "- prod-worker-2-join",
    } < names(run)
    assert "- prod-worker-2-preflight" not in names(run)
    assert waits(run, "prod-worker-2-decommission", "prod-nodes")
    assert waits(run, "prod-gate", "prod-worker-2-decommission")
    engine, _ = stacks.settled(adopted(state("worker-2", "decommissioned")))
    back = engine.up(adopted())
    assert {
        "- prod-worker-2-decommission",
        "+ prod-worker-2-node",
        "+ prod-worker-2-join",
        "~ prod-join-token",
    } < names(back)


def test_maintenance_touches_no_machine(stacks: Stacks) -> None:
    run = edit(stacks, lab(), lab(state("worker-1", "maintenance")))
    assert names(run) == {"! dev-acceptance-attempt", "~ dev-nodes", "~ dev-gate"}
    assert "MAINTENANCE='worker-[1-1]'" in run.named("dev-nodes").text("stdin")


SEPARATE = {
    "pools.etcd": {"roles": ["etcd"], "count": 3},
    "pools.master.roles": ["master"],
}


def test_etcd_moves_to_machines_of_its_own(stacks: Stacks) -> None:
    run = edit(stacks, lab(), lab(SEPARATE))
    # The first new member finds the cluster by those that will leave.
    assert "master-1=10.92.0.11" in run.named("dev-etcd-1-etcd-found").text("stdin")
    assert "BOOTSTRAP=0" in run.named("dev-etcd-1-etcd-found").text("stdin")
    assert "master-1=" not in run.named("dev-etcd-1-etcd").text("stdin")
    order = ["dev-etcd-1-etcd", "dev-etcd-3-etcd", "dev-master-1-master", "dev-master-3-master"]
    for earlier, later in zip(order, [*order[1:], "dev-nodes"], strict=True):
        assert waits(run, later, earlier), (later, earlier)
    assert {f"+ dev-master-{number}-etcd-absent" for number in (1, 2, 3)} < names(run)
    assert waits(run, "dev-master-1-etcd-absent", "dev-nodes")


def test_etcd_moves_back_to_the_masters(stacks: Stacks) -> None:
    run = edit(stacks, lab(SEPARATE), lab())
    assert "etcd-1=10.92.0.51" in run.named("dev-master-1-etcd-found").text("stdin")
    assert waits(run, "dev-master-1-master", "dev-master-1-etcd")
    assert waits(run, "dev-nodes", "dev-master-3-master")
    assert "ETCD_ENDPOINTS=https://127.0.0.1:2379" in run.named("dev-nodes").text("stdin")
    assert "- dev-etcd-1-machine" in names(run)


def test_the_token_is_made_before_the_list_of_nodes_waits_for_who_joins_by_it(
    stacks: Stacks,
) -> None:
    """Both run on one master, where only one phase runs at a time."""
    run = edit(stacks, lab(), lab({"pools.worker.count": 3}))
    assert waits(run, "dev-nodes", "dev-join-token")


def test_a_machine_that_leaves_is_wiped_or_kept_as_the_config_says(stacks: Stacks) -> None:
    for said, command in (("wipe", "leave"), ("keep", "leave keep")):
        _, run = stacks.settled(adopted({"machines.onRelease": said}))
        deletes = {
            resource.text("delete").rpartition("run.sh ")[2]
            for resource in run.commands
            if resource.name.endswith("-preflight")
        }
        assert deletes == {command}
