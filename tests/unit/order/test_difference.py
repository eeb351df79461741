"""What an edit runs, as data: which steps are other ones, and in which order their parts stand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stacks.order.difference import LOGIN, PATIENCE, RECREATED, SCRIPT, Edit, edit
from tests.unit.configs import adopted, aws, gcp, lab, planned
from tests.unit.explain.test_changes import recalled

VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
CONFIGS = {
    "lab": lab(),
    "load balancers": lab({**VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}}),
    "etcd apart": lab({"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}),
    "adopted": adopted(),
    "gcp": gcp(),
    "aws": aws(),
}  # fmt: skip
Config = Mapping[str, object]


def runs(before: Config | None, after: Config) -> Edit:
    return edit(recalled(dict(before)) if before else None, planned(after))


def by(found: Edit) -> dict[str, set[str]]:
    return {one.step.name: set(one.by) for one in found.differences if one.happens}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
def test_nothing_runs_where_nothing_is_another_one(config: Config) -> None:
    assert runs(config, config).differences == ()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
def test_all_that_is_new_runs_at_a_birth(config: Config) -> None:
    found = runs(None, config)
    left = {step.name for step in found.steps} - {one.step.name for one in found.differences}
    assert {name.rpartition("-")[2] for name in left} == {"snapshot", "retire"}
    assert {one.mark for one in found.differences} == {"+"}


def test_parts_stand_behind_those_that_they_wait_for() -> None:
    found = runs(lab(), lab({"cluster.endpoint": "api.example.com"})).parts()
    assert found == ("leafs", "snapshot", "control plane", "nodes", "gate")
    assert runs(None, lab()).parts() == (
        *("new machines", "members", "masters", "add-ons", "joining"),
        *("workers", "nodes", "gate"),
    )  # fmt: skip


def test_a_certificate_that_is_another_one_runs_what_shows_it() -> None:
    found = by(runs(lab(), lab({"cluster.endpoint": "api.example.com"})))
    assert "CERTIFICATES" in found["dev-master-1-master"]
    assert "APPROVER_CERTIFICATE" not in found["dev-master-1-master"]
    assert found["dev-master-1-master-keys"] >= {"PKI_TEXT_3"}
    assert "dev-master-1-etcd-keys" not in found


def test_another_generation_of_a_key_is_seen_though_no_text_is_known() -> None:
    before = lab({"controlPlane.encryptionKey": {"generation": 2, "step": "trust"}})
    found = by(runs(lab(), before))
    assert {name for name in found if name.endswith("-shared-keys")} == {
        f"dev-master-{number}-master-shared-keys" for number in (1, 2, 3)
    }


def test_another_login_runs_every_command_of_the_machine_and_no_other() -> None:
    edited = adopted({"pools.worker.hosts.0.user": "ops"})
    found = {name for name, why in by(runs(adopted(), edited)).items() if LOGIN in why}
    assert found == {"prod-worker-1-preflight", "prod-worker-1-node"}


def test_a_reboot_is_waited_for_by_what_follows_it_alone() -> None:
    reboots = {"os.packages": "2026-11", "os.reboot": "if-needed"}
    found = by(runs(lab(reboots), lab({**reboots, "os.rebootTimeoutS": 900})))
    on_nodes = {name: why for name, why in found.items() if PATIENCE in why}
    assert {name.rpartition("-")[2] for name in on_nodes} == {"keys", "etcd", "master"}
    assert {tuple(why) for why in on_nodes.values()} == {(PATIENCE,)}


def test_a_machine_that_is_made_anew_runs_everything_on_it() -> None:
    found = by(runs(lab(), lab({"nodes.worker-1.generation": 2})))
    own = {name: why for name, why in found.items() if "worker-1" in name}
    assert own.keys() == {
        "worker-1-machine",
        *(f"dev-worker-1-{what}" for what in ("preflight", "node", "join")),
    }
    assert all(RECREATED in why for why in own.values())


def test_another_script_runs_its_phase_and_what_is_ignored_stays_so() -> None:
    before = recalled(lab())
    old = {name: "00000000" for name in ("addon", "preflight", "snapshot")}
    object.__setattr__(before, "scripts", {**before.scripts, **old})
    found = by(edit(before, planned(lab())))
    assert {name for name, why in found.items() if SCRIPT in why} == {
        f"dev-addon-{name}"
        for name in ("admission-policies", "coredns", "flannel", "kube-proxy", "lost-nodes", "serving-certificates")
    }  # fmt: skip
