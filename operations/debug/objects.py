"""The pod on a node, and what runs in it: pure."""

from __future__ import annotations

from collections.abc import Mapping

from operations.engine import asker
from stacks.cluster.plan import Node
from stacks.documents.kubernetes_objects import TOLERATE_ALL, Document, host_path, mount

NAMESPACE = "kube-system"  # who may start a shell in a pod here may do everything anyway
LABEL = "kube-ha.io/debug"
CONTAINER = "toolbox"
HOST = "/host"  # where the machine's disk is

BEAT_S = 10
GONE_S = 60
BEAT, END = "beat\n", "end\n"

_CONTAINERD = "/run/containerd"
_ETCD = "/etc/kube-ha/etcd"
# Last in it the node's own programs, of the very versions of the cluster: linked statically, so
# that they run beside any other libc.
_PATH = f"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{HOST}/usr/local/bin"


def life() -> list[str]:
    """The first process of a container with tools, for as long as somebody writes to it.

    It ends once there was no line for so long, whatever became of the client, and all that was
    started beside it ends with it.
    """
    return shell(f'while read -r -t {GONE_S} word && [ "$word" != {END.strip()} ]; do :; done')


def shell(command: str) -> list[str]:
    """A command by bash, else by sh; a shell of its own where it is empty."""
    run = 'exec "$s" -c "$1"' if command else 'exec "$s"'
    return [
        "sh",
        "-c",
        f"s=$(command -v bash || echo sh); {run}",
        "sh",
        *([command] if command else []),
    ]


def environment(node: Node) -> dict[str, str]:
    """What makes the node's own programs find their sockets and keys."""
    etcd = {
        "ETCDCTL_ENDPOINTS": "https://127.0.0.1:2379",
        "ETCDCTL_CACERT": f"{HOST}{_ETCD}/ca.crt",
        "ETCDCTL_CERT": f"{HOST}{_ETCD}/client.crt",
        "ETCDCTL_KEY": f"{HOST}{_ETCD}/client.key",
    }
    return {
        "PATH": _PATH,
        "CONTAINERD_NAMESPACE": "k8s.io",
        "CONTAINER_RUNTIME_ENDPOINT": f"unix://{_CONTAINERD}/containerd.sock",
        **(etcd if "etcd" in node.roles else {}),
    }


def pod(name: str, node: Node, image: str, *, limit_s: int) -> Document:
    """On that node without being scheduled, whatever its taints; it ends by itself at the limit.

    Without a priority: a node that is full evicts nobody for it.
    """
    container: Document = {
        "name": CONTAINER,
        "image": image,
        "command": life(),
        "stdin": True,
        "env": [{"name": key, "value": value} for key, value in environment(node).items()],
        "securityContext": {"privileged": True, "runAsUser": 0},
        "volumeMounts": [
            {**mount("host", HOST), "mountPropagation": "HostToContainer"},
            mount("containerd", _CONTAINERD),
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {LABEL: "node"},
            "annotations": {asker.ANNOTATION: asker.name()},
        },
        "spec": {
            "nodeName": node.name,
            "hostNetwork": True,
            "hostPID": True,
            "hostIPC": True,
            # Names as the machine itself has them; those of the cluster by `dig @ADDRESS`.
            "dnsPolicy": "Default",
            "restartPolicy": "Never",
            "activeDeadlineSeconds": limit_s,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "tolerations": TOLERATE_ALL,
            "containers": [container],
            "volumes": [host_path("host", "/"), host_path("containerd", _CONTAINERD)],
        },
    }


# Of a container in somebody's pod. Not privileged: who may start a shell in that pod may start one
# in this container too, and would have the node.
IN_A_POD: Mapping[str, object] = {
    "securityContext": {
        "runAsUser": 0,
        "runAsNonRoot": False,
        "capabilities": {"add": ["NET_ADMIN", "NET_RAW", "SYS_PTRACE"]},
    }
}


def full_reference(image: str) -> str:
    """As containerd knows it: `busybox` is `docker.io/library/busybox:latest`."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        image = f"docker.io/{image}"
    last = image.rpartition("/")[2]
    return image if ":" in last or "@" in last else f"{image}:latest"
