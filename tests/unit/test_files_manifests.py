"""Manifests of flannel, kube-proxy, CoreDNS and the acceptance check."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml

from stacks.files.acceptance import acceptance
from stacks.files.coredns import coredns
from stacks.files.flannel import flannel
from stacks.files.kube_proxy import kube_proxy
from stacks.plan import Plan
from tests.unit.files_examples import adopted, assert_snapshot, lab

Yaml: TypeAlias = "dict[str, Yaml] | list[Yaml] | str | int | bool | None"
Renderer = Callable[[Plan], str]
ALL = {"flannel": flannel, "coredns": coredns, "kube-proxy": kube_proxy, "acceptance": acceptance}
each_manifest = pytest.mark.parametrize("render", ALL.values(), ids=ALL.keys())


def _one(text: str, kind: str) -> dict[str, Yaml]:
    found: list[dict[str, Yaml]] = [
        each for each in yaml.safe_load_all(text) if each["kind"] == kind
    ]
    assert len(found) == 1, kind
    return found[0]


def _at(value: Yaml, *path: str | int) -> Yaml:
    for key in path:
        if isinstance(key, int):
            assert isinstance(value, list), f"{key} of {value!r}"
            value = value[key]
        else:
            assert isinstance(value, dict), f"{key} of {value!r}"
            value = value[key]
    return value


def _pod(text: str, kind: str = "DaemonSet") -> Yaml:
    return _at(_one(text, kind), "spec", "template", "spec")


def _data(text: str, name: str) -> str:
    content = _at(_one(text, "ConfigMap"), "data", name)
    assert isinstance(content, str)
    return content


@pytest.mark.parametrize("name", ["flannel", "coredns", "kube-proxy"])
def test_snapshots(name: str) -> None:
    assert_snapshot(f"{name}.yaml", ALL[name](lab()))


@each_manifest
def test_sizes_fit_into_one_command(render: Renderer) -> None:
    limit = 2500 if render is acceptance else 6000
    assert len(render(lab())) <= limit


@each_manifest
def test_growing_by_a_worker_changes_nothing(render: Renderer) -> None:
    assert render(lab(3, 2)) == render(lab(3, 3))


@each_manifest
def test_every_object_but_cluster_wide_ones_names_its_namespace(render: Renderer) -> None:
    wide = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
    for each in yaml.safe_load_all(render(lab())):
        assert ("namespace" in each["metadata"]) == (each["kind"] not in wide), each["kind"]


@pytest.mark.parametrize("render", [flannel, kube_proxy, acceptance])
def test_pods_of_every_node_tolerate_everything_and_avoid_fake_nodes(render: Renderer) -> None:
    pod = _pod(render(lab()))
    assert _at(pod, "tolerations") == [{"operator": "Exists"}]
    assert "kwok" in json.dumps(_at(pod, "affinity"))


def test_pods_restart_when_their_config_changes() -> None:
    path = ("spec", "template", "metadata", "annotations", "kube-ha/config")
    plain = _at(_one(kube_proxy(lab()), "DaemonSet"), *path)
    other = _at(_one(kube_proxy(lab(network={"proxyMode": "iptables"})), "DaemonSet"), *path)
    assert plain != other


def test_what_makes_the_service_network_does_not_need_it() -> None:
    environment = _at(_pod(flannel(lab())), "containers", 0, "env")
    assert isinstance(environment, list)
    values = {_at(each, "name"): each for each in environment}
    assert _at(values["KUBERNETES_SERVICE_HOST"], "value") == "127.0.0.1"
    assert _at(values["KUBERNETES_SERVICE_PORT"], "value") == "3446"
    assert "https://127.0.0.1:3446" in _data(kube_proxy(lab()), "kubeconfig.conf")


@pytest.mark.parametrize(
    ("network", "config"),
    [
        ({}, {"EnableNFTables": True, "Backend": {"Type": "vxlan"}}),
        ({"proxyMode": "iptables"}, {"EnableNFTables": False, "Backend": {"Type": "vxlan"}}),
        ({"backend": "host-gw"}, {"EnableNFTables": True, "Backend": {"Type": "host-gw"}}),
    ],
)
def test_flannel_has_the_network_of_the_config(
    network: dict[str, str], config: dict[str, object]
) -> None:
    parsed = json.loads(_data(flannel(lab(network=network)), "net-conf.json"))
    assert parsed == {"Network": "10.244.0.0/16", **config}


def test_only_containers_leave_the_kernels_tables_alone() -> None:
    inside = yaml.safe_load(_data(kube_proxy(lab()), "config.conf"))
    assert inside["conntrack"] == {"maxPerCore": 0, "min": 0}
    assert inside["oomScoreAdj"] == 0
    outside = yaml.safe_load(_data(kube_proxy(adopted()), "config.conf"))
    assert not {"conntrack", "oomScoreAdj"} & outside.keys()


def test_dns_is_where_kubelets_look_for_it() -> None:
    plan = lab(
        cluster={
            "name": "dev",
            "kubernetes": "1.36.3",
            "serviceCidr": "10.97.0.0/20",
            "dnsDomain": "example.internal",
        }
    )
    text = coredns(plan)
    assert _at(_one(text, "Service"), "spec", "clusterIP") == "10.97.0.10"
    corefile = _data(text, "Corefile")
    assert "kubernetes example.internal in-addr.arpa" in corefile
    assert corefile.count("{") == corefile.count("}")


@pytest.mark.parametrize(("masters", "workers", "replicas"), [(1, 0, 1), (1, 1, 2), (3, 2, 2)])
def test_dns_has_two_replicas_on_two_nodes_where_there_are_two(
    masters: int, workers: int, replicas: int
) -> None:
    deployment = _one(coredns(lab(masters, workers)), "Deployment")
    assert _at(deployment, "spec", "replicas") == replicas
    apart = _at(_pod(coredns(lab()), "Deployment"), "affinity", "podAntiAffinity")
    assert "requiredDuringSchedulingIgnoredDuringExecution" in json.dumps(apart)


def test_dns_is_spread_over_zones_where_there_are_some() -> None:
    assert "topologySpreadConstraints" not in coredns(lab())
    pools = {
        "master": {"roles": ["etcd", "master"], "count": 3},
        "worker": {"roles": ["worker"], "count": 2, "zones": ["a", "b"]},
    }
    pod = _pod(coredns(lab(pools=pools)), "Deployment")
    constraint = _at(pod, "topologySpreadConstraints", 0)
    assert _at(constraint, "topologyKey") == "topology.kubernetes.io/zone"
    # Two in one zone are better than one.
    assert _at(constraint, "whenUnsatisfiable") == "ScheduleAnyway"
    assert _at(constraint, "labelSelector") == _at(
        _one(coredns(lab(pools=pools)), "Deployment"), "spec", "selector"
    )
    etcd_alone = {"roles": ["etcd"], "count": 1, "zones": ["a"]}
    assert "topologySpread" not in coredns(lab(pools={**pools, "worker": etcd_alone}))


def test_etcd_machines_are_no_place_for_dns() -> None:
    only_master = {
        "etcd": {"roles": ["etcd"], "count": 3},
        "master": {"roles": ["master"], "count": 1},
    }
    assert _at(_one(coredns(lab(pools=only_master)), "Deployment"), "spec", "replicas") == 1


def test_acceptance_pods_become_ready_and_are_restricted() -> None:
    container = _at(_pod(acceptance(lab())), "containers", 0)
    # netexec answers 412 on /healthz for ever when told to open no UDP port.
    assert _at(container, "args") == ["netexec", "--http-port=8080"]
    assert _at(container, "securityContext", "allowPrivilegeEscalation") is False
    assert _at(_pod(acceptance(lab())), "securityContext", "runAsNonRoot") is True


class Shell:
    """The scripts of flannel's pod, run with folders of the test in place of the node's."""

    def __init__(self, folder: Path) -> None:
        pod = _pod(flannel(lab()))
        self._forget = _at(pod, "initContainers", 0, "command", 2)
        self._run = _at(pod, "containers", 0, "command", 2)
        self._flanneld = folder / "flanneld"
        self._flanneld.write_text("#!/bin/sh\nexec sleep 60\n")
        self._flanneld.chmod(0o755)
        self.run = folder / "run"
        self.cni = folder / "cni"
        self.run.mkdir()
        self.cni.mkdir()

    @property
    def conflist(self) -> Path:
        return self.cni / "10-kube-ha.conflist"

    def written(self) -> list[str]:
        return sorted(path.name for path in self.cni.iterdir())

    def forget(self) -> None:
        subprocess.run(self._command(self._forget), check=True, timeout=10)

    def container(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command(self._run), start_new_session=True)

    def flanneld_writes(self, subnet: str) -> None:
        new = self.run / ".subnet.env"
        new.write_text(
            f"FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET={subnet}\n"
            "FLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n"
        )
        new.rename(self.run / "subnet.env")

    def _command(self, script: Yaml) -> list[str]:
        assert isinstance(script, str)
        busybox = shutil.which("busybox")
        shell = [busybox, "sh"] if busybox else ["sh"]
        text = script.replace("/run/flannel", str(self.run))
        text = text.replace("/opt/bin/flanneld", str(self._flanneld))
        return [*shell, "-c", text.replace("/etc/cni/net.d", str(self.cni))]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize(
    ("subnet", "network"),
    [("10.244.3.1/24", "10.244.3.0/24"), ("10.244.3.129/25", "10.244.3.128/25")],
)
def test_a_node_gets_its_cni_config_when_flanneld_has_its_lease(
    shell: Shell, subnet: str, network: str
) -> None:
    container = shell.container()
    try:
        time.sleep(0.6)  # longer than one turn of the loop that waits for the lease
        assert shell.written() == []
        shell.flanneld_writes(subnet)
        end = time.monotonic() + 10
        while not shell.conflist.exists() and time.monotonic() < end:
            time.sleep(0.05)
        assert container.poll() is None
    finally:
        os.killpg(container.pid, signal.SIGKILL)
        container.wait()
    assert shell.written() == ["10-kube-ha.conflist"]
    bridge, portmap = json.loads(shell.conflist.read_text())["plugins"]
    assert bridge["ipam"]["ranges"] == [[{"subnet": network}]]
    assert bridge["mtu"] == 1450
    assert bridge["isDefaultGateway"] is True
    assert bridge["hairpinMode"] is True
    # flanneld masquerades; the bridge plugin would do so between nodes too.
    assert bridge["ipMasq"] is False
    assert portmap["type"] == "portmap"


def test_after_a_boot_no_pod_starts_before_flanneld(shell: Shell) -> None:
    shell.conflist.touch()
    shell.forget()
    assert not shell.conflist.exists()


def test_an_update_of_flannel_does_not_make_its_node_unready(shell: Shell) -> None:
    shell.conflist.touch()
    shell.flanneld_writes("10.244.3.1/24")
    shell.forget()
    assert shell.conflist.exists()
    assert not (shell.run / "subnet.env").exists()
