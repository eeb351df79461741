"""What an account of a pod network may write of Nodes: of its own node, and little of that."""

from __future__ import annotations

from collections.abc import Collection

from stacks.documents.admission import NODE_VARIABLES, policy
from stacks.documents.kubernetes_objects import Document

# Of NodeStatus, all but the conditions.
_STATUS = (
    *("addresses", "allocatable", "capacity", "config", "daemonEndpoints", "declaredFeatures"),
    *("features", "images", "nodeInfo", "phase", "runtimeHandlers", "volumesAttached"),
    "volumesInUse",
)
_SAME = "object.{0} == variables.old.{0}"


def policy_of(
    name: str, account: str, who: str, annotations: str, *, kept: Collection[str] = ()
) -> tuple[Document, Document]:
    """A policy and its binding.

    The account writes annotations that begin with `annotations`, but none of `kept`, and the
    condition NetworkUnavailable. `who` is what people call it.
    """
    node = "authentication.kubernetes.io/node-name"
    others = f"!k.startsWith('{annotations}')"
    ours = f"k.startsWith('{annotations}')"
    if kept:
        listed = ", ".join(repr(key) for key in sorted(kept))
        ours, others = f"({ours} && !(k in [{listed}]))", f"({others} || k in [{listed}])"
    without = ".?status.?conditions.orValue([]).filter(c, c.type != 'NetworkUnavailable')"
    same = ["metadata.?labels", "metadata.?finalizers", "metadata.?ownerReferences", "spec"]
    same += [f"?status.?{part}" for part in _STATUS]
    return policy(
        name,
        rules=[("", ["nodes", "nodes/status"], ["CREATE", "UPDATE", "DELETE"])],
        of=f"request.userInfo.username == '{account}'",
        variables=NODE_VARIABLES,
        validations={
            # API servers put it into the tokens of pods, and no node gets one of another's pod.
            "request.operation == 'UPDATE' && has(request.userInfo.extra) && "
            f"'{node}' in request.userInfo.extra && "
            f"request.userInfo.extra['{node}'] == [request.name]": f"{who} changes the Node alone "
            "that its pod runs on",
            f"variables.now.all(k, {ours} || (k in variables.was && "
            f"variables.was[k] == variables.now[k])) && variables.was.all(k, {others} ? "
            f"k in variables.now : true)": f"{who} changes no annotation but {annotations}*",
            " && ".join(
                _SAME.format(path) for path in same
            ): f"{who} changes nothing of a Node but its annotations and NetworkUnavailable",
            f"object{without} == variables.old{without}": f"{who} changes no condition of a Node "
            "but NetworkUnavailable",
        },
    )
