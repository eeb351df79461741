"""Manifest that refuses what machines ask for that were given up, should one of them be used again.

A kubelet's certificate cannot be called back. With it a machine would register its Node again, run
pods that run elsewhere by now, and ask for tokens of their accounts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from stacks.cluster import fence
from stacks.cluster.plan import Plan
from stacks.documents.kubernetes_objects import Document, meta
from stacks.documents.yaml_text import documents

SHUT_OUT = "kube-ha-lost-nodes"
REPLACED = "kube-ha-replaced-nodes"
# ConfigMap in kube-system. Its annotation names incarnations, words "name.generation"; by each of
# them the approver keeps the certificates that it was given, parted by blanks, as API servers name
# them.
CREDENTIALS = "kube-ha-credentials"
INCARNATIONS = "kube-ha.io/incarnations"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_VERSION = "admissionregistration.k8s.io/v1"
# Whatever is written: what is forgotten in a list, a thief finds. Reading is not asked here at all.
_ALL: Document = {
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "operations": ["*"],
    "resources": ["*/*"],
}
# Matches next to nothing while nobody is fenced.
_NONE: Document = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["nodes"],
}


def lost_nodes(plan: Plan) -> str:
    """Both policies and their bindings; there without fenced nodes too, and then idle."""
    again = [(one.name, node.generation) for one, node in fence.known_anew(plan)]
    return documents(
        *_policy(
            SHUT_OUT,
            (one.name for one in fence.shut_out(plan)),
            allowed="false",
            message="this node was given up (declared lost or compromised in the stack's config); "
            "it comes back with a raised generation",
        ),
        _credentials(again),
        *_policy(
            REPLACED,
            (name for name, _ in again),
            allowed=_is_known(again),
            message="this certificate is not one of the node's present incarnation; a new one is "
            "known a few seconds after it was signed",
        ),
    )


def _credentials(again: Iterable[tuple[str, int]]) -> Document:
    """Without data: that is the approver's."""
    about: Document = dict(meta(CREDENTIALS, "kube-system"))
    about["annotations"] = {INCARNATIONS: " ".join(f"{name}.{number}" for name, number in again)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}


def _is_known(again: Iterable[tuple[str, int]]) -> str:
    keys = {f"system:node:{name}": f"{name}.{generation}" for name, generation in again}
    if not keys:
        return "true"
    # Without the ConfigMap nothing is known, and nothing is let in.
    held = f"params.?data[{json.dumps(keys)}[request.userInfo.username]].orValue('')"
    ids = f"request.userInfo.?extra['{_CREDENTIAL}'].orValue([])"
    return f"{ids}.exists(id, id in {held}.split(' '))"


def _policy(
    name: str, nodes: Iterable[str], *, allowed: str, message: str
) -> tuple[Document, Document]:
    # Names are DNS labels: nothing in them ends a text of CEL.
    users = [f"system:node:{node}" for node in nodes]
    is_one = f"request.userInfo.username in {json.dumps(users)}" if users else "false"
    takes_list = allowed not in ("true", "false")
    policy: Document = {
        "failurePolicy": "Fail",
        **({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}} if takes_list else {}),
        "matchConstraints": {"resourceRules": [_ALL if users else _NONE]},
        "matchConditions": [{"name": "is-one", "expression": is_one}],
        "validations": [{"expression": allowed, "message": message}],
    }
    binding: Document = {"policyName": name, "validationActions": ["Deny"]}
    if takes_list:
        # Not Deny: it would be asked of everybody's writes, before anybody's name.
        at = {"name": CREDENTIALS, "namespace": "kube-system"}
        binding["paramRef"] = {**at, "parameterNotFoundAction": "Allow"}
    return (
        {
            "apiVersion": _VERSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": meta(name),
            "spec": policy,
        },
        {
            "apiVersion": _VERSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": meta(name),
            "spec": binding,
        },
    )
