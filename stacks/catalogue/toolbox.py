"""toolbox: the image of `make debug` is on nodes before it is needed.

It is in use there, so that no kubelet drops it. The pods that keep it may do nothing: a privileged
one is there only while somebody debugs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stacks.catalogue.entry import NodePort, Wanted, no_notices
from stacks.catalogue.pods import CONFINED
from stacks.config.problems import Problem
from stacks.config.spec import AddonSpec, Spec
from stacks.documents.kubernetes_objects import (
    REAL_NODES,
    SECCOMP,
    TOLERATE_ALL,
    Document,
    meta,
    requests,
)
from stacks.releases.versions import Versions

_NAMESPACE = "kube-system"
_NAME = "toolbox"
_LABELS = {"app": _NAME}

ROLLOUTS: tuple[str, ...] = (f"{_NAMESPACE}/daemonset/{_NAME}",)
SETTINGS: tuple[str, ...] = ("nodes",)
REGISTRIES: tuple[str, ...] = ("docker.io",)
LOCAL_PORTS: Mapping[int, str] = {}
PORTS: tuple[NodePort, ...] = ()
READS_NODES: bool = False
LOGS_IN: bool = False
NEEDS_LAYER_2: bool = False
NEEDS_POLICIES: bool = False
notices = no_notices
NODE_FOLDER: str = ""


def image(versions: Versions) -> str:
    """Its reference, as artifacts/lock.yaml has it."""
    return f"docker.io/nicolaka/netshoot:v{versions.toolbox}"


def version(versions: Versions) -> str:
    """Of the set, as artifacts/lock.yaml has it."""
    return versions.toolbox


def problems(spec: Spec) -> Iterable[Problem]:
    """None: an image can be kept everywhere."""
    del spec
    return ()


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """A DaemonSet of pods that sleep."""
    container: Document = {
        "name": _NAME,
        "image": image(wanted.versions),
        "command": ["sleep", "2147483647"],
        "resources": requests("1m", "4Mi"),
        "securityContext": CONFINED,
    }
    pod: Document = {
        "securityContext": SECCOMP | {"runAsNonRoot": True, "runAsUser": 65534},
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # Nothing is lost with it, and as the first process of its own it takes no other signal.
        "terminationGracePeriodSeconds": 1,
        "tolerations": TOLERATE_ALL,
        "affinity": REAL_NODES,
        **({"nodeSelector": dict(sorted(said.nodes.items()))} if said.nodes else {}),
        "containers": [container],
    }
    return (
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": meta(_NAME, _NAMESPACE, **_LABELS),
            "spec": {
                "selector": {"matchLabels": _LABELS},
                # All at once: nobody's work is in it.
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": "100%"},
                },
                "template": {"metadata": {"labels": _LABELS}, "spec": pod},
            },
        },
    )
