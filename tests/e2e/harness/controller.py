"""A real ingress controller on the workers of a story, pages of two hosts behind it, and somebody who visits them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from stacks.releases import versions
from tests.e2e.harness import config, history
from tests.e2e.harness.history import Seen
from tests.e2e.harness.load import Client, Keys
from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

_NAMESPACE = "kube-ha-pages"
PAGES = {"shop": "shop.example.com", "blog": "anna.blog.example.com"}  # by what its pods are called


def deploy(stack: Stack) -> None:
    """Both pages, on every worker, behind the controller of the stack."""
    stack.kubectl("apply", "-f", "-", stdin=json.dumps(_pages()))

    def missing() -> str:
        path = '{range .items[*]}{.metadata.name} {.status.desiredNumberScheduled} {.status.numberReady}{"\\n"}{end}'
        rows = stack.kubectl("get", "daemonsets", "--all-namespaces", "-o", f"jsonpath={path}")
        ours = [row.split() for row in rows.splitlines() if row.split()[0] in ("traefik", *PAGES)]
        good = [row for row in ours if row[1] == row[2] != "0"]
        return "" if len(good) == 3 else f"name, wanted, ready: {ours}"

    wait_for("controller and pages ready", missing, limit_s=120)


class Visitor:
    """Use as a context: on the machine `node` somebody asks for all pages at `address`, again and again."""

    def __init__(self, stack: Stack, name: str, node: Node, address: str, ca: str) -> None:
        folder = stack.evidence / "visits"
        folder.mkdir(parents=True, exist_ok=True)
        self._stack, self._name, self._ca = stack, name, ca
        slug = name.replace(" ", "-")
        self._client = Client(node, slug, "visit.sh", folder, kinds={"read"})
        self._doors = [f"https://{host}/hostname={address}={word}" for word, host in PAGES.items()]

    def __enter__(self) -> Visitor:
        self._client.start(Keys(ca=self._ca, certificate="", key=""), self._doors)
        wait_for("first pages", self._client.is_silent, limit_s=60)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.stop()
        self._stack.served(self._name, "ingress by the VIP", self.seen())

    def seen(self) -> Seen:
        """What it felt."""
        return history.seen(history.attempts(self._client.lines))


def _pages() -> dict[str, object]:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
    items = [item for name, host in PAGES.items() for item in _page(name, host)]
    return {"apiVersion": "v1", "kind": "List", "items": [namespace, *items]}


def _page(name: str, host: str) -> Iterable[object]:
    """Pods that answer /hostname with their own names, which begin with `name`."""
    about = {"name": name, "namespace": _NAMESPACE}
    labels = {"app": name}
    agnhost = versions.for_kubernetes(config.kubernetes()).agnhost
    container = {
        "name": name,
        "image": f"registry.k8s.io/e2e-test-images/agnhost:{agnhost}",
        "args": ["netexec", "--http-port=8080"],
        "readinessProbe": {"httpGet": {"path": "/hostname", "port": 8080}, "periodSeconds": 2},
    }
    pod = {"containers": [container], "terminationGracePeriodSeconds": 2}
    yield {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": about,
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": about,
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    backend = {"service": {"name": name, "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    yield {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": about,
        "spec": {"rules": [{"host": host, "http": {"paths": [path]}}]},
    }
