"""Spot machines: which pools may be of them, what their nodes are known by, how they end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import yaml

from stacks.cluster.plan import Plan
from stacks.edits import memory, silence, transition
from stacks.edits.memory import Memory
from stacks.edits.transition import TransitionError
from stacks.phases import desired
from stacks.phases.node import of_node
from stacks.render import kubelet
from tests.unit.configs import adopted, aws, gcp, lab, planned, problems

Config = Callable[[Mapping[str, object] | None], dict[str, object]]
SPOT = {"pools.worker.spot": True}
ZONES = {"gcp": "europe-west3-a", "aws": "eu-central-1a"}


def known(plan: Plan) -> Memory:
    found = memory.read(memory.of(plan))
    assert found is not None
    return found


@pytest.mark.parametrize("config", [gcp, aws])
def test_its_nodes_carry_a_label_and_a_taint_that_keeps_nobody_waiting(config: Config) -> None:
    plan = planned(config({**SPOT, "pools.worker.labels": {"team": "a"}}))
    worker, master = plan.workers[0], plan.masters[0]
    assert dict(worker.labels)["kube-ha.io/spot"] == "true"
    assert dict(worker.labels)["team"] == "a"
    assert [(t.key, t.value, t.effect) for t in worker.taints] == [
        ("kube-ha.io/spot", "true", "PreferNoSchedule")
    ]
    assert "kube-ha.io/spot" not in dict(master.labels)
    # Its kubelet says the label itself from the first moment on.
    assert ("kube-ha.io/spot", "true") in kubelet.own_labels(worker)
    own = {"key": "kube-ha.io/spot", "value": "true", "effect": "NoSchedule"}
    strict = planned(config({**SPOT, "pools.worker.taints": [own]}))
    assert [t.effect for t in strict.workers[0].taints] == ["NoSchedule", "PreferNoSchedule"]


def test_a_config_that_does_not_say_it_stays_what_it_was() -> None:
    assert "spot" not in planned(gcp()).spec.model_dump_json(by_alias=True)
    assert planned(gcp({"pools.worker.spot": False})).spec == planned(gcp()).spec


@pytest.mark.parametrize(
    ("config", "path", "text"),
    [
        (gcp({"pools.master.spot": True}), "pools.master.spot", "for pools with the role worker alone"),
        (aws({"pools.worker.spot": True, "pools.worker.roles": ["master", "worker"]}), "pools.worker.spot", "for pools with the role worker alone"),
        (gcp({"pools.etcd": {"roles": ["etcd"], "count": 3, "zones": [f"europe-west3-{z}" for z in "abc"], "spot": True}, "pools.master.roles": ["master"]}), "pools.etcd.spot", "with etcd's data"),
        (lab(SPOT), "pools.worker.spot", "is for providers gcp, aws; leave"),
        (adopted(SPOT), "pools.worker.spot", "is for providers gcp, aws; leave"),
        (gcp({"pools.worker.labels": {"kube-ha.io/spot": "no"}}), "pools.worker.labels", "is given by spot of a pool"),
        (gcp({"nodes": {"worker-1": {"labels": {"kube-ha.io/spot": "no"}}}}), "nodes.worker-1.labels", "is given by spot of a pool"),
    ],
)  # fmt: skip
def test_where_none_can_be_it_is_refused(config: dict[str, object], path: str, text: str) -> None:
    found = dict(problems(config))
    assert text in found[path]


def test_a_cluster_whose_workers_are_all_of_them_is_warned() -> None:
    said = dict(planned(gcp(SPOT)).warnings)
    assert "all 2 workers are spot machines" in said["pools"]
    steady = {"roles": ["worker"], "count": 1, "zones": ["europe-west3-a"], "addressOffset": 200}
    assert "pools" not in dict(planned(gcp({**SPOT, "pools.steady": steady})).warnings)


@pytest.mark.parametrize("config", [gcp, aws])
def test_a_machine_is_one_or_not_for_life(config: Config) -> None:
    usual, spot = planned(config({})), planned(config(SPOT))
    for was, now in ((usual, spot), (spot, usual)):
        with pytest.raises(TransitionError) as refused:
            transition.check(known(was), now)
        [(path, text)] = refused.value.problems
        assert path == "pools.worker.spot"
        assert "cannot change for worker-1, worker-2" in text
    one = {**SPOT, "nodes": {"worker-1": {"generation": 2}}}
    with pytest.raises(TransitionError) as refused:
        transition.check(known(usual), planned(config(one)))
    assert "cannot change for worker-2" in refused.value.problems[0][1]
    both = {f"worker-{number}": {"generation": 2} for number in (1, 2)}
    transition.check(known(usual), planned(config({**SPOT, "nodes": both})))


def test_at_google_kubelets_end_pods_within_the_time_that_the_machine_has() -> None:
    plan = planned(gcp(SPOT))
    values = of_node(plan, plan.workers[0])
    text = desired.files(plan, plan.workers[0])["/etc/kube-ha/kubelet.d/50-spot.conf"]
    said = yaml.safe_load(text)
    assert said["kind"] == "KubeletConfiguration"
    assert (said["shutdownGracePeriod"], said["shutdownGracePeriodCriticalPods"]) == ("25s", "10s")
    assert '--config-dir=/etc/kube-ha/kubelet.d"' in values["KUBELET_DROPIN"]
    assert "SPOT_NOTICE" not in values
    usual = of_node(plan, plan.masters[0])
    assert "KUBELET_OWN" not in usual
    assert "--config-dir" not in usual["KUBELET_DROPIN"]
    shorter = planned(gcp({**SPOT, "kubelet.shutdownGracePeriodS": 15}))
    assert (
        yaml.safe_load(of_node(shorter, shorter.workers[0])["KUBELET_OWN"])["shutdownGracePeriod"]
        == "15s"
    )
    none = planned(gcp({**SPOT, "kubelet.shutdownGracePeriodS": 0}))
    assert "KUBELET_OWN" not in of_node(none, none.workers[0])


def test_on_aws_a_machine_looks_for_the_notice() -> None:
    plan = planned(aws(SPOT))
    values = of_node(plan, plan.workers[0])
    assert values["SPOT_NOTICE"] == "1"
    assert "KUBELET_OWN" not in values
    assert "SPOT_NOTICE" not in of_node(plan, plan.masters[0])
    assert "SPOT_NOTICE" not in of_node(planned(aws()), planned(aws()).workers[0])


def test_behind_a_bastion_those_that_may_have_gone_are_asked_and_masters_beside_them() -> None:
    ways = {name: ("10.20.0.9", 22) for name in ("master-1", "master-2", "worker-1", "worker-2")}
    plan = planned(gcp(SPOT))
    asked = silence.asked(known(plan), plan)
    assert {*silence.behind_bastion(plan, asked, ways)} == {*ways}
    assert silence.behind_bastion(plan, asked, {}) == {}
    usual = planned(gcp())
    assert silence.behind_bastion(usual, silence.asked(known(usual), usual), ways) == {}


@pytest.mark.parametrize("config", [gcp, aws])
def test_one_that_the_cloud_took_away_is_left_out_within_the_budget_and_is_no_error(
    config: Config,
) -> None:
    plan = planned(config({**SPOT, "kubelet.maxPods": 60}))
    before = known(planned(config(SPOT)))
    seen = silence.seen(before, plan, {"worker-2"}, {"worker-1", "worker-2"})
    assert [node.name for node in seen.absent] == ["worker-2"]
    assert "rollout.absentBudget (1) allows" in dict(seen.warnings)["nodes.worker-2.state"]
    transition.check(before, seen)
