"""Manifest that refuses what lost nodes ask for, should one of them come back to life.

Its kubelet still holds a certificate that the cluster's CA signed. It would register its Node again
and run pods that run elsewhere by now.
"""

from __future__ import annotations

import json

from stacks.files.manifests import Document, meta
from stacks.files.yaml_text import documents
from stacks.plan import Plan

_NAME = "kube-ha-lost-nodes"

# What a kubelet writes. Reading is harmless: the node authorizer shows it what belongs to pods that
# are bound to its Node, and that is gone.
_WRITTEN: list[Document] = [
    {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["nodes", "nodes/status", "pods", "pods/status", "pods/eviction", "events"],
    },
    {
        "apiGroups": ["coordination.k8s.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["leases"],
    },
    {
        "apiGroups": ["certificates.k8s.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["certificatesigningrequests"],
    },
    {
        "apiGroups": ["storage.k8s.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["csinodes"],
    },
]


def lost_nodes(plan: Plan) -> str:
    """ValidatingAdmissionPolicy and its binding; there without lost nodes too, and then idle."""
    users = sorted(f"system:node:{node.name}" for node in plan.away if node.state == "lost")
    # Names are DNS labels: nothing in them ends a text of CEL.
    is_lost = f"request.userInfo.username in {json.dumps(users)}" if users else "false"
    policy: Document = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": _WRITTEN},
        "matchConditions": [{"name": "is-lost", "expression": is_lost}],
        "validations": [
            {
                "expression": "false",
                "message": "this node was declared lost in the stack's config; it comes back with "
                "a raised generation",
            }
        ],
    }
    binding: Document = {"policyName": _NAME, "validationActions": ["Deny"]}
    version = "admissionregistration.k8s.io/v1"
    return documents(
        {
            "apiVersion": version,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": meta(_NAME),
            "spec": policy,
        },
        {
            "apiVersion": version,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": meta(_NAME),
            "spec": binding,
        },
    )
