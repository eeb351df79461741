"""Story: metrics-server and local-path by their names alone: all nodes and pods are measured, claims get volumes, drift is named, and both leave."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
import yaml

from stacks.releases import versions as lock
from tests.e2e.harness import config, versions
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import ROOT, LabError
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-catalogue"
SUBNET = "10.93.122.0/24"
ADDON = f"{NAME}-addon-metrics-server"
AT_THE_END = {f"{NAME}-acceptance-attempt", f"{NAME}-nodes", f"{NAME}-gate"}
ALL_OF_IT = {ADDON, f"{ADDON}-file-1"} | AT_THE_END
GROUP = "metrics.k8s.io"
FOLDER = "/var/volumes/here"


def wanted() -> config.Config:
    made = config.lab(NAME, SUBNET, masters=1, workers=1)
    return versions.with_addons(made, SUBNET)


def test_a_cluster_that_lives_gets_it(stack: Stack) -> None:
    stack.up()
    stack.config["addons"] = {"metrics-server": {}}
    stack.write()
    words = " ".join(stack.preview().output.split())
    assert "metrics-server: made: ServiceAccount kube-system/metrics-server" in words, words
    update = stack.up()
    assert set(update.changes) == ALL_OF_IT
    stack.took("up with metrics-server more", update.seconds)
    wait_for("figures of both nodes", lambda: _unmeasured(stack, "nodes", 2), limit_s=90)
    wait_for("figures of pods", lambda: _unmeasured(stack, "pods", 3), limit_s=90)
    assert_up_changes_nothing(stack)


def test_who_may_look_at_a_namespace_sees_what_its_pods_take(stack: Stack) -> None:
    stack.kubectl("create", "namespace", "shop")
    stack.kubectl("-n", "shop", "create", "rolebinding", "looks", "--clusterrole=view", "--user=jane")  # fmt: skip
    path = f"/apis/{GROUP}/v1beta1/namespaces/{{}}/pods"
    own = json.loads(stack.kubectl("get", "--raw", path.format("shop"), "--as=jane"))
    assert own["kind"] == "PodMetricsList"
    with pytest.raises(LabError, match="forbidden"):
        stack.kubectl("get", "--raw", path.format("kube-system"), "--as=jane")


def test_it_is_no_hostage_of_one_worker(stack: Stack) -> None:
    stack.edit("pools.worker.count", 2)
    stack.up()
    wait_for("figures of three nodes", lambda: _unmeasured(stack, "nodes", 3), limit_s=90)
    stack.edit("pools.worker.count", 1)
    stack.up()
    wait_for("figures of two nodes", lambda: _unmeasured(stack, "nodes", 2), limit_s=90)


def test_a_claim_that_names_no_class_gets_a_folder_of_its_pods_node(stack: Stack) -> None:
    stack.config["addons"] = {"metrics-server": {}, "local-path": {"default": True, "path": FOLDER}}
    stack.write()
    update = stack.up()
    stack.took("up with local-path more, whose registry the mirror answers for", update.seconds)
    stack.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(_shop()))
    worker = stack.node("worker-1")
    written = f"cat {FOLDER}/*_shop_data/note"
    wait_for("what the pod writes", lambda: _missing(worker.run(f"{written} 2>&1 || true"), "kept"), limit_s=120)  # fmt: skip
    stack.kubectl("-n", "shop", "delete", "pod", "writer", "--now")
    assert worker.run(written) == "kept\n"
    stack.kubectl("-n", "shop", "delete", "pvc", "data")
    wait_for("end of the folder", lambda: worker.run(f"ls {FOLDER}"), limit_s=120)
    assert stack.up().changes == {}


def test_drift_names_what_is_gone_and_what_was_changed(stack: Stack) -> None:
    assert _drift(stack) == []
    stack.kubectl("-n", "kube-system", "delete", "service", "metrics-server")
    more = json.dumps({"spec": {"replicas": 3}})
    stack.kubectl("-n", "kube-system", "patch", "deployment", "coredns", "-p", more)
    assert sorted(_drift(stack)) == [
        "Deployment kube-system/coredns of add-on coredns differs from the plan",
        "Service kube-system/metrics-server of add-on metrics-server is missing",
    ]
    stack.edit("converge.generation", 2)
    stack.up()
    assert _drift(stack) == []


def test_a_timer_puts_back_what_is_deleted_or_edited_until_the_line_is_out(stack: Stack) -> None:
    """By the timer's own unit: it comes every five minutes."""
    master = stack.node("master-1")
    stack.edit("addons.metrics-server", {"reconcile": True})
    words = " ".join(stack.preview().output.split())
    assert "metrics-server: put back every 5 minutes from now on" in words, words
    pods = _pods(stack)
    assert {ADDON, f"{ADDON}-file-1"} <= set(stack.up().changes) <= ALL_OF_IT
    assert stack.up().changes == {}
    due = master.run("systemctl list-timers --no-legend kube-ha-addons.timer")
    assert "kube-ha-addons.service" in due, due
    stack.kubectl("-n", "kube-system", "delete", "service", "metrics-server")
    edit = json.dumps({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 0}}}})
    stack.kubectl("-n", "kube-system", "patch", "deployment", "metrics-server", "-p", edit)
    assert len(_drift(stack)) == 2
    # An update that holds the machine comes first.
    master.run("flock /run/kube-ha/lock systemctl start kube-ha-addons.service")
    assert len(_drift(stack)) == 2
    started = time.monotonic()
    master.run("systemctl start kube-ha-addons.service")
    stack.took("add-on put back by its timer's unit", time.monotonic() - started)
    assert _drift(stack) == []
    said = master.run("journalctl --no-pager -o cat -u kube-ha-addons")
    assert "an update is under way" in said, said
    assert "missing v1.Service.kube-system.metrics-server" in said, said
    assert _pods(stack) == pods
    stack.edit("addons.metrics-server", {})
    stack.up()
    assert (
        master.run(
            "ls /var/lib/kube-ha/addons /etc/systemd/system/kube-ha-addons.* 2>/dev/null || true"
        )
        == ""
    )
    stack.kubectl("-n", "kube-system", "delete", "service", "metrics-server")
    assert "could not be found" in master.run("systemctl status kube-ha-addons.timer 2>&1 || true")
    assert len(_drift(stack)) == 1


