"""ValidatingAdmissionPolicies: whom one holds for, and what has to be so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stacks.documents.kubernetes_objects import Document, meta

_VERSION = "admissionregistration.k8s.io/v1"

# An object may have none; of a Node that is being made there is none before.
NODE_VARIABLES: Mapping[str, str] = {
    "old": "oldObject == null ? object : oldObject",
    "now": "object.metadata.?annotations.orValue({})",
    "was": "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})",
}


def policy(
    name: str,
    *,
    rules: Sequence[tuple[str, list[str], list[str]]],
    of: str,
    variables: Mapping[str, str],
    validations: Mapping[str, str],
    namespace: str | None = None,
    api_versions: Sequence[str] = ("v1",),
) -> tuple[Document, Document]:
    """A policy and its binding; `rules` are (API group, resources, operations).

    `of`: for whom it holds. `validations`: what has to be so, and what the others are told.
    """
    constraints: Document = {"resourceRules": [_rule(*rule, api_versions) for rule in rules]}
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


def _rule(
    group: str, resources: list[str], operations: list[str], versions: Sequence[str]
) -> Document:
    return {
        "apiGroups": [group],
        "apiVersions": [*versions],
        "operations": operations,
        "resources": resources,
    }
