"""Pods of a user: that they live on untouched where an edit has no business, and are moved in order where it has."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from stacks.releases import versions
from tests.e2e.harness import config
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAMESPACE = "kube-ha-test"
_REPLICAS = 3


def deploy(stack: Stack) -> None:
    """One pod on every node, and a Deployment that may lose one pod at a time."""
    stack.kubectl("apply", "-f", "-", stdin=json.dumps(_manifest()))
    wait_running(stack)


def wait_running(stack: Stack, *, limit_s: float = 120) -> None:
    """Until every pod that should be there is, and is ready."""

    def missing() -> str:
        path = (
            "{range .items[*]}{.kind} {.status.desiredNumberScheduled}{.spec.replicas} "
            '{.status.numberReady}{.status.readyReplicas}{"\\n"}{end}'
        )
        kinds = "daemonsets,deployments"
        rows = stack.kubectl("-n", NAMESPACE, "get", kinds, "-o", f"jsonpath={path}").splitlines()
        poor = [row for row in rows if len(row.split()) < 3 or row.split()[1] != row.split()[2]]
        return f"kind, wanted, ready: {rows}" if poor or len(rows) != 2 else ""

    wait_for("pods of the tests ready", missing, limit_s=limit_s)


@contextmanager
def untouched(stack: Stack, nodes: Collection[str]) -> Iterator[None]:
    """While the context lasts no pod, container, kubelet or etcd of these nodes is restarted or replaced."""
    before = _alive(stack, nodes)
    yield
    after = _alive(stack, nodes)
    changed = [
        f"{node}: {what} was {was}, is {after[node].get(what, 'gone')}"
        for node, facts in before.items()
        for what, was in facts.items()
        if after[node].get(what) != was
    ]
    assert not changed, "touched, though the edit does not concern it:\n" + "\n".join(changed)


def _alive(stack: Stack, nodes: Collection[str]) -> dict[str, dict[str, str]]:
    """By node: what runs there, with what is new when it is started or made again."""
    stack.settled()
    out = {name: stack.node(name).processes() for name in sorted(nodes)}
    for pod in json.loads(stack.kubectl("get", "pods", "--all-namespaces", "-o", "json"))["items"]:
        node, about = pod["spec"].get("nodeName"), pod["metadata"]
        if node in out:
            containers = pod["status"].get("containerStatuses", [])
            restarts = sum(container["restartCount"] for container in containers)
            started = pod["status"].get("startTime")
            out[node][f"pod {about['namespace']}/{about['name']}"] = (
                f"{about['uid']}, started {started}, {restarts} restarts"
            )
    return out


def _manifest() -> dict[str, object]:
    everywhere = _workload("DaemonSet", "everywhere", tolerations=[{"operator": "Exists"}])
    somewhere = _workload("Deployment", "somewhere", tolerations=[], replicas=_REPLICAS)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "somewhere", "namespace": NAMESPACE},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "somewhere"}}},
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [namespace, everywhere, somewhere, budget],
    }


def _workload(kind: str, name: str, *, tolerations: list[object], **spec: object) -> object:
    image = f"registry.k8s.io/pause:{versions.for_kubernetes(config.kubernetes()).pause}"
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            **spec,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 2,
                    "automountServiceAccountToken": False,
                    "tolerations": tolerations,
                    "containers": [{"name": name, "image": image}],
                },
            },
        },
    }
