"""What helm makes of a chart, as manifests that say all of themselves: each object its namespace.

helm gives a namespace at installation to objects that name none. Here a line is put into their
text, and nothing else of it changes: read and written again, YAML may become something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import yaml

# Kinds of Kubernetes' own that are in no namespace, by API group.
_CLUSTER_WIDE = {
    "": {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
    "admissionregistration.k8s.io": {
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    },
    "apiextensions.k8s.io": {"CustomResourceDefinition"},
    "apiregistration.k8s.io": {"APIService"},
    "certificates.k8s.io": {"CertificateSigningRequest", "ClusterTrustBundle"},
    "flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
    "networking.k8s.io": {"IPAddress", "IngressClass", "ServiceCIDR"},
    "node.k8s.io": {"RuntimeClass"},
    "rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding"},
    "resource.k8s.io": {"DeviceClass", "DeviceTaintRule", "ResourceSlice"},
    "scheduling.k8s.io": {"PriorityClass"},
    "storage.k8s.io": {
        "CSIDriver",
        "CSINode",
        "StorageClass",
        "VolumeAttachment",
        "VolumeAttributesClass",
    },
}
_HOOK = "helm.sh/hook"


class _Object(NamedTuple):
    """A document of the text, as far as it is looked at."""

    group: str
    kind: str
    name: str
    root: yaml.MappingNode
    metadata: yaml.MappingNode | None


def placed(text: str, namespace: str) -> str:
    """The manifests, where each object that may be in a namespace says in which.

    Of a kind that is not known it is said, too: API servers leave it out where it is in none.
    Raises yaml.YAMLError.
    """
    found = [*_objects(text)]
    wide = {group: {*kinds} for group, kinds in _CLUSTER_WIDE.items()}
    for one in found:
        if one.kind == "CustomResourceDefinition" and _text(one.root, "spec", "scope") == "Cluster":
            kind = _text(one.root, "spec", "names", "kind")
            wide.setdefault(_text(one.root, "spec", "group"), set()).add(kind)
    for one in reversed(found):  # from the end: places before it stay what they are
        if one.metadata is None or one.kind in wide.get(one.group, ()):
            continue
        if not _text(one.metadata, "namespace"):
            text = _with_namespace(text, one.metadata, namespace)
    return text


def _with_namespace(text: str, metadata: yaml.MappingNode, namespace: str) -> str:
    if metadata.flow_style:
        at, line = metadata.start_mark.index + 1, f"namespace: {namespace}, "
    else:
        mark = metadata.value[0][0].start_mark
        at, line = mark.index, f"namespace: {namespace}\n{' ' * mark.column}"
    return text[:at] + line + text[at:]


def hooks(text: str) -> list[str]:
    """Objects that helm would make at certain times and wait for, as `Job migrate (pre-install)`.

    Raises yaml.YAMLError.
    """
    return [
        f"{one.kind} {one.name} ({when})"
        for one in _objects(text)
        if (when := _text(one.root, "metadata", "annotations", _HOOK))
    ]


def _objects(text: str) -> Iterator[_Object]:
    # The loader in Python alone: that of libyaml counts bytes, and not letters, for some texts.
    for root in yaml.compose_all(text, Loader=yaml.BaseLoader):
        if isinstance(root, yaml.MappingNode):
            group, slash, _ = _text(root, "apiVersion").partition("/")
            metadata = _value(root, "metadata")
            yield _Object(
                group=group if slash else "",
                kind=_text(root, "kind"),
                name=_text(root, "metadata", "name"),
                root=root,
                metadata=metadata
                if isinstance(metadata, yaml.MappingNode) and metadata.value
                else None,
            )


def _text(node: yaml.Node | None, *keys: str) -> str:
    for key in keys:
        node = _value(node, key)
    return node.value if isinstance(node, yaml.ScalarNode) and isinstance(node.value, str) else ""


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if isinstance(name, yaml.ScalarNode) and name.value == key:
                return value if isinstance(value, yaml.Node) else None
    return None
