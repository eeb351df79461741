"""What a machine fetches, and through which proxy."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.cluster.artifacts import IMAGE, File
from stacks.cluster.plan import Node, Plan
from stacks.networks import registry
from stacks.render import containerd

_WORKER_FILES = ("containerd", "runc", "cni-plugins", "kubeadm", "kubelet")
_MASTER_FILES = (*_WORKER_FILES, "kubectl")
_WORKER_IMAGES = ("pause", "kube-proxy", "coredns", "agnhost")
_MASTER_IMAGES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def downloads(node: Node) -> tuple[str, ...]:
    """Names of the files that the node phase fetches, as in artifacts/lock.yaml."""
    if not node.in_kubernetes:
        return ()
    if not node.is_master:
        return _WORKER_FILES
    # A member's own phase brings etcd with all its tools.
    return _MASTER_FILES if node.is_etcd else (*_MASTER_FILES, "etcd")


def node_artefacts(plan: Plan, node: Node, files: Mapping[str, File]) -> str:
    """Value ARTEFACTS of the node phase: files, and with a mirror the images that may run there."""
    pinned = [name for name in node_images(plan, node) if name in files]
    return artefacts(files, (*downloads(node), *pinned))


def node_images(plan: Plan, node: Node) -> tuple[str, ...]:
    """Names, as among files, of the images of kube-ha that may run on a node."""
    network = registry.of(plan.spec)
    own = [*_WORKER_IMAGES]
    if plan.spec.network.kube_proxy_replacement:
        own.remove("kube-proxy")
    if node.is_master:
        own += [*_MASTER_IMAGES, *network.MASTER_IMAGES]
    return tuple(f"{IMAGE}{name}" for name in (*own, *network.IMAGES))


def artefacts(files: Mapping[str, File], names: tuple[str, ...]) -> str:
    """Lines `name url sum` for a phase's value ARTEFACTS.

    The sum is a SHA-256 of the mirror's manifest; without a mirror `published:<url>` of upstream's.
    Of an image the line is `image/name reference digest`.
    """
    return "\n".join(
        f"{name} {file.url} {file.sha256 or f'published:{file.published}'}"
        for name, file in ((name, files[name]) for name in names)
    )


def proxy(plan: Plan) -> dict[str, str]:
    lines = "\n".join(f"{key}={value}" for key, value in containerd.proxy_environment(plan))
    return {"PROXY_ENV": lines}
