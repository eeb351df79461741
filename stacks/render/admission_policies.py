"""What API servers refuse of whoever lives on a node: its kubelet, and flannel's account there.

RBAC and NodeRestriction let a kubelet write any annotation of its own Node, and flannel's account
the status of every Node; what the product reads there may be what it wrote itself and nothing else.
A policy holds for those alone whom its conditions name, so who may do everything is never locked
out: that one applies these policies anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from stacks.cluster.certificates import APPROVER
from stacks.cluster.plan import Plan
from stacks.render.kubernetes_objects import Document, meta
from stacks.render.lost_nodes import CREDENTIALS
from stacks.render.yaml_text import documents

_VERSION = "admissionregistration.k8s.io/v1"
_OURS = "kube-ha.io/"
_FLANNELS = "flannel.alpha.coreos.com/"
_FLANNEL = "system:serviceaccount:kube-flannel:flannel"

# What a node says of itself by its kubelet's identity (lib.sh, update.sh), in RE2. Everything else
# of ours is what a master says of it.
SELF: Mapping[str, str] = {
    "applied": "^[0-9a-f]{16}$",
    "begun": "^[0-9a-f]{16}$",
    "cordoned": "^(not-)?ready$",
    "failed": r"^[0-9a-f]{16} [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z [ !#-\[\]-{}~]{0,200}$",
    "os": "^[A-Za-z0-9][A-Za-z0-9._:+-]{0,62}$",
    "updating": "^[A-Za-z0-9][A-Za-z0-9 .,:>+_-]{0,199}$",
}
# Of NodeStatus, all but the conditions.
_STATUS = (
    *("addresses", "allocatable", "capacity", "config", "daemonEndpoints", "declaredFeatures"),
    *("features", "images", "nodeInfo", "phase", "runtimeHandlers", "volumesAttached"),
    "volumesInUse",
)
# An object may have none; of a Node that is being made there is none before.
_VARIABLES = {
    "old": "oldObject == null ? object : oldObject",
    "now": "object.metadata.?annotations.orValue({})",
    "was": "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})",
}
_SAME = "object.{0} == variables.old.{0}"


def admission_policies(plan: Plan) -> str:
    """ValidatingAdmissionPolicies with their bindings."""
    policies = [_of_kubelets(), _of_settings()]
    if plan.spec.network.plugin == "flannel":
        policies.append(_of_flannel())
    return documents(*(document for policy in policies for document in policy))


def _of_kubelets() -> tuple[Document, Document]:
    shapes = {f"{_OURS}{word}": shape for word, shape in SELF.items()}
    return _policy(
        "kube-ha-kubelets",
        rules=[("", ["nodes", "nodes/status"], ["CREATE", "UPDATE"])],
        of="request.userInfo.username.startsWith('system:node:')",
        variables={**_VARIABLES, "shapes": json.dumps(shapes)},
        validations={
            f"variables.now.all(k, !k.startsWith('{_OURS}') || (k in variables.was && "
            "variables.was[k] == variables.now[k]) || (k in variables.shapes && "
            "variables.now[k].matches(variables.shapes[k])))": "annotations kube-ha.io/* of a Node "
            "are its masters', but for what a node says of itself, in the form that it does",
            f"variables.was.all(k, !k.startsWith('{_OURS}') || k in variables.now || "
            "k in variables.shapes)": "annotations kube-ha.io/* of a Node are removed by its "
            "masters",
            # It would outlive the order to delete it.
            "object.metadata.?finalizers.orValue([]) == (oldObject == null ? [] : "
            "oldObject.metadata.?finalizers.orValue([]))": "finalizers of a Node are not its "
            "kubelet's",
        },
    )


def _of_flannel() -> tuple[Document, Document]:
    node = "authentication.kubernetes.io/node-name"
    others = f"!k.startsWith('{_FLANNELS}')"
    without = ".?status.?conditions.orValue([]).filter(c, c.type != 'NetworkUnavailable')"
    kept = ["metadata.?labels", "metadata.?finalizers", "metadata.?ownerReferences", "spec"]
    kept += [f"?status.?{field}" for field in _STATUS]
    return _policy(
        "kube-ha-flannel",
        rules=[("", ["nodes", "nodes/status"], ["CREATE", "UPDATE", "DELETE"])],
        of=f"request.userInfo.username == '{_FLANNEL}'",
        variables=_VARIABLES,
        validations={
            # API servers put it into the tokens of pods, and no node gets one of another's pod.
            "request.operation == 'UPDATE' && has(request.userInfo.extra) && "
            f"'{node}' in request.userInfo.extra && "
            f"request.userInfo.extra['{node}'] == [request.name]": "flannel changes the Node alone "
            "that its pod runs on",
            f"variables.now.all(k, k.startsWith('{_FLANNELS}') || (k in variables.was && "
            f"variables.was[k] == variables.now[k])) && variables.was.all(k, {others} ? "
            "k in variables.now : true)": f"flannel changes no annotation but {_FLANNELS}*",
            " && ".join(
                _SAME.format(path) for path in kept
            ): "flannel changes nothing of a Node but its annotations and NetworkUnavailable",
            f"object{without} == variables.old{without}": "flannel changes no condition of a Node "
            "but NetworkUnavailable",
        },
    )


def _of_settings() -> tuple[Document, Document]:
    """What masters act on, and what every kubelet follows at its next change."""
    name = "variables.either.metadata.name"
    unlabelled = f"({{0}} == null || !('{_OURS}addon' in {{0}}.metadata.?labels.orValue({{{{}}}})))"
    settings = json.dumps(["kubeadm-config", "kubelet-config"])
    # Which incarnations it notes something of is not its own word.
    notes = (
        f"request.userInfo.username == '{APPROVER}' && request.operation == 'UPDATE' && "
        f"request.name == '{CREDENTIALS}' && object.metadata.?annotations == "
        "oldObject.metadata.?annotations"
    )
    return _policy(
        "kube-ha-settings",
        rules=[("", ["configmaps"], ["CREATE", "UPDATE", "DELETE"])],
        namespace="kube-system",
        # A rule that names none but "*" matches this: that of cluster-admin.
        of="!authorizer.group('*').resource('*').check('*').allowed()",
        variables={"either": "object == null ? oldObject : object"},
        validations={
            f"({notes}) || !{name}.startsWith('kube-ha-') && !({name} in {settings}) && "
            f"{unlabelled.format('object')} && {unlabelled.format('oldObject')}": "the cluster is "
            "run by this ConfigMap: who may not do everything does not change it",
        },
    )


def _policy(
    name: str,
    *,
    rules: Sequence[tuple[str, list[str], list[str]]],
    of: str,
    variables: Mapping[str, str],
    validations: Mapping[str, str],
    namespace: str | None = None,
) -> tuple[Document, Document]:
    """A policy and its binding; `rules` are (API group, resources, operations).

    `of`: for whom it holds. `validations`: what has to be so, and what the others are told.
    """
    constraints: Document = {
        "resourceRules": [
            {"apiGroups": [group], "apiVersions": ["v1"], "operations": verbs, "resources": what}
            for group, what, verbs in rules
        ]
    }
    if namespace is not None:
        labels = {"kubernetes.io/metadata.name": namespace}
        constraints["namespaceSelector"] = {"matchLabels": labels}
    spec: Document = {
        "failurePolicy": "Fail",
        "matchConstraints": constraints,
        "matchConditions": [{"name": "whom", "expression": of}],
        "variables": [{"name": key, "expression": text} for key, text in variables.items()],
        "validations": [
            {"expression": text, "message": message} for text, message in validations.items()
        ],
    }
    kind = "ValidatingAdmissionPolicy"
    return (
        {"apiVersion": _VERSION, "kind": kind, "metadata": meta(name), "spec": spec},
        {
            "apiVersion": _VERSION,
            "kind": f"{kind}Binding",
            "metadata": meta(name),
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    )
