"""Files that the API server reads: admission, encryption at rest."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.cluster.plan import Plan
from stacks.documents.yaml_text import documents, on_one_line
from stacks.networks import registry


def _own_namespaces(plan: Plan) -> set[str]:
    """Of the cluster's own parts that need more than any standard but privileged allows.

    No others: whoever may make a namespace could make one of that name, and is not looked at there.
    """
    return {"kube-system", *registry.of(plan.spec).NAMESPACES}


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
            "namespaces": sorted({*_own_namespaces(plan), *wanted.exempt_namespaces}),
        },
    }
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    plugin: dict[str, object] = {"name": "PodSecurity", "configuration": configuration}
    if plan.spec.cluster.defaults == 1:
        return documents({**head, "plugins": [plugin]})
    # It travels in one command with all else that makes a master.
    return documents(head) + f"plugins:\n- {on_one_line(plugin)}\n"


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
