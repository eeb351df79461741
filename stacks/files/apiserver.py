"""Files that the API server reads: audit policy, admission, trust, encryption at rest."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.files.yaml_text import documents
from stacks.plan import Plan

_POLICY: dict[str, object] = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}


def audit_policy(plan: Plan) -> str:
    """/etc/kubernetes/audit-policy.yaml: the user's policy, or who changed what, without bodies."""
    policy = plan.spec.control_plane.audit.policy
    return documents({**_POLICY, **(policy if policy is not None else _default())})


def _default() -> dict[str, object]:
    """The first rule that fits a request decides."""
    return {
        "omitStages": ["RequestReceived"],
        "rules": [
            # What the cluster says about itself all day.
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
            # Reading these matters as much as writing; exec over websockets is a get.
            {
                "level": "Metadata",
                "resources": [
                    {
                        "group": "",
                        "resources": [
                            "secrets",
                            "serviceaccounts/token",
                            "pods/exec",
                            "pods/attach",
                            "pods/portforward",
                            "nodes/proxy",
                        ],
                    }
                ],
            },
            {"level": "None", "verbs": ["get", "list", "watch"]},
            {"level": "Metadata"},
        ],
    }


# Of the cluster's own parts: these need more than any standard but privileged allows.
_OWN_NAMESPACES = ("kube-flannel", "kube-ha-acceptance", "kube-system")


def admission_configuration(plan: Plan) -> str:
    """/etc/kubernetes/admission.yaml; empty where Kubernetes' own defaults hold."""
    wanted = plan.spec.control_plane.pod_security
    if wanted is None:
        return ""
    defaults: dict[str, object] = {}
    for mode in ("enforce", "audit", "warn"):
        defaults[mode] = getattr(wanted, mode)
        defaults[f"{mode}-version"] = wanted.version
    configuration = {
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
        "defaults": defaults,
        "exemptions": {
            "usernames": [],
            "runtimeClasses": [],
            "namespaces": sorted({*_OWN_NAMESPACES, *wanted.exempt_namespaces}),
        },
    }
    return documents(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AdmissionConfiguration",
            "plugins": [{"name": "PodSecurity", "configuration": configuration}],
        }
    )


def oidc_ca(plan: Plan) -> str:
    """/etc/kubernetes/oidc-ca.crt; empty where the machine's own CAs are trusted."""
    oidc = plan.spec.control_plane.oidc
    return (oidc.ca if oidc else None) or ""


def encryption_config(keys: Mapping[str, str]) -> str:
    """/etc/kubernetes/encryption.yaml; `keys` are 32 bytes in base64 by name. Secret.

    The first key encrypts, all decrypt. `identity` comes last, so that what was written before
    encryption can still be read.
    """
    return documents(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "EncryptionConfiguration",
            "resources": [
                {
                    "resources": ["secrets"],
                    "providers": [
                        {"secretbox": {"keys": _named(keys)}},
                        {"identity": {}},
                    ],
                }
            ],
        }
    )


def _named(keys: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "secret": secret} for name, secret in keys.items()]
