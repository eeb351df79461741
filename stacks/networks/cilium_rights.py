"""What accounts of Cilium may do: upstream's own rules, of what this product switches on.

Of the chart of 1.20: templates/cilium-agent/clusterrole.yaml and cilium-operator/clusterrole.yaml,
without Hubble, Ingress, Gateway API, cluster mesh, layer 2 announcements and Secrets.
"""

from __future__ import annotations

from stacks.documents.kubernetes_objects import Document

_READ = ["get", "list", "watch"]
_OWN = "cilium.io"
_CRDS = "customresourcedefinitions"

# Kinds of the group cilium.io in plural, as their CustomResourceDefinitions are named.
_OF_AGENTS = (
    *("ciliumbgpadvertisements", "ciliumbgpnodeconfigs", "ciliumbgppeerconfigs"),
    *("ciliumcidrgroups", "ciliumclusterwideenvoyconfigs", "ciliumclusterwidenetworkpolicies"),
    *("ciliumdatapathplugins", "ciliumegressgatewaypolicies", "ciliumendpoints"),
    *("ciliumendpointslices", "ciliumenvoyconfigs", "ciliumidentities"),
    *("ciliuml2announcementpolicies", "ciliumloadbalancerippools"),
    *("ciliumlocalredirectpolicies", "ciliumnetworkpolicies", "ciliumnodeconfigs"),
    *("ciliumnodes", "ciliumpodippools"),
)
_DEFINED = (
    *_OF_AGENTS,
    *("ciliumbgpclusterconfigs", "ciliumbgpnodeconfigoverrides", "ciliumgatewayclassconfigs"),
)
_DEFINED_WITH_STATUS = (
    *("ciliumbgpadvertisements", "ciliumbgpclusterconfigs", "ciliumbgpnodeconfigoverrides"),
    *("ciliumbgpnodeconfigs", "ciliumbgppeerconfigs"),
)


def of_agent() -> list[Document]:
    """Reads pods, Services and policies; writes its endpoints, identities and its own node."""
    return [
        _may(_READ, "networking.k8s.io", "networkpolicies"),
        _may(_READ, "discovery.k8s.io", "endpointslices"),
        _may(_READ, "", "namespaces", "services", "pods", "nodes"),
        _may(_READ, "apiextensions.k8s.io", _CRDS),
        _may(["list", "watch"], _OWN, *_OF_AGENTS),
        _may(["create"], _OWN, "ciliumidentities", "ciliumendpoints", "ciliumnodes"),
        _may(["update"], _OWN, "ciliumidentities"),
        _may(["get", "delete"], _OWN, "ciliumendpoints"),
        _may(["get", "update"], _OWN, "ciliumnodes", "ciliumnodes/status"),
        _may(["patch"], _OWN, "ciliumendpoints", "ciliumendpoints/status"),
    ]


def of_operator() -> list[Document]:
    """Makes the CustomResourceDefinitions, and removes what nobody uses any more."""
    return [
        _may(_READ, "", "pods", "namespaces", "nodes", "services"),
        _may(_READ, "discovery.k8s.io", "endpointslices"),
        _may(["patch"], "", "nodes/status"),
        _may(["update", "patch"], "", "services/status"),
        _may(_READ, _OWN, *_DEFINED),
        _may(["delete"], _OWN, "ciliumendpoints", "ciliumidentities", "ciliumnodes"),
        _may(["update"], _OWN, "ciliumidentities", "ciliumnodes", "ciliumnodes/status"),
        _may(
            ["patch", "update"],
            _OWN,
            "ciliumnetworkpolicies/status",
            "ciliumclusterwidenetworkpolicies/status",
        ),
        _may(["delete", "deletecollection"], _OWN, "ciliumendpointslices"),
        _may(["create", *_READ], "apiextensions.k8s.io", _CRDS),
        {**_may(["update"], "apiextensions.k8s.io", _CRDS), "resourceNames": _named(_DEFINED)},
        {
            **_may(["update"], "apiextensions.k8s.io", f"{_CRDS}/status"),
            "resourceNames": _named(_DEFINED_WITH_STATUS),
        },
        _may(["create", "get", "update"], "coordination.k8s.io", "leases"),
    ]


def _may(verbs: list[str], group: str, *resources: str) -> Document:
    return {"apiGroups": [group], "resources": sorted(resources), "verbs": verbs}


def _named(kinds: tuple[str, ...]) -> list[str]:
    return [f"{kind}.{_OWN}" for kind in sorted(kinds)]
