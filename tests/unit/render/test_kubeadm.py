"""kubeadm's config, and the kubelet's that is part of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stacks.cluster.plan import Plan
from stacks.render import kubeadm
from tests.unit.certificate import certificate
from tests.unit.render.examples import adopted, assert_snapshot, lab, program
from tests.unit.render.kubeadm_documents import arguments, at, documents, init_of
from tests.unit.render.test_kubelet import KUBELET


@pytest.mark.parametrize(("name", "plan"), [("lab", lab()), ("adopted", adopted())])
def test_snapshots(name: str, plan: Plan) -> None:
    worker = plan.workers[0]
    assert_snapshot(f"kubeadm-init-{name}.yaml", kubeadm.init(plan, plan.masters[0]))
    assert_snapshot(f"kubeadm-join-{name}.yaml", kubeadm.join_worker(plan, worker))


def test_masters_differ_in_name_and_address_alone() -> None:
    plan = lab()
    texts = {
        kubeadm.init(plan, node).replace(node.address, "ADDRESS").replace(node.name, "NAME")
        for node in plan.masters
    }
    assert len(texts) == 1


def test_growing_changes_no_master_that_is_there() -> None:
    one, three = lab(1), lab(3)
    assert kubeadm.init(one, one.masters[0]) == kubeadm.init(three, three.masters[0])


def test_the_cluster_is_reached_by_the_nodes_own_door() -> None:
    assert at(init_of(lab())["ClusterConfiguration"], "controlPlaneEndpoint") == "127.0.0.1:3446"


def test_masters_with_a_member_use_only_it() -> None:
    stacked = init_of(lab())["ClusterConfiguration"]
    assert at(stacked, "etcd", "external", "endpoints") == ["https://127.0.0.1:2379"]
    separate = init_of(adopted())["ClusterConfiguration"]
    assert at(separate, "etcd", "external", "endpoints") == [
        f"https://192.0.2.{last}:2379" for last in (11, 12, 13)
    ]


def test_add_ons_are_not_kubeadms() -> None:
    cluster = init_of(lab())["ClusterConfiguration"]
    assert at(cluster, "dns", "disabled") is True
    assert at(cluster, "proxy", "disabled") is True


def test_names_by_which_the_api_is_called_are_in_its_certificate() -> None:
    names = at(init_of(adopted(controlPlane={"certSans": ["10.1.2.3"]}))["ClusterConfiguration"],
                "apiServer", "certSANs")  # fmt: skip
    assert names == ["10.1.2.3", "127.0.0.1", "api.prod.example.com", "localhost"]


def test_masters_are_for_masters_unless_they_are_workers_too() -> None:
    taints = at(init_of(lab())["InitConfiguration"], "nodeRegistration", "taints")
    assert taints == [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    both = {"all": {"roles": ["etcd", "master", "worker"], "count": 1}}
    mixed = init_of(lab(pools=both), "all-1")["InitConfiguration"]
    # An empty list, not none: without the key kubeadm sets its own taint.
    assert at(mixed, "nodeRegistration", "taints") == []


def test_a_worker_joins_with_its_labels_and_taints() -> None:
    plan = adopted()
    join = documents(kubeadm.join_worker(plan, plan.workers[0]))["JoinConfiguration"]
    assert at(join, "discovery") == {"file": {"kubeConfigPath": "/etc/kubernetes/discovery.conf"}}
    assert at(join, "nodeRegistration", "taints") == [
        {"key": "example.com/gpu", "effect": "NoSchedule"}
    ]
    flags = arguments(at(join, "nodeRegistration", "kubeletExtraArgs"))
    assert flags == {
        "hostname-override": "worker-1",
        "node-ip": "192.0.2.31",
        "node-labels": "example.com/disk=ssd,topology.kubernetes.io/zone=b",
    }


def test_no_token_is_in_either_config() -> None:
    for text in (_text(lab()), _text(adopted())):
        without_flags = text.replace("service-account-extend-token-expiration", "")
        assert "token" not in without_flags.lower()


def _text(plan: Plan) -> str:
    return kubeadm.init(plan, plan.masters[0]) + kubeadm.join_worker(plan, plan.workers[0])


def test_a_label_or_taint_restarts_no_master() -> None:
    marked = {
        "roles": ["etcd", "master"],
        "count": 3,
        "labels": {"example.com/rack": "a"},
        "taints": [{"key": "example.com/x", "effect": "NoSchedule"}],
    }
    plan = lab(pools={"master": marked, "worker": {"roles": ["worker"], "count": 2}})
    plain = lab()
    assert kubeadm.init(plan, plan.masters[0]) == kubeadm.init(plain, plain.masters[0])


def _everything() -> Plan:
    """Every setting of kubeadm.yaml that a config can have, none as it is by itself."""
    oidc = {"issuerUrl": "https://id.example.com", "clientId": "kube", "ca": certificate()}
    wanted = {key: value for key, value in KUBELET.items() if key != "featureGates"}
    return adopted(
        network={"nodeCidrMask": 23},
        controlPlane={
            "featureGates": {"AllAlpha": False},
            "oidc": {**oidc, "requiredClaims": {"a": "b", "c": "d"}},
            "podSecurity": {"enforce": "baseline"},
        },
        kubelet={**wanted, "maxPods": 500, "shutdownGracePeriodS": 0},
    )


@pytest.mark.parametrize(
    "plan",
    [lab(), lab(1, 0), adopted(), _everything()],
    ids=["lab", "single", "adopted", "everything"],
)
def test_kubeadm_accepts_it(plan: Plan, tmp_path: Path) -> None:
    tool = program("kubeadm", tmp_path)
    discovery = tmp_path / "discovery.conf"
    discovery.touch()
    texts = [kubeadm.init(plan, plan.masters[0])]
    texts += [kubeadm.join_worker(plan, node) for node in plan.workers[:1]]
    for text in texts:
        path = tmp_path / "kubeadm.yaml"
        path.write_text(text.replace("/etc/kubernetes/discovery.conf", str(discovery)))
        done = subprocess.run(
            [tool, "config", "validate", "--config", path],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert "unknown field" not in done.stderr
        assert not done.stderr.strip(), done.stderr
