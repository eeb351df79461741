"""Clusters in a program of somebody else's: two in one stack, each with a memory of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pulumi
import pytest

from tests.plan.recording import Engine
from tests.unit.configs import adopted, gcp
from toolchain.values import plain

OUTER = """
import pulumi
from components.kubernetes_cluster import KubernetesCluster

config = pulumi.Config("kube-ha")
for name, sections in config.require_object("clusters").items():
    made = KubernetesCluster(name, sections)
    pulumi.export(f"{name}Url", made.endpoint)
    pulumi.export(f"{name}Kubeconfig", made.kubeconfig)
"""


def config(**edits: object) -> dict[str, object]:
    """Two clusters; `edits` are of the first."""
    second = gcp({"cluster.name": "other"})
    return {"clusters": {"prod": adopted(edits), "other": second}}


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    program = tmp_path / "__main__.py"
    program.write_text(OUTER)
    return Engine(tmp_path, program=program)


def test_two_clusters_stand_in_one_stack_and_settle(engine: Engine) -> None:
    run = engine.up(config())
    roots = [one for one in run.resources.values() if one.type.endswith(":KubernetesCluster")]
    assert [one.name for one in roots] == ["prod", "other"]
    kinds = {"Cluster", "Pki", "Gcp", "Protection"}
    below = [urn for urn, one in run.resources.items() if one.type.rpartition(":")[2] in kinds]
    assert len(below) == 7  # machines that are given stand on nothing
    assert all("kube-ha:index:KubernetesCluster$" in urn for urn in below)
    assert engine.outputs["prodUrl"] == "https://192.0.2.11:6443"
    assert "server: " in str(plain(engine.outputs["prodKubeconfig"]))
    for name in ("prod", "other"):
        memory = json.loads(str(plain(engine.outputs[f"{name}Applied"])))
        assert memory["config"]["cluster"]["name"] == name
    assert engine.up(config()).changes == []


def test_each_is_checked_against_its_own_memory(engine: Engine) -> None:
    engine.up(config())
    with pytest.raises(pulumi.RunError, match="network"):
        engine.up(config(**{"network.podSubnet": "10.99.0.0/16"}))
    changes = engine.up(config(**{"pools.worker.labels": {"a": "b"}})).changes
    assert changes
    assert not [one for one in changes if "other" in one.name]


def test_all_problems_are_told_at_once_and_nothing_is_registered(engine: Engine) -> None:
    with pytest.raises(pulumi.RunError) as caught:
        engine.up(config(**{"cluster.name": "B A D", "etcd.backup.keep": -1}))
    assert "cluster.name" in str(caught.value)
    assert "etcd.backup.keep" in str(caught.value)
    assert "prod" in str(caught.value)
    assert engine.resources == {}


def test_the_lab_is_of_the_checkout(engine: Engine) -> None:
    clusters = {"dev": {**adopted(), "machines": {"provider": "lab"}}}
    clusters["dev"]["pools"] = {"all": {"roles": ["etcd", "master", "worker"], "count": 1}}
    with pytest.raises(pulumi.RunError, match="machines of the lab need"):
        engine.up({"clusters": clusters})
