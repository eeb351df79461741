"""default-deny: in some namespaces nothing is allowed but DNS, until a NetworkPolicy allows it.

The core API has no policy for several namespaces, and nothing that makes one in each that comes: so
it is an object in each namespace that the config names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stacks.catalogue.entry import NodePort, Wanted
from stacks.config.problems import Problem
from stacks.config.spec import AddonSpec, Spec
from stacks.documents.kubernetes_objects import Document, meta
from stacks.releases.versions import Versions

_NAME = "default-deny"
_POLICY = "kube-ha-default-deny"
# Of Kubernetes itself, and of kube-ha: what runs there would lose the API and each other.
_RESERVED = "kube-"

ROLLOUTS: tuple[str, ...] = ()
SETTINGS: tuple[str, ...] = ("namespaces",)
REGISTRIES: tuple[str, ...] = ()
LOCAL_PORTS: Mapping[int, str] = {}
PORTS: tuple[NodePort, ...] = ()
READS_NODES: bool = False
LOGS_IN: bool = False
NODE_FOLDER: str = ""
NEEDS_LAYER_2: bool = False
NEEDS_POLICIES: bool = True


def version(versions: Versions) -> str:
    """Of its own: it runs nothing that has one."""
    del versions
    return "1"


def problems(spec: Spec) -> Iterator[Problem]:
    """No namespace, one twice, or one of the cluster's own."""
    names = spec.addons[_NAME].namespaces
    path = f"addons.{_NAME}.namespaces"
    if not names:
        yield Problem(path, "is empty; name the namespaces, or leave the add-on out")
    for place, name in enumerate(names):
        if name in names[:place]:
            yield Problem(f"{path}[{place}]", f"{name} is there twice; leave one out")
        if name.startswith(_RESERVED):
            text = f"{name} has pods that the cluster itself needs; write policies there yourself"
            yield Problem(f"{path}[{place}]", text)


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """A NetworkPolicy in each namespace, which has to be there."""
    del wanted
    return tuple(_policy(name) for name in sorted(said.namespaces))


def _policy(namespace: str) -> Document:
    dns: Document = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    ports = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": meta(_POLICY, namespace),
        "spec": {
            "podSelector": {},
            "policyTypes": ["Ingress", "Egress"],
            "egress": [{"to": [dns], "ports": ports}],
        },
    }


def notices(was: AddonSpec | None, now: AddonSpec | None) -> Iterable[str]:
    """A policy ends connections of pods that run; without it whatever else allows them is back."""
    before, after = (() if one is None else one.namespaces for one in (was, now))
    if new := _named(after, before):
        yield f"connections from and to pods in {new} end, but for those that policies there allow"
    if gone := _named(before, after):
        yield f"pods in {gone} are reached by everybody again, but for what policies there forbid"


def _named(names: Sequence[str], others: Sequence[str]) -> str:
    return ", ".join(sorted({*names} - {*others}))