def test_both_leave_without_a_trace(stack: Stack) -> None:
    stack.config["addons"] = {}
    stack.write()
    words = " ".join(stack.preview().output.split())
    assert "metrics-server: leaves; deleted at the end: " in words, words
    assert "kept, for you to delete: StorageClass local-path" in words, words
    stack.up()
    stack.kubectl("delete", "storageclass", "local-path")
    kinds = stack.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    assert not [kind for kind in kinds if kind.endswith(GROUP)]
    asked = [kind for kind in kinds if not kind.startswith("events")]
    every = stack.kubectl("get", ",".join(asked), "--all-namespaces", "-o", "name").split()
    assert [name for name in every if "metrics" in name or "local-path" in name] == []
    assert stack.up().changes == {}


def _pods(stack: Stack) -> list[str]:
    path = "jsonpath={.items[*].metadata.uid}"
    words = ("-n", "kube-system", "get", "pods", "-l", "k8s-app=metrics-server", "-o", path)
    return sorted(stack.kubectl(*words).split())


def _drift(stack: Stack) -> list[str]:
    """What `make drift` says of the cluster, and that it says no more."""
    command = [sys.executable, "-m", "operations.drift", stack.name, "--json"]
    done = subprocess.run(command, cwd=ROOT, env=stack.environment, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["notes"] == []
    differing = {name: node["differences"] for name, node in told["nodes"].items()}
    assert not any(differing.values()), differing
    return [one["text"] for one in told["clusterDifferences"]]


def _shop() -> list[dict[str, object]]:
    """A claim that says how much, and a pod that writes into it."""
    image = f"registry.k8s.io/e2e-test-images/agnhost:{lock.for_kubernetes(config.kubernetes()).agnhost}"
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    write = ["sh", "-c", "echo kept >/data/note; exec sleep 3600"]
    mounts = [{"name": "data", "mountPath": "/data"}]
    pod = {
        "containers": [
            {"name": "writer", "image": image, "command": write, "volumeMounts": mounts}
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    return [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop"}, "spec": claim},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "writer", "namespace": "shop"}, "spec": pod},
    ]  # fmt: skip


def _missing(text: str, word: str) -> str:
    return "" if word in text.split() else text


def _unmeasured(stack: Stack, kind: str, least: int) -> str:
    """Empty when so many have figures that a machine can have."""
    try:
        found = json.loads(stack.kubectl("get", "--raw", f"/apis/{GROUP}/v1beta1/{kind}"))
    except LabError as error:
        return str(error)
    parts = [one.get("usage") or one["containers"][0]["usage"] for one in found["items"]]
    measured = [part for part in parts if int(part["memory"].removesuffix("Ki")) > 0]
    exact = len(found["items"]) == least if kind == "nodes" else len(measured) >= least
    return "" if exact and len(measured) >= least else f"{len(measured)} of {least} {kind}"
