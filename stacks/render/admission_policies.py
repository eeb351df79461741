"""What API servers refuse of whoever lives on a node: its kubelet, and the pod network's account.

RBAC and NodeRestriction let a kubelet write any annotation of its own Node, and flannel's account
the status of every Node; what the product reads there may be what it wrote itself and nothing else.
A policy holds for those alone whom its conditions name, so who may do everything is never locked
out: that one applies these policies anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from stacks.cluster.certificates import APPROVER
from stacks.cluster.plan import Plan
from stacks.documents.admission import NODE_VARIABLES, policy
from stacks.documents.kubernetes_objects import Document
from stacks.documents.yaml_text import documents
from stacks.networks import registry
from stacks.render.lost_nodes import CREDENTIALS

_OURS = "kube-ha.io/"

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


def admission_policies(plan: Plan) -> str:
    """ValidatingAdmissionPolicies with their bindings."""
    policies = [_of_kubelets(), _of_settings(), *registry.of(plan.spec).policies()]
    return documents(*(document for pair in policies for document in pair))


def _of_kubelets() -> tuple[Document, Document]:
    shapes = {f"{_OURS}{word}": shape for word, shape in SELF.items()}
    return policy(
        "kube-ha-kubelets",
        rules=[("", ["nodes", "nodes/status"], ["CREATE", "UPDATE"])],
        of="request.userInfo.username.startsWith('system:node:')",
        variables={**NODE_VARIABLES, "shapes": json.dumps(shapes)},
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
    return policy(
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
