"""Story: Prometheus by its name alone: every component of every node is measured, each alert's rule fires, the cluster is on one screen, and nothing of it stays."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from base64 import b64encode
from pathlib import Path

import pytest
import yaml

from artifacts import build, bundle
from artifacts.lock import read
from operations.engine.kubectl import Kubectl
from stacks.catalogue.prometheus.names import AGENT_PORT, NODE_PORT
from tests.e2e.harness import config, versions
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.node import Node
from tests.e2e.harness.prometheus import Prometheus, rule_tests
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-metrics"
SUBNET = "10.93.130.0/24"
VIP = "10.93.130.5"
MASTERS = {"master-1", "master-2", "master-3"}
NODES = MASTERS | {"worker-1"}
OF_NODES = {"agent", "cadvisor", "kube-proxy", "kubelet", "node"}
OF_MASTERS = {"apiserver", "controller-manager", "etcd", "scheduler"}
PORT = 19090


def wanted() -> config.Config:
    made = config.lab(NAME, SUBNET, masters=3, workers=1)
    made["frontDoors"] = {"vip": {"address": VIP}}
    return versions.with_addons(made, SUBNET)


@pytest.fixture(scope="module")
def asked(stack: Stack) -> Prometheus:
    return Prometheus(stack)


def test_a_cluster_that_lives_gets_it_and_nothing_restarts(stack: Stack) -> None:
    stack.up()
    before = {node.name: _running(node) for node in stack.nodes()}
    stack.config["addons"] = {"prometheus": {"retentionDays": 3}}
    stack.write()
    words = " ".join(stack.preview().output.split())
    assert "prometheus: made: ServiceAccount kube-system/prometheus" in words, words
    update = stack.up()
    stack.took("up with prometheus more", update.seconds)
    assert {node.name: _running(node) for node in stack.nodes()} == before
    assert_up_changes_nothing(stack)


def test_every_component_of_every_node_is_measured(stack: Stack, asked: Prometheus) -> None:
    every = {(job, node) for job in OF_NODES for node in NODES}
    every |= {(job, node) for job in OF_MASTERS for node in MASTERS}

    wait_for("every target", lambda: asked.without(every), limit_s=150)
    wait_for(
        "CoreDNS", lambda: _less(asked, 'sum(up{job="services",service="kube-dns"})', 2), limit_s=60
    )
    # Both servers hold all.
    for server in (0, 1):
        found = asked.get("query", server, query='count(up{job="node"})')["result"]
        assert [one["value"][1] for one in found] == [str(len(NODES))]


def test_nodes_tell_what_no_program_does(stack: Stack, asked: Prometheus) -> None:
    wait_for("facts of all nodes", lambda: _less(asked, "count(count by (node) (kube_ha_haproxy_server_up))", 4), limit_s=120)  # fmt: skip
    ends = asked.values("min by (node) (kube_ha_certificate_not_after_seconds)", "node")
    assert {name for (name,) in ends} == NODES
    assert min(ends.values()) > time.time() + 30 * 86400
    paths = {path for (path,) in asked.values("kube_ha_certificate_not_after_seconds", "path")}
    assert {"/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/controller-manager.conf", "/var/lib/kubelet/pki/kubelet-client-current.pem"} <= paths  # fmt: skip
    owners = asked.values("kube_ha_vip_owner", "node")
    assert {name for (name,) in owners} == MASTERS
    assert sum(owners.values()) == 1
    reached = asked.values("kube_ha_haproxy_server_up", "node", "server")
    assert set(reached) == {(node, master) for node in NODES for master in MASTERS}
    assert set(reached.values()) == {1}
    # None was made yet, and nobody is told so before the time for one was there twice.
    assert asked.values("kube_ha_backup_seconds", "node") == {}
    for node in ("master-1", "master-2", "master-3"):
        stack.node(node).run("systemctl start kube-ha-backup.service")
    wait_for("the snapshot", lambda: _less(asked, "count(kube_ha_backup_seconds)", 1), limit_s=150)
    (at,) = asked.values("max(kube_ha_backup_seconds)").values()
    assert time.time() - 300 < at <= time.time()


def test_nobody_measures_or_writes_without_the_password(stack: Stack, asked: Prometheus) -> None:
    assert asked.status_without_password() == "401"
    worker, master = stack.node("worker-1"), stack.node("master-1")
    address = json.loads(stack.kubectl("get", "node", "worker-1", "-o", "json"))["status"]["addresses"][0]["address"]  # fmt: skip
    for port in (AGENT_PORT, NODE_PORT):
        here = f"curl -s -o /dev/null --max-time 5 http://{{}}:{port}/metrics && echo open || true"
        assert worker.run(here.format("127.0.0.1")) == "open\n"
        assert master.run(here.format(address)) == ""


def test_every_rule_fires_with_its_series_and_is_silent_with_others(
    stack: Stack, asked: Prometheus
) -> None:
    """By upstream's own promtool, against the very rules of this cluster."""
    kept = json.loads(stack.kubectl("-n", "kube-system", "get", "configmap", "prometheus-config", "-o", "json"))["data"]  # fmt: skip
    folder = stack.folder / "rules"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules.yaml").write_text(kept["rules.yaml"])
    (group,) = yaml.safe_load(kept["rules.yaml"])["groups"]
    waits = {rule["alert"]: rule["for"] for rule in group["rules"]}
    (folder / "tests.yaml").write_text(json.dumps(rule_tests("rules.yaml", waits)))
    done = subprocess.run([_promtool(), "test", "rules", "tests.yaml"], cwd=folder, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    groups = asked.get("rules")["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}
    assert asked.firing() == {"Watchdog"}


def test_the_cluster_is_on_one_screen(stack: Stack, asked: Prometheus) -> None:
    command = [sys.executable, "-m", "operations.dashboard", stack.name, "--port", str(PORT)]
    with subprocess.Popen(command, cwd=ROOT, env=stack.environment, stdout=subprocess.PIPE, text=True) as held:  # fmt: skip
        try:
            assert held.stdout is not None
            told = held.stdout.readline()
            assert f"http://127.0.0.1:{PORT}/consoles/cluster.html" in told
            page = _page(stack, f"http://127.0.0.1:{PORT}/consoles/cluster.html")
        finally:
            held.terminate()
            held.communicate(timeout=30)
    (stack.evidence / "cluster.html").write_text(page)
    assert "No alert fires" in page
    rows = re.findall(r"<tr><th>([^<]+)</th>(<td>.*?)</tr>", page)
    assert sorted(name for name, _ in rows) == sorted([*MASTERS, *NODES])
    empty = [(name, cells) for name, cells in rows if "<td>-</td>" in cells]
    assert empty == []


def test_it_leaves_without_a_trace(stack: Stack) -> None:
    stack.config["addons"] = {}
    stack.write()
    stack.up()
    kinds = stack.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    asked = ",".join(kind for kind in kinds if not kind.startswith("events"))
    every = stack.kubectl("get", asked, "--all-namespaces", "-o", "name", limit_s=60).split()
    assert [name for name in every if "prometheus" in name] == []
    for node in stack.nodes():
        assert node.run("ls -d /run/kube-ha-metrics /etc/systemd/system/kube-ha-metrics.* 2>/dev/null || true") == ""  # fmt: skip
    assert stack.up().changes == {}


def _running(node: Node) -> dict[str, str]:
    """What adding an add-on has no reason to touch; the gate's own pods come and go."""
    units = ("containerd", "etcd", "haproxy", "keepalived", "kubelet")
    found = {name: pid for name, pid in node.processes().items() if name in units}
    programs = ("kube-apiserver", "kube-controller", "kube-proxy", "kube-scheduler")
    return found | {name: node.run(f"pgrep -d, {name} || true") for name in programs}


def _less(asked: Prometheus, query: str, least: float) -> str:
    found = asked.values(query)
    value = found.get((), 0)
    return "" if value >= least else f"{value} of {least}"


def _promtool() -> Path:
    lock = read(None, build.host_arch(), also=[("addon", "prometheus")])
    (module,) = {i.module.name: i.module for i in lock.images if i.module and i.module.name == "prometheus"}.values()  # fmt: skip
    return build.build(module, lock.arch, bundle.cache_folder())["promtool"]


def _page(stack: Stack, url: str) -> str:
    kubectl = Kubectl(program=ROOT / ".local/bin/kubectl", kubeconfig=stack.kubeconfig())
    words = ("--namespace", "kube-system", "get", "secret", "prometheus-access")
    password = kubectl.text(*words, "-o", "go-template={{.data.password | base64decode}}")
    request = urllib.request.Request(url)  # noqa: S310
    request.add_header("Authorization", f"Basic {b64encode(f'prometheus:{password}'.encode()).decode()}")  # fmt: skip
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return str(answer.read().decode())
