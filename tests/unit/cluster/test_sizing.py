"""Settings by number of nodes: chosen once, grown by an edit alone, and each the user's to say."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from stacks.cluster import inventory, sizing
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.config.network import API_SHUTDOWN_DELAY_S
from stacks.config.sizing import PATH, SIZES, Size
from stacks.config.spec import Spec
from stacks.edits import memory
from stacks.edits.memory import Memory
from stacks.explain.changes import changes
from stacks.load import load, planned
from stacks.phases import desired, gate, system_addons
from stacks.render import haproxy
from tests.unit.configs import adopted, gcp, lab, with_store

ROOT = Path(__file__).parents[3]
WIDE = {"machines.lab": {"subnet": "10.92.0.0/16"}, "cluster.podCidr": "10.128.0.0/12"}


def wide(workers: int, edits: Mapping[str, object] | None = None) -> dict[str, object]:
    """3 masters and so many workers."""
    return lab({**WIDE, "pools.worker.count": workers, **(edits or {})})


def spec(workers: int, edits: Mapping[str, object] | None = None) -> Spec:
    return planned(load(wide(workers, edits))).spec


def before_sizes(raw: Mapping[str, object]) -> Memory:
    """The memory of a cluster that a program without sizes has made."""
    kept = memory.of(plan(load(raw), size=100))
    config = kept["config"]
    assert isinstance(config, dict)
    del config["sizing"], config["network"]["dnsReplicas"]
    return memory.read(kept)


def count(said: Spec) -> int:
    return sizing.nodes(said, inventory.present(said))


def hints(wanted: Plan) -> list[str]:
    return [text for path, text in wanted.warnings if path == PATH]


def texts(of: Plan) -> dict[str, Mapping[str, str]]:
    """Everything that nodes are told, by node; "": add-ons."""
    return {
        "": system_addons.addons(of),
        **{node.name: desired.files(of, node) for node in of.nodes},
    }


@pytest.mark.parametrize(
    ("nodes", "size"),
    [(1, 100), (100, 100), (101, 300), (300, 300), (301, 1000), (1000, 1000), (5000, 1000)],
)
def test_a_size_is_the_smallest_that_fits(nodes: int, size: Size) -> None:
    assert sizing.needed(nodes) == size


def test_machines_that_are_no_nodes_do_not_count() -> None:
    edits = {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}
    assert count(load(lab(edits))) == 5
    lost = {"nodes": {"worker-1": {"state": "lost"}, "worker-2": {"state": "maintenance"}}}
    assert count(load(lab(lost))) == 4


@pytest.mark.parametrize(
    "raw", [lab(), adopted(), gcp(), wide(97)], ids=["lab", "adopted", "gcp", "100 nodes"]
)
def test_up_to_100_nodes_no_setting_is_another_than_the_models(raw: Mapping[str, object]) -> None:
    said = load(raw)
    settled = sizing.settled(said, count(said))
    assert settled.sizing.nodes == 100
    assert settled.model_copy(update={"sizing": said.sizing}) == said


def test_a_bigger_size_takes_nothing_back() -> None:
    found = [spec(2, {"sizing.nodes": size}) for size in SIZES]
    for smaller, bigger in itertools.pairwise(found):
        assert bigger.etcd.quota_backend_gib >= smaller.etcd.quota_backend_gib
        assert bigger.network.dns_replicas > smaller.network.dns_replicas
        assert bigger.load_balancing.check_interval_ms > smaller.load_balancing.check_interval_ms
        for name in ("api_server_args", "controller_manager_args", "scheduler_args"):
            small, big = (getattr(of.control_plane, name) for of in (smaller, bigger))
            assert all(float(big[flag]) >= float(value) for flag, value in small.items())


@pytest.mark.parametrize("size", SIZES)
def test_checks_ask_each_api_server_at_most_200_times_a_second(size: Size) -> None:
    wanted = spec(2, {"sizing.nodes": size}).load_balancing
    assert size * 1000 / wanted.check_interval_ms <= 200
    assert wanted.detection_ms < 1000 * API_SHUTDOWN_DELAY_S


@pytest.mark.parametrize("minor", ["1.35", "1.36"])
@pytest.mark.parametrize("size", SIZES)
def test_every_kubernetes_knows_the_flags(size: Size, minor: str) -> None:
    known = json.loads((ROOT / "artifacts" / "flags" / f"{minor}.json").read_text())
    wanted = spec(2, {"sizing.nodes": size}).control_plane
    for program, flags in (
        ("kube-apiserver", wanted.api_server_args),
        ("kube-controller-manager", wanted.controller_manager_args),
        ("kube-scheduler", wanted.scheduler_args),
    ):
        assert set(flags) <= set(known["flags"][program] if "flags" in known else known[program])


@pytest.mark.parametrize("size", SIZES)
def test_what_the_config_says_counts_at_every_size(size: Size) -> None:
    said = {
        "sizing.nodes": size,
        "etcd.quotaBackendGib": 1,
        "loadBalancing.checkIntervalMs": 2000,
        "network.dnsReplicas": 2,
        "controlPlane.apiServerArgs": {"goaway-chance": "0", "v": "3"},
        "controlPlane.controllerManagerArgs": {"kube-api-qps": "21"},
        "controlPlane.schedulerArgs": {"kube-api-burst": "51"},
    }
    found = spec(2, said)
    assert found.etcd.quota_backend_gib == 1
    assert found.load_balancing.check_interval_ms == 2000
    assert found.network.dns_replicas == 2
    assert {"goaway-chance": "0", "v": "3"}.items() <= found.control_plane.api_server_args.items()
    assert found.control_plane.controller_manager_args["kube-api-qps"] == "21"
    assert found.control_plane.scheduler_args["kube-api-burst"] == "51"


def test_every_size_is_a_config_that_is_accepted_beside_a_store_of_snapshots() -> None:
    for size in SIZES:
        load(lab({"sizing.nodes": size, **with_store()}))
        remade = spec(2, {"sizing.nodes": size, **with_store()}).model_dump(
            mode="json", by_alias=True
        )
        assert Spec.model_validate(remade).sizing.nodes == size


def test_a_cluster_that_exists_gets_not_another_byte_for_one_node_more() -> None:
    found = before_sizes(wide(97))
    grown = planned(load(wide(98)), found)
    assert grown.spec.sizing.nodes == 100
    assert {node.name for node in changes(found, grown).nodes} == {"worker-98"}
    assert found.plan is not None
    was, now = texts(found.plan), texts(grown)
    assert all(now[name] == was[name] for name in was if name != "")
    assert now[""]["coredns"] == was[""]["coredns"]


def test_it_is_told_that_it_has_outgrown_its_size_until_somebody_chooses() -> None:
    found = before_sizes(wide(97))
    [hint] = hints(planned(load(wide(98)), found))
    assert "settings of 100 nodes and gets 101" in hint
    assert "Set it to 300" in hint
    assert hints(planned(load(wide(97)), found)) == []
    for size in (100, 300):
        assert hints(planned(load(wide(98, {"sizing.nodes": size})), found)) == []
    assert hints(planned(load(wide(98)))) == []  # a new one has what it needs


def test_a_size_is_remembered_when_the_config_says_it_no_more() -> None:
    for raw in (wide(200), wide(2, {"sizing.nodes": 300})):
        kept = memory.read(memory.of(planned(load(raw))))
        again = planned(load(wide(2)), kept)
        assert sizing.of(kept.plan) == 300
        assert again.spec.sizing.nodes == 300
        assert again.spec.control_plane.api_server_args["goaway-chance"] == "0.001"
        assert hints(again) == []


def test_only_bigger_sizes_have_checks_that_real_connections_bring_forward() -> None:
    for size in SIZES:
        made = planned(load(lab({"sizing.nodes": size})))
        text = haproxy.local_api(made, made.workers[0])
        assert ("observe layer4" in text) == (size > 100)


def test_every_node_is_tried_by_the_gate_at_any_size() -> None:
    found = [gate.of_gate(planned(load(lab({"sizing.nodes": size})))) for size in SIZES]
    assert [one["REACH"] for one in found] == ["5", "3", "1"]
    assert {one["NODES"] for one in found} == {"5"}


def test_etcds_timings_follow_the_network_and_not_the_number_of_nodes() -> None:
    found = {
        (of.heartbeat_interval_ms, of.election_timeout_ms, of.snapshot_count)
        for of in (spec(2, {"sizing.nodes": size}).etcd for size in SIZES)
    }
    assert found == {(100, 1000, 10000)}


def test_a_plan_may_be_settled_again() -> None:
    made = planned(load(wide(200)))
    assert sizing.settled(made.spec, 5, 100) == made.spec
    assert dataclasses.replace(made, spec=sizing.settled(made.spec, 5)) == made
