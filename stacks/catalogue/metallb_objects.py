"""Kinds of MetalLB, the config in them, and what its programs may do.

Kinds, scopes and fields are those of MetalLB 0.16's CustomResourceDefinitions. A schema here has
the types of the fields that are set, and lists that several write; others are kept as they come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stacks.documents.kubernetes_objects import (
    Document,
    cluster_role,
    cluster_role_binding,
    config_map,
    meta,
)

NAMESPACE = "metallb-system"
CONTROLLER = "controller"
SPEAKER = "speaker"
EXCLUDED = "metallb-excludel2"
MEMBERS_KEY = "memberlist"  # Secret that the controller makes
POOL = "kube-ha"

_GROUP = "metallb.io"
_RBAC = "rbac.authorization.k8s.io"
_LOOK = ["get", "list", "watch"]
_WRITE = [*_LOOK, "create", "delete", "patch", "update"]
_TEXTS: Document = {"type": "array", "items": {"type": "string"}}
_ANYTHING: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# Two parts of a program write a condition each.
_CONDITIONS: Document = {
    "type": "array",
    "items": {
        **_ANYTHING,
        "properties": {"type": {"type": "string"}},
        "required": ["type"],
    },
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
# Kind -> plural, version in which it is stored, and what is typed of it.
_KINDS: Mapping[str, tuple[str, str, Mapping[str, Document]]] = {
    "BFDProfile": ("bfdprofiles", "v1beta1", {}),
    "BGPAdvertisement": ("bgpadvertisements", "v1beta1", {}),
    "BGPPeer": ("bgppeers", "v1beta2", {}),
    "Community": ("communities", "v1beta1", {}),
    "ConfigurationState": (
        "configurationstates",
        "v1beta1",
        {"status": {**_ANYTHING, "properties": {"conditions": _CONDITIONS}}},
    ),
    "IPAddressPool": (
        "ipaddresspools",
        "v1beta1",
        {"spec": {**_ANYTHING, "properties": {"addresses": _TEXTS}, "required": ["addresses"]}},
    ),
    "L2Advertisement": (
        "l2advertisements",
        "v1beta1",
        {"spec": {**_ANYTHING, "properties": {"ipAddressPools": _TEXTS}}},
    ),
    "ServiceBGPStatus": ("servicebgpstatuses", "v1beta1", {}),
    "ServiceL2Status": ("servicel2statuses", "v1beta1", {}),
}
# Its programs end where they do not find this one, which none of them reads.
_OLD_VERSIONS: Mapping[str, str] = {"BGPPeer": "v1beta1"}
# What says how services are announced; whoever may write these moves addresses.
_CONFIG = (
    *("bfdprofiles", "bgpadvertisements", "bgppeers", "communities", "ipaddresspools"),
    "l2advertisements",
)
# Of the machine, and of pods: nobody outside asks there (upstream's list).
_NOT_ANNOUNCED = (
    *("^docker.*", "^cbr.*", "^dummy.*", "^virbr.*", "^lxcbr.*", "^veth.*", "^lo$", "^cali.*"),
    *("^tunl.*", "^flannel.*", "^kube-ipvs.*", "^cni.*", "^nodelocaldns.*", "^lxc.*", "^cilium_.*"),
)


def definitions() -> Iterator[Document]:
    """CustomResourceDefinitions of all kinds that its programs watch."""
    for kind, (plural, version, typed) in _KINDS.items():
        old = [_version(_OLD_VERSIONS[kind], {}, stored=False)] if kind in _OLD_VERSIONS else []
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": meta(f"{plural}.{_GROUP}"),
            "spec": {
                "group": _GROUP,
                "names": {"kind": kind, "plural": plural},
                "scope": "Namespaced",
                "versions": [*old, _version(version, typed, stored=True)],
            },
        }


def _version(name: str, typed: Mapping[str, Document], *, stored: bool) -> Document:
    return {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": {**_ANYTHING, "properties": dict(typed)}},
        "subresources": {"status": {}},
    }


def settings(addresses: Sequence[str]) -> Iterator[Document]:
    """The addresses, on whichever interface of a node has their network."""
    yield config_map(EXCLUDED, NAMESPACE, {"excludel2.yaml": _excluded()})
    yield _object("IPAddressPool", {"addresses": [*addresses]})
    yield _object("L2Advertisement", {"ipAddressPools": [POOL]})


def _excluded() -> str:
    listed = ", ".join(f'"{form}"' for form in _NOT_ANNOUNCED)
    return f"announcedInterfacesToExclude: [{listed}]\n"


def _object(kind: str, spec: Document) -> Document:
    return {
        "apiVersion": f"{_GROUP}/{_KINDS[kind][1]}",
        "kind": kind,
        "metadata": meta(POOL, NAMESPACE),
        "spec": spec,
    }


def rights() -> Iterator[Document]:
    """Less than upstream's: no webhook, and what is written is in its own namespace alone."""
    yield from _cluster_wide(
        CONTROLLER,
        [
            _rule("", ["services", "namespaces"], _LOOK),
            _rule("", ["services/status"], ["update"]),
            _rule("", ["events"], ["create", "patch"]),
            _rule(_GROUP, ["configurationstates"], _LOOK),
            *_metrics(),
        ],
    )
    yield from _cluster_wide(
        SPEAKER,
        [
            _rule("", ["services", "nodes", "namespaces"], _LOOK),
            _rule("discovery.k8s.io", ["endpointslices"], _LOOK),
            _rule("", ["events"], ["create", "patch"]),
            _rule(_GROUP, ["configurationstates", "servicel2statuses"], _LOOK),
            *_metrics(),
        ],
    )
    yield from _here(CONTROLLER, [*_of_controller()])
    yield from _here(SPEAKER, [*_of_speaker()])


def _of_controller() -> Iterator[Document]:
    yield _rule("", ["secrets"], ["create"])
    yield _rule("", ["secrets"], ["list"], MEMBERS_KEY)
    yield _rule("", ["pods"], ["get"])
    yield _rule("apps", ["deployments"], ["get"], CONTROLLER)
    yield _rule(_GROUP, _CONFIG, _LOOK)
    yield _rule(_GROUP, ["ipaddresspools/status"], ["update"])
    yield _rule(_GROUP, _with_status("configurationstates"), _WRITE)


def _of_speaker() -> Iterator[Document]:
    written = _with_status("configurationstates", "servicel2statuses", "servicebgpstatuses")
    yield _rule("", ["configmaps", "secrets"], _LOOK)
    yield _rule("", ["pods"], ["get", "list"])
    yield _rule(_GROUP, _CONFIG, _LOOK)
    yield _rule(_GROUP, written, _WRITE)


def _with_status(*kinds: str) -> list[str]:
    return [f"{kind}{part}" for kind in kinds for part in ("", "/status")]


def _metrics() -> Iterator[Document]:
    """Who asks for its measurements is asked of the API."""
    yield _rule("authentication.k8s.io", ["tokenreviews"], ["create"])
    yield _rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"])


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str], name: str = "") -> Document:
    named = {"resourceNames": [name]} if name else {}
    return {"apiGroups": [group], "resources": [*resources], "verbs": [*verbs], **named}


def _cluster_wide(account: str, rules: list[Document]) -> Iterator[Document]:
    name = f"{NAMESPACE}:{account}"
    yield cluster_role(name, rules)
    yield cluster_role_binding(name, name, account, NAMESPACE)


def _here(account: str, rules: list[Document]) -> Iterator[Document]:
    yield {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": meta(account, NAMESPACE),
        "rules": rules,
    }
    yield {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": meta(account, NAMESPACE),
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }
