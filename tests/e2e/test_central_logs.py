"""Story: logs of every node in one store: each kind with its labels, counted lines over a store that cannot be reached, a killed collector and a power cut, and nothing of it stays."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from tests.e2e.harness import config, versions
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.store import Store, unit, writer
from tests.e2e.harness.waiting import wait_for

NAME = "test-logs"
SUBNET = "10.93.140.0/24"
NODES = {"master-1": "master", "worker-1": "worker", "worker-2": "worker"}
FOLDER = "/var/lib/kube-ha-addons"
AWAY_S = 60
COUNT, PAUSE_S = 1600, 0.05  # for longer than the store is away
BURST = 500
PROGRAM = "otelcol-contrib"


def wanted() -> config.Config:
    made = config.lab(NAME, SUBNET, masters=1, workers=2)
    return versions.with_logs(made, SUBNET)


@pytest.fixture(scope="module")
def store(stack: Stack) -> Store:
    return Store(stack)


def test_a_cluster_that_lives_gets_it_and_nothing_restarts(stack: Stack) -> None:
    stack.up()
    before = {node.name: node.processes()["kubelet"] for node in stack.nodes()}
    stack.config["addons"] = {"logs": {}}
    stack.write()
    words = " ".join(stack.preview().output.split())
    assert "logs: made: ServiceAccount kube-system/logs-store" in words, words
    update = stack.up()
    stack.took("up with logs more", update.seconds)
    assert {node.name: node.processes()["kubelet"] for node in stack.nodes()} == before
    assert_up_changes_nothing(stack)


def test_lines_of_each_kind_arrive_with_their_labels(stack: Stack, store: Store) -> None:
    common = {"k8s_cluster_name": NAME}
    for node, role in NODES.items():
        own = common | {"k8s_node_name": node, "role": role}
        units = ["kubelet", "containerd", "haproxy", *(["etcd"] if role == "master" else [])]
        for name in units:
            assert_labels(store, own | {"log": "journal", "unit": f"{name}.service"})
        pod = {"log": "pods", "k8s_namespace_name": "kube-system"}
        assert_labels(store, own | pod | {"k8s_container_name": "kube-proxy"})
    stack.node("worker-1").run("logger -t somebody from a session")
    query = '{k8s_node_name="worker-1",log="journal"} |= "from a session"'
    wait_for("a line of no unit", lambda: store.missing(query), limit_s=60)
    ((labels, _),) = store.lines(query)
    assert labels["syslog_identifier"] == "somebody"
    stack.kubectl("create", "namespace", "seen-by-all")
    query = '{log="audit",role="master"} |= "seen-by-all" |= "\\"verb\\":\\"create\\""'
    wait_for("the audit log", lambda: store.missing(query), limit_s=60)


def assert_labels(store: Store, wanted: dict[str, str]) -> None:
    query = "{" + ",".join(f'{name}="{value}"' for name, value in wanted.items()) + "}"
    wait_for(query, lambda: store.missing(query), limit_s=60)


def test_a_line_is_in_the_store_within_seconds(stack: Stack, store: Store) -> None:
    for number in range(3):
        mark = f"of-a-unit-{number}"
        query = f'{{log="journal",k8s_node_name="worker-1"}} |= "{mark}"'
        delay = store.delay_s(query, f"logger {mark}", "worker-1")
        stack.took(f"a line of the journal until the store shows it, {number + 1}", delay)
        assert delay < 10
    for number in range(3):
        mark = f"of-a-client-{number}"
        query = f'{{log="audit"}} |= "{mark}"'
        ask = f"kubectl --kubeconfig /etc/kubernetes/admin.conf create namespace {mark}"
        delay = store.delay_s(query, ask, "master-1")
        stack.took(f"a line of the audit log until the store shows it, {number + 1}", delay)
        assert delay < 10


def test_nobody_writes_without_the_password_and_no_pod_reads(stack: Stack) -> None:
    services = json.loads(stack.kubectl("-n", "kube-system", "get", "service", "logs-store", "-o", "json"))  # fmt: skip
    pod = json.loads(stack.kubectl("-n", "kube-system", "get", "pod", "logs-store-0", "-o", "json"))
    door = f"http://{services['spec']['clusterIP']}:4318/v1/logs"
    worker = stack.node("worker-1")
    asked = "curl -s -o /dev/null --max-time 5 -w '%{http_code}'"
    words = "-H 'content-type: application/json' -d '{}'"
    assert worker.run(f"{asked} {words} {door}") == "401"
    assert worker.run(f"{asked} {words} -H 'authorization: Bearer x' {door}") == "401"
    read = f"http://{pod['status']['podIP']}:3100/ready"
    assert worker.run(f"{asked} {read} || true") == "000"
    # Of its node a collector sees logs, and neither keys nor a token.
    (pid,) = worker.run(f"pgrep -x {PROGRAM}").split()[:1]
    for path in ("/etc/kubernetes", "/var/lib/kubelet", "/var/run/secrets"):
        assert worker.run(f"ls -d /proc/{pid}/root{path} 2>/dev/null || true") == ""
    assert worker.run(f"awk '/^Cap(Eff|Prm)/ {{print $2}}' /proc/{pid}/status | sort -u").split() == ["0" * 16]  # fmt: skip


def test_counted_lines_all_arrive(stack: Stack, store: Store) -> None:
    """The store cannot be reached for a minute and is killed, a collector is killed twice, the power of a worker is cut."""
    reach(stack, "-I")
    begin = time.monotonic()
    stack.kubectl("apply", "-f", "-", stdin=writer("long", "worker-1", "pod-long", COUNT, PAUSE_S))
    stack.node("worker-1").run(unit("unit-long", COUNT, PAUSE_S))
    stack.kubectl("apply", "-f", "-", stdin=writer("short", "worker-2", "pod-short", BURST, 0))
    stack.node("worker-2").run(unit("unit-short", BURST, 0))
    wait_for("short lines", lambda: unwritten(stack, "short", BURST), limit_s=60)
    wait_for("short lines of the unit", lambda: stack.node("worker-2").asked("systemctl is-active unit-short || true").replace("inactive\n", ""), limit_s=60)  # fmt: skip
    time.sleep(3)  # for the collector to read them
    stack.node("worker-2").kill()
    stack.node("worker-1").run(f"pkill -9 -x {PROGRAM}")
    stack.node("worker-2").start()
    time.sleep(max(0, AWAY_S - (time.monotonic() - begin)))
    kept = stack.node("worker-1").run(f"du -sm {FOLDER}/logs | cut -f 1").strip()
    stack.measured(f"after {AWAY_S} s without the store worker-1 keeps {kept} MiB")
    reach(stack, "-D")
    # While lines are handed over: the store itself, and a collector once more.
    time.sleep(5)
    stack.node(place(stack)).run("pkill -9 -x loki")
    stack.node("worker-1").run(f"pkill -9 -x {PROGRAM}")
    for mark, node, count, log in (
        ("pod-short", "worker-2", BURST, "pods"),
        ("unit-short", "worker-2", BURST, "journal"),
        ("pod-long", "worker-1", COUNT, "pods"),
        ("unit-long", "worker-1", COUNT, "journal"),
    ):
        query = f'{{log="{log}",k8s_node_name="{node}"}} |= "{mark}"'
        took = wait_for(mark, lambda q=query, m=mark, c=count: uncounted(store, q, m, c), limit_s=240, every_s=3)  # type: ignore[misc]  # fmt: skip
        twice = len(store.numbers(query, mark)) - count
        stack.took(f"{count} lines of {mark} whole, {twice} of them twice", took)


def reach(stack: Stack, how: str) -> None:
    """Packets of lines to the store are dropped in its pod from here on (-I), or not any more (-D)."""
    rule = f"iptables {how} INPUT -p tcp --dport 4318 -j DROP"
    stack.node(place(stack)).run(f"nsenter -n -t $(pgrep -x loki) {rule}")


def place(stack: Stack) -> str:
    words = ("get", "pod", "logs-store-0", "-o", "jsonpath={.spec.nodeName}")
    return stack.kubectl("-n", "kube-system", *words)


def unwritten(stack: Stack, pod: str, count: int) -> str:
    phase = stack.kubectl("get", "pod", pod, "-o", "jsonpath={.status.phase}")
    return "" if phase == "Succeeded" else f"{phase}, of {count} lines"


def uncounted(store: Store, query: str, mark: str, count: int) -> str:
    try:
        found = {*store.numbers(query, mark)}
    except (OSError, ValueError) as error:
        return str(error)
    gone = sorted({*range(1, count + 1)} - found)
    return f"{len(gone)} of {count} are missing: {gone[:20]}" if gone else ""


def test_root_of_a_master_empties_its_audit_log_and_the_store_has_it(
    stack: Stack, store: Store
) -> None:
    stack.kubectl("create", "namespace", "of-a-thief")
    time.sleep(5)
    stack.node("master-1").run("truncate -s 0 /var/log/kubernetes/audit.log")
    assert store.lines('{log="audit"} |= "of-a-thief"')


def test_make_logs_asks_the_store(stack: Stack) -> None:
    kubelet = told(stack, "--node", "worker-2", "--unit", "kubelet", "--source", "store")
    assert len(kubelet) == 200
    assert all(" kubelet.service: " in line for line in kubelet)
    # By itself: the store first, for all nodes, each line behind its own.
    proxies = told(stack, "--pod", "kube-system/kube-proxy", "--since", "2h")
    assert {line.split()[0] for line in proxies} == {*NODES}
    assert len(told(stack, "--pod", "default/long", "--since", "2h")) >= COUNT
    masters = told(stack, "--role", "master", "--unit", "etcd", "--since", "2h")
    assert masters
    assert told(stack, "--node", "worker-2", "--unit", "kubelet", "--source", "machines")


def told(stack: Stack, *words: str) -> list[str]:
    command = [sys.executable, "-m", "operations.logs", stack.name, *words]
    done = subprocess.run(command, cwd=ROOT, env=stack.environment, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "machines are asked" not in done.stderr
    return done.stdout.splitlines()


def test_what_it_takes(stack: Stack) -> None:
    for name in NODES:
        for program in (PROGRAM, "loki"):
            sizes = stack.node(name).run(f"ps -C {program} -o rss= || true").split()
            for size in sizes:
                stack.measured(f"{int(size) // 1024} MiB are resident of {program} on {name}")
    assert stack.node("worker-1").run(f"ps -C {PROGRAM} -o rss=").split()


def test_it_leaves_without_a_trace(stack: Stack) -> None:
    stack.config["addons"] = {}
    stack.write()
    stack.up()
    kinds = stack.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    asked = ",".join(kind for kind in kinds if not kind.startswith("events"))
    every = stack.kubectl("get", asked, "--all-namespaces", "-o", "name", limit_s=60).split()
    assert [name for name in every if "logs-" in name] == []
    for node in stack.nodes():
        assert node.run(f"ls -d {FOLDER} 2>/dev/null || true; pgrep -x {PROGRAM} || true") == ""
    assert stack.up().changes == {}
