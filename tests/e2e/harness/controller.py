"""A real ingress controller on the workers of a story, pages of two hosts behind it, and somebody who visits them."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

from artifacts import build, bundle, oci
from artifacts.lock import Module
from stacks.releases import versions
from tests.e2e.harness import config, history, lab
from tests.e2e.harness.history import Seen
from tests.e2e.harness.load import Client, Keys
from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

_MANIFEST = "examples/manifests/traefik.yaml"
_MODULE = Module(
    name="traefik",
    version="3.6.12",
    folder=Path(__file__).parent / "traefik",
    packages=("github.com/traefik/traefik/v3/cmd/traefik",),
    rename={},
    ldflags="",
    tags="",
    cgo=False,
    cold_s=330,
)
_IMAGE = f"docker.io/library/traefik:v{_MODULE.version}"
_NAMESPACE = "kube-ha-pages"
PAGES = {"shop": "shop.example.com", "blog": "anna.blog.example.com"}  # by what its pods are called


def build_image() -> Path:
    """The controller's image as an archive in the cache; minutes, the first time."""
    arch, cache = build.host_arch(), bundle.cache_folder()
    program = build.build(_MODULE, arch, cache)["traefik"]
    archive = program.parent.with_name(f"{program.parent.name}.image.tar")
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".") as folder:
            layout, top = Path(folder) / "layout", Path(folder) / "layer.tar"
            oci.write_layer(top, {"traefik": program})
            oci.write_image(layout, oci.Config(arch=arch, entrypoint=("/traefik",)), (top,))
            whole = Path(folder) / "image.tar"
            with tarfile.open(whole, "w") as tar:
                tar.add(layout, arcname=".")
            whole.rename(archive)
    return archive


def bring_image(node: Node, archive: Path) -> None:
    """Put it where the node would have pulled it to: the lab's mirror has what a cluster needs, and nothing else."""
    lab.engine("cp", str(archive), f"{node.container}:/var/lib/traefik.tar")
    words = "ctr -n k8s.io images import --local --index-name"
    node.run(f"{words} {_IMAGE} /var/lib/traefik.tar && rm /var/lib/traefik.tar")


def deploy(stack: Stack) -> None:
    """The example's controller as an add-on of the stack, and both pages, on every worker."""
    stack.edit("addons.traefik.manifests", [_MANIFEST])
    stack.up()
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
