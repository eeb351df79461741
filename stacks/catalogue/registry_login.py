"""registry-login: with which login the kubelet of each node pulls images, whatever pod names them.

The login is in one Secret, which nodes may read. The kubelet of each asks a program for it, as
upstream's kubelet credential providers do (components/scripts/registry-login.sh). So another login
changes one object, and nothing on a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stacks.catalogue.entry import NodePort, Wanted
from stacks.config.problems import Problem
from stacks.config.spec import AddonSpec, Spec
from stacks.documents.kubernetes_objects import Document, meta
from stacks.releases.versions import Versions

_NAME = "registry-login"  # its Secret and its rights, too; the program on nodes reads that name
_NAMESPACE = "kube-system"
_TYPE = "kubernetes.io/dockerconfigjson"
_SECRET = (
    f"{_NAME}: {{namespaces: [{_NAMESPACE}], type: {_TYPE}, data: {{.dockerconfigjson: NAME}}}}"
)
_RBAC = "rbac.authorization.k8s.io"

ROLLOUTS: tuple[str, ...] = ()
SETTINGS: tuple[str, ...] = ("hosts",)
REGISTRIES: tuple[str, ...] = ()
LOCAL_PORTS: Mapping[int, str] = {}
PORTS: tuple[NodePort, ...] = ()
READS_NODES: bool = False
LOGS_IN: bool = True
NODE_FOLDER: str = ""
NEEDS_LAYER_2: bool = False
NEEDS_POLICIES: bool = False


def version(versions: Versions) -> str:
    """Of its own: it runs nothing that has one."""
    del versions
    return "1"


def problems(spec: Spec) -> Iterator[Problem]:
    """No registry, one twice, or another Secret than the one that nodes read."""
    said = spec.addons[_NAME]
    path = f"addons.{_NAME}"
    if not said.hosts:
        yield Problem(f"{path}.hosts", "is empty; name the registries, or leave the add-on out")
    for place, host in enumerate(said.hosts):
        if host in said.hosts[:place]:
            yield Problem(f"{path}.hosts[{place}]", f"{host} is there twice; leave one out")
    secret = said.secrets.get(_NAME)
    if [*said.secrets] != [_NAME] or secret is None:
        yield Problem(f"{path}.secrets", f"nodes read one Secret alone; write {_SECRET}")
    elif (secret.namespaces, secret.type) != ((_NAMESPACE,), _TYPE):
        yield Problem(f"{path}.secrets.{_NAME}", f"is not what nodes read; write {_SECRET}")


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """The right of nodes to read this one Secret."""
    del wanted, said
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [_NAME], "verbs": ["get"]}
    return (
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": meta(_NAME, _NAMESPACE),
            "rules": [rule],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta(_NAME, _NAMESPACE),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": _NAME},
            "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": "system:nodes"}],
        },
    )


def notices(was: AddonSpec | None, now: AddonSpec | None) -> Iterable[str]:
    """A pod that starts without the login that its image needs."""
    before, after = (() if one is None else one.hosts for one in (was, now))
    if gone := sorted({*before} - {*after}):
        yield f"images of {', '.join(gone)} are pulled without the nodes' login"
