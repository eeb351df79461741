"""Story: three masters and two workers from nothing; nothing to do afterwards; a master dies; all is destroyed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.e2e.harness import config, kubelets, lab
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.probe import Probe
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.update import Update
from tests.e2e.harness.waiting import wait_for

NODES = {"master-1", "master-2", "master-3", "worker-1", "worker-2"}
WORKERS = {"worker-1", "worker-2"}
KILLED = "the master that leads etcd loses power"
ANSWERS_AGAIN_MS = 10_000  # health checks, a connect timeout and an election, on a busy computer


def wanted() -> config.Config:
    return config.lab("test-create-3-2", "10.93.1.0/24", masters=3, workers=2)


@pytest.fixture(scope="module")
def created(stack: Stack) -> Update:
    update = stack.up()
    stack.took("up of 3 masters and 2 workers", update.seconds)
    return update


def test_up_ends_with_a_healthy_cluster_and_says_how_to_use_it(
    stack: Stack, created: Update
) -> None:
    # The gate has proved API, pods, Services and DNS; this is the user's side.
    assert stack.ready() == dict.fromkeys(NODES, True)
    stack.wait_healthy(NODES, limit_s=30)
    for master in sorted(NODES - WORKERS):
        context = f"{stack.lab}-{master}"
        assert stack.kubectl("get", "--raw", "/readyz", context=context) == "ok"
    nodes = stack.output("nodes")
    assert isinstance(nodes, dict)
    assert set(nodes) == NODES
    assert nodes["master-1"]["roles"] == ["etcd", "master"]
    assert nodes["worker-2"]["address"] == "10.93.1.102"
    assert nodes["worker-2"]["versions"] == {"kubernetes": config.kubernetes()}
    assert stack.output("endpoint") == "https://10.93.1.11:6443"


def test_kubelets_serve_with_certificates_of_the_clusters_ca(stack: Stack, created: Update) -> None:
    kubelets.assert_certified(stack, NODES)
    kubelets.assert_reached(stack, NODES)


def test_a_node_gets_no_certificate_for_an_address_of_another(
    stack: Stack, created: Update
) -> None:
    name = kubelets.ask_for(stack.node("worker-1"), "worker-1", "10.93.1.102")
    kubelets.wait_noted(stack, sorted(NODES - WORKERS), "asks for other names than worker-1")
    assert kubelets.conditions(stack, name) == ""
    stack.kubectl("delete", "csr", name)


def test_ssh_output_leads_to_every_machine_with_its_pinned_host_key(
    stack: Stack, created: Update
) -> None:
    access = stack.output("ssh")
    assert isinstance(access, dict)
    for name in sorted(NODES):
        assert _ssh(access[name], "hostname").strip() == name


def test_worker_has_at_most_five_resources(stack: Stack, created: Update) -> None:
    names = [str(entry["urn"]).rpartition("::")[2] for entry in stack.resources()]
    for worker in sorted(WORKERS):
        own = [name for name in names if name.startswith(f"{stack.lab}-{worker}-")]
        assert 0 < len(own) <= 5, own


def test_second_up_changes_nothing(stack: Stack, created: Update) -> None:
    assert_up_changes_nothing(stack)


def test_api_answers_again_within_seconds_when_a_master_dies(stack: Stack, created: Update) -> None:
    victim, witness = stack.node("master-1"), f"{stack.lab}-master-2"
    stack.make_leader("master-1")
    workers: set[str] = set()

    def victim_missed() -> str:
        ready = stack.ready(context=witness)
        workers.update(name for name in WORKERS if not ready[name])
        return "master-1 is still called Ready" if ready["master-1"] else ""

    with Probe(stack.node("worker-1"), stack.evidence / "probe.txt") as probe:
        victim.kill()
        noticed_s = wait_for("dead master noticed", victim_missed, limit_s=180)
    reads, writes = probe.seen("read"), probe.seen("write")
    stack.served(KILLED, "reads by a worker's HAProxy", reads)
    stack.served(KILLED, "writes by a worker's HAProxy", writes)
    stack.measured(f"master-1 called NotReady after {noticed_s:.0f} s, workers NotReady: 0")
    assert workers == set(), "workers must not suffer from a dead master"
    assert reads.longest_gap_ms < ANSWERS_AGAIN_MS
    assert writes.longest_gap_ms < ANSWERS_AGAIN_MS

    victim.start()
    healed_s = stack.wait_healthy(NODES)
    stack.took("cluster healthy after that master started again", healed_s)
    assert stack.up().changes == {}


def test_destroy_leaves_nothing(stack: Stack, created: Update) -> None:
    stack.destroy()
    assert stack.resources() == []
    assert lab.containers(stack.lab) == []
    assert f"kube-ha-{stack.lab}" not in lab.networks()


def _ssh(access: dict[str, object], command: str) -> str:
    """Stdout of a command over plain ssh, host key checked."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        key, known = folder / "key", folder / "known_hosts"
        key.touch(mode=0o600)
        key.write_text(str(access["privateKey"]))
        known.write_text(f"{access['host']} {access['hostKey']}\n")
        options = ["-o", "StrictHostKeyChecking=yes", "-o", f"UserKnownHostsFile={known}"]
        who = f"{access['user']}@{access['host']}"
        return lab.shell(["ssh", "-i", str(key), "-o", "BatchMode=yes", *options, who, command])
