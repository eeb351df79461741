"""Story: what is on the machines is told without a change, and one edit puts back what somebody did to them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import pytest

from operations.observe.hints import RAISE
from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NODES = {"master-1", "master-2", "master-3", "worker-1"}
FINE = [
    "master-1  10.93.12.11      ok",
    "master-2  10.93.12.12      ok",
    "master-3  10.93.12.13      ok",
    "worker-1  10.93.12.101     ok",
    "cluster                    ok",
    "everything is as planned",
]

# What a look could have left behind; logs and what the programs of the node write themselves are not part of it.
_WRITTEN = r"""
find /etc /root /home /usr /opt /var/lib/kube-ha/state /var/lib/kubelet/config.yaml /var/lib/kubelet/pki \
  -xdev -newer /run/before-the-look ! -type d ! -path '/etc/cni/*'
"""

_DISTURB_WORKER = r"""
echo '# by hand' >>/etc/haproxy/haproxy.cfg
echo >>/usr/local/bin/kubeadm
systemctl disable --now -q kubelet
"""
_DISTURB_MASTER = r"""
rm /etc/kubernetes/pki/front-proxy-client.crt
chmod 644 /etc/kubernetes/pki/sa.key
sed -i 's/--profiling=false/--profiling=true/' /etc/kubernetes/manifests/kube-scheduler.yaml
"""


def wanted() -> config.Config:
    return config.lab("test-operations", "10.93.12.0/24", masters=3, workers=1)


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    stack.up()
    stack.wait_healthy(NODES, limit_s=30)
    return stack


def look(stack: Stack, tool: str, *words: str) -> tuple[int, str]:
    """Exit code and output of `python -m operations.<tool>` on the story's stack."""
    done = subprocess.run(
        [sys.executable, "-m", f"operations.{tool}", stack.name, *words],
        cwd=ROOT,
        env=stack.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=180,
        check=False,
    )
    number = len(list(stack.evidence.glob("look-*"))) + 1
    (stack.evidence / f"look-{number:02d}-{tool}.txt").write_text(done.stdout)
    return done.returncode, done.stdout


def differences(stack: Stack) -> dict[str, list[str]]:
    """Texts of what differs, by node; those of the cluster under "cluster"."""
    _, out = look(stack, "drift", "--json")
    told = json.loads(out)
    found = {name: node["differences"] for name, node in told["nodes"].items()}
    found["cluster"] = told["clusterDifferences"]
    return {name: [one["text"] for one in listed] for name, listed in found.items()}


def test_a_new_cluster_is_as_planned(cluster: Stack) -> None:
    started = time.monotonic()
    assert look(cluster, "drift") == (0, "\n".join(FINE) + "\n")
    cluster.took("make drift of 4 machines", time.monotonic() - started)
    make = subprocess.run(
        ["make", "-s", "drift", f"STACK={cluster.name}"],
        cwd=ROOT,
        env=cluster.environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert make.returncode == 0
    assert make.stdout.splitlines()[-len(FINE) :] == FINE


def test_a_look_changes_nothing(cluster: Stack) -> None:
    cluster.settled()
    nodes = cluster.nodes()
    for node in nodes:
        node.run("touch /run/before-the-look; sleep 0.1")
    before = {node.name: (node.processes(), node.files()) for node in nodes}
    assert look(cluster, "drift")[0] == 0
    assert look(cluster, "status")[0] == 0
    assert {node.name: (node.processes(), node.files()) for node in nodes} == before
    assert {node.name: node.run(_WRITTEN) for node in nodes} == dict.fromkeys(before, "")


def test_status_shows_the_cluster_on_one_screen(cluster: Stack) -> None:
    code, out = look(cluster, "status")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) <= 24
    assert lines[0] == (
        f"cluster {cluster.lab}: Kubernetes {config.kubernetes()}, "
        "API at https://10.93.12.11:6443, ready on 3 of 3 masters"
    )
    rows = {line.split()[0]: line.split() for line in lines[3:7]}
    assert set(rows) == NODES
    assert {row[3] for row in rows.values()} == {"Ready"}
    assert {row[-1] for row in rows.values()} == {"-"}
    assert re.search(r"^etcd: 3 voting members, leader master-\d, .* no alarms, survives the loss of 1 member$", out, re.MULTILINE)  # fmt: skip
    assert "load balancers: 4 of 4 nodes find every master up" in lines
    assert "plan: everything is as planned" in lines
    _, text = look(cluster, "status", "--json")
    told = json.loads(text)
    assert told["nodes"]["worker-1"]["versions"]["kubelet"] == config.kubernetes()
    # Leafs live for a year, and were made minutes ago.
    assert told["firstCertificateToEnd"]["days"] == 364


def test_an_edit_that_is_not_applied_stands_at_the_top(cluster: Stack) -> None:
    cluster.edit("pools.worker.count", 2)
    code, out = look(cluster, "drift")
    cluster.edit("pools.worker.count", 1)
    lines = out.splitlines()
    assert code == 1
    assert lines[:3] == [
        f"not applied yet, so the machines cannot be as Pulumi.{cluster.name}.yaml says:",
        "  - pools.worker.count: 2, applied was 1",
        f"    do: pulumi up --stack {cluster.name}",
    ]
    assert [line for line in lines if line.startswith("worker-2")] == [
        "worker-2  10.93.12.102     not made"
    ]
    assert look(cluster, "drift") == (0, "\n".join(FINE) + "\n")


def test_what_somebody_did_to_the_machines_is_told(cluster: Stack) -> None:
    cluster.node("worker-1").run(_DISTURB_WORKER)
    cluster.node("master-2").run(_DISTURB_MASTER)
    cluster.node("master-3").kill()
    wanted = {
        "master-1": [],
        "master-2": [
            "/etc/kubernetes/manifests/kube-scheduler.yaml was changed by hand",
            "/etc/kubernetes/pki/front-proxy-client.crt was removed",
            "/etc/kubernetes/pki/sa.key can be read by others (mode 644)",
        ],
        "master-3": [
            "cannot be reached over SSH",
            "Node is not Ready",
            "its API server 10.93.12.13 is not an endpoint of the Service kubernetes",
        ],
        "worker-1": [
            "/etc/haproxy/haproxy.cfg differs from the plan",
            "unit kubelet is inactive",
            "unit kubelet is disabled: it does not start with the machine",
            "files of download kubeadm were changed by hand",
            "Node is not Ready",
        ],
        "cluster": [],
    }

    def missing() -> str:
        found = differences(cluster)
        texts = {
            # Why it cannot be reached is the network's word: no route, or no answer in time.
            name: [text.partition(": ssh: ")[0] for text in listed]
            for name, listed in found.items()
        }
        return "" if texts == wanted else json.dumps(texts, indent=1)

    noticed_s = wait_for("exactly these differences", missing, limit_s=180)
    cluster.measured(f"a dead master and a stopped kubelet show in full after {noticed_s:.0f} s")
    code, out = look(cluster, "drift")
    assert code == 1
    lines = out.splitlines()
    assert lines[0] == "master-1  10.93.12.11      ok"
    assert lines[lines.index("worker-1  10.93.12.101     5 differences") + 1 :][:2] == [
        "  - /etc/haproxy/haproxy.cfg differs from the plan",
        f"    do: {RAISE}",
    ]
    assert lines[-1] == "3 of 4 machines are not as planned"


def test_status_tells_the_dead_from_the_sick(cluster: Stack) -> None:
    code, out = look(cluster, "status", "--json")
    told = json.loads(out)
    assert code == 0
    assert {name: node["state"] for name, node in told["nodes"].items()} == {
        "master-1": "Ready",
        "master-2": "Ready",
        "master-3": "unreachable (NotReady)",
        "worker-1": "NotReady",
    }
    assert told["api"] == {
        "answers": True,
        "readyMasters": ["master-1", "master-2"],
        "trouble": None,
    }
    assert told["etcd"]["canLose"] == 0
    assert told["loadBalancers"]["down"] == {"master-3": ["master-1", "master-2", "worker-1"]}


def test_one_edit_puts_all_of_it_back(cluster: Stack) -> None:
    cluster.node("master-3").start()
    cluster.edit("converge.generation", 2)
    update = cluster.up()
    cluster.took("up with another converge.generation", update.seconds)
    cluster.wait_healthy(NODES, limit_s=60)
    assert look(cluster, "drift") == (0, "\n".join(FINE) + "\n")
    assert_up_changes_nothing(cluster)


def test_where_there_is_no_cluster_nobody_can_look(cluster: Stack) -> None:
    cluster.destroy()
    assert look(cluster, "drift")[0] == 2
    assert look(cluster, "status")[0] == 2
