"""The kubelet's configuration, its unit, and the labels it may set."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from stacks.render import kubelet
from tests.unit.render.examples import adopted, lab
from tests.unit.render.kubeadm_documents import at, init_of


@pytest.mark.parametrize(
    ("key", "may"),
    [
        ("disk", True),
        ("example.com/disk", True),
        ("topology.kubernetes.io/zone", True),
        ("node.kubernetes.io/pool", True),
        ("my.node.kubernetes.io/pool", True),
        ("kubelet.kubernetes.io/pool", True),
        ("myk8s.io/x", True),
        ("node-role.kubernetes.io/edge", False),
        ("node-restriction.kubernetes.io/tenant", False),
        ("notnode.kubernetes.io/x", False),
        ("k8s.io/x", False),
    ],
)
def test_labels_that_a_kubelet_may_not_set_are_left_to_an_administrator(
    key: str, *, may: bool
) -> None:
    """With a label that is not allowed, the kubelet would not even start."""
    node = dataclasses.replace(lab().node("worker-1"), labels=((key, "x"),))
    assert kubelet.own_labels(node) == (((key, "x"),) if may else ())


KUBELET = {
    "featureGates": {"ContextualLogging": False, "AllBeta": True},
    "evictionHard": {"nodefs.available": "5%", "memory.available": "250Mi"},
    "systemReserved": {"memory": "512Mi", "cpu": "500m"},
    "kubeReserved": {"ephemeral-storage": "1Gi"},
    "imageGcHighPercent": 70,
    "imageGcLowPercent": 60,
    "containerLogMaxSizeMib": 50,
    "containerLogMaxFiles": 3,
    "podPidsLimit": 4096,
}


def test_settings_of_the_kubelet_are_in_its_configuration() -> None:
    assert kubelet.configuration(lab(kubelet=KUBELET)) == {
        **kubelet.configuration(lab()),
        "featureGates": {"AllBeta": True, "ContextualLogging": False},
        "evictionHard": {
            "imagefs.available": "2Gi",
            "memory.available": "250Mi",
            "nodefs.available": "5%",
        },
        "mergeDefaultEvictionSettings": True,
        "systemReserved": {"cpu": "500m", "memory": "512Mi"},
        "kubeReserved": {"ephemeral-storage": "1Gi"},
        "imageGCHighThresholdPercent": 70,
        "imageGCLowThresholdPercent": 60,
        "containerLogMaxSize": "50Mi",
        "containerLogMaxFiles": 3,
        "podPidsLimit": 4096,
    }


def test_only_in_a_lab_is_a_full_disk_counted_in_bytes() -> None:
    disk = {"imagefs.available": "2Gi", "nodefs.available": "2Gi"}
    assert kubelet.configuration(lab())["evictionHard"] == disk
    assert "evictionHard" not in kubelet.configuration(adopted())


@pytest.mark.parametrize(
    ("wanted", "periods"),
    [
        ({}, ("60s", "20s")),
        ({"shutdownGracePeriodS": 300}, ("300s", "20s")),
        ({"shutdownGracePeriodS": 10}, ("10s", "10s")),
        ({"shutdownGracePeriodS": 0}, ("0s", "0s")),
        ({"shutdownGracePeriodCriticalPodsS": 30}, ("60s", "30s")),
    ],
)
def test_pods_have_their_time_when_a_machine_is_shut_down(
    wanted: dict[str, int], periods: tuple[str, str]
) -> None:
    made = kubelet.configuration(adopted(kubelet=wanted))
    assert (made["shutdownGracePeriod"], made["shutdownGracePeriodCriticalPods"]) == periods


def test_only_containers_relax_the_kubelet() -> None:
    relaxed = {"failCgroupV1", "failSwapOn", "oomScoreAdj"}
    assert relaxed <= kubelet.configuration(lab()).keys()
    assert not relaxed & kubelet.configuration(adopted()).keys()
    assert "shutdownGracePeriod" in kubelet.configuration(adopted())
    registration = at(init_of(adopted())["InitConfiguration"], "nodeRegistration")
    assert isinstance(registration, Mapping)
    assert "ignorePreflightErrors" not in registration


def test_kubelet_starts_as_kubeadm_expects() -> None:
    """Names are those of kubeadm's own packages: kubeadm writes and reads these files."""
    drop_in = kubelet.drop_in(lab())
    for text in (
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        "--config=/var/lib/kubelet/config.yaml",
        "EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env",
        "ExecStart=\nExecStart=/usr/local/bin/kubelet ",
        "$KUBELET_KUBEADM_ARGS",
    ):
        assert text in drop_in


def test_a_kubelet_that_hangs_is_restarted_where_it_is_wanted() -> None:
    assert "WatchdogSec" not in kubelet.drop_in(lab())
    watched = kubelet.drop_in(lab(kubelet={"watchdogS": 60}))
    assert watched.startswith("[Service]\nWatchdogSec=60\n")
