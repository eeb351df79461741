"""The API server's audit log: what is in it, and where it goes besides the disk of its master."""

from __future__ import annotations

import base64

from stacks.cluster.plan import Plan
from stacks.documents.yaml_text import documents, on_one_line
from stacks.render.authentication import HEALTH_PATHS

_POLICY: dict[str, object] = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
_READ = ["get", "list", "watch"]
_WRITE = ["create", "update", "patch", "delete", "deletecollection"]


def policy(plan: Plan) -> str:
    """/etc/kubernetes/audit-policy.yaml: the user's policy, or that of `audit.detail`."""
    said = plan.spec.control_plane.audit
    if said.policy is not None:
        return documents({**_POLICY, **said.policy})
    return _bodies() if said.detail == "bodies" else documents({**_POLICY, **_metadata()})


# What the cluster says about itself all day. The first rule that fits a request decides.
_NOISE: tuple[dict[str, object], ...] = (
    {
        "level": "None",
        "resources": [
            {"group": "", "resources": ["events"]},
            {"group": "events.k8s.io", "resources": ["events"]},
            {"group": "coordination.k8s.io", "resources": ["leases"]},
        ],
    },
    {
        "level": "None",
        "userGroups": ["system:nodes"],
        "resources": [
            {"group": "", "resources": ["nodes/status", "pods/status"]},
            {"group": "authentication.k8s.io", "resources": ["tokenreviews"]},
            {"group": "authorization.k8s.io", "resources": ["subjectaccessreviews"]},
        ],
    },
)
# Reading these matters as much as writing; exec over websockets is a get.
_DOORS = (
    "secrets",
    "serviceaccounts/token",
    "pods/exec",
    "pods/attach",
    "pods/portforward",
    "nodes/proxy",
)


def _metadata() -> dict[str, object]:
    """Who changed what, without bodies."""
    return {
        "omitStages": ["RequestReceived"],
        "rules": [
            *_NOISE,
            {"level": "Metadata", "resources": [{"group": "", "resources": list(_DOORS)}]},
            {"level": "None", "verbs": _READ},
            {"level": "Metadata"},
        ],
    }


def _bodies() -> str:
    """Also what was written, where that is what one asks after a break-in; and who probed.

    A policy cannot ask whether somebody impersonates: what is logged names both. A rule a line: the
    whole of it travels in one command with all else that makes a master.
    """
    rules = [on_one_line(rule) for rule in (*_NOISE, *_rules_with_bodies())]
    head = {**_POLICY, "omitStages": ["RequestReceived"], "omitManagedFields": True}
    return documents(head) + "rules:\n" + "".join(f"- {rule}\n" for rule in rules)


def _rules_with_bodies() -> list[dict[str, object]]:
    more = ["pods/proxy", "services/proxy", "pods/log", "pods/ephemeralcontainers"]
    return [
        {"level": "None", "nonResourceURLs": [f"{path}*" for path in HEALTH_PATHS]},
        {
            "level": "RequestResponse",
            "verbs": _WRITE,
            "resources": [{"resources": ["pods/ephemeralcontainers"]}],
        },
        # Before any rule with bodies: what is secret by itself, or holds what is.
        {
            "level": "Metadata",
            "resources": [
                {"resources": [*_DOORS, *more]},
                {"group": "authentication.k8s.io"},
            ],
        },
        {
            "level": "Request",
            "verbs": _WRITE,
            "resources": [
                {"group": "rbac.authorization.k8s.io"},
                {"group": "admissionregistration.k8s.io"},
                {"group": "certificates.k8s.io"},
                {"resources": ["pods", "replicationcontrollers"]},
                {
                    "group": "apps",
                    "resources": ["daemonsets", "deployments", "replicasets", "statefulsets"],
                },
                {"group": "batch", "resources": ["cronjobs", "jobs"]},
            ],
        },
        # Who is nobody, or could not prove who it is, is in no such group.
        {"level": "None", "userGroups": ["system:authenticated"], "verbs": _READ},
        {"level": "Metadata"},
    ]


def webhook(plan: Plan) -> str:
    """/etc/kubernetes/audit-webhook.yaml, a kubeconfig; empty where there is no collector."""
    said = plan.spec.control_plane.audit.webhook
    if said is None:
        return ""
    cluster = {"server": said.url}
    if said.ca:
        cluster["certificate-authority-data"] = base64.b64encode(said.ca.encode()).decode()
    return documents(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "collector", "cluster": cluster}],
            "users": [{"name": "api-server", "user": {}}],
            "contexts": [
                {"name": "audit", "context": {"cluster": "collector", "user": "api-server"}}
            ],
            "current-context": "audit",
        }
    )
