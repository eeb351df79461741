"""What accounts of Calico may do: upstream's own rules, of what this product switches on.

Of manifests/calico-typha.yaml of 3.32, without addresses of load balancers, the move to kinds of
projectcalico.org, and writes that an object of calico_objects.py makes needless: no node writes
pools, peers or Felix's settings.
"""

from __future__ import annotations

from stacks.documents.kubernetes_objects import Document

_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "update"]
_OWN = "crd.projectcalico.org"
# Read in clusters without KubeVirt, too: who may not is told 403 and not 404, and Felix never
# becomes ready.
_VIRTUAL = "kubevirt.io"
_IPAM = ("blockaffinities", "ipamblocks", "ipamhandles")

_OF_NODES = (
    *("bgpconfigurations", "bgpfilters", "bgppeers", "blockaffinities", "caliconodestatuses"),
    *("clusterinformations", "felixconfigurations", "globalnetworkpolicies", "globalnetworksets"),
    *("hostendpoints", "ipamblocks", "ippools", "ipreservations", "networkpolicies", "networksets"),
    *("stagedglobalnetworkpolicies", "stagedkubernetesnetworkpolicies", "stagednetworkpolicies"),
    "tiers",
)


def of_nodes(cni_account: str) -> list[Document]:
    """Reads pods, Services and policies; writes addresses, and status of Nodes."""
    return [
        {**_may(["create"], "", "serviceaccounts/token"), "resourceNames": [cni_account]},
        _may(_READ, "", "namespaces", "nodes", "pods", "serviceaccounts", "services"),
        _may(_READ, "", "endpoints"),
        _may(_READ, "discovery.k8s.io", "endpointslices"),
        _may(["list", "watch"], "networking.k8s.io", "networkpolicies"),
        _may(["list", "watch"], "policy.networking.k8s.io", "clusternetworkpolicies"),
        _may(["patch", "update"], "", "nodes/status"),
        _may(_READ, _OWN, *_OF_NODES),
        _may(["create"], _OWN, "tiers"),
        _may(["create", "update"], _OWN, "clusterinformations"),
        _may(["update"], _OWN, "caliconodestatuses"),
        # Of a tunnel's own address.
        _may(["get", "list", *_WRITE], _OWN, *_IPAM),
        _may(["create", "get"], _OWN, "ipamconfigs"),
        _may(_READ, _VIRTUAL, "virtualmachineinstancemigrations"),
    ]


def of_cni() -> list[Document]:
    """Gives pods their addresses."""
    return [
        _may(["get"], "", "namespaces", "nodes", "pods"),
        _may(["patch"], "", "pods/status"),
        _may(["get", "list", *_WRITE], _OWN, *_IPAM),
        _may(["get", "list"], _OWN, "clusterinformations", "ippools", "ipreservations"),
        _may(["create", "get", "list"], _OWN, "ipamconfigs"),
        _may(["get"], _VIRTUAL, "virtualmachineinstances", "virtualmachines"),
    ]


def of_controllers(agent: str) -> list[Document]:
    """Takes back addresses of nodes and pods that are gone; `agent`: the DaemonSet it waits for."""
    return [
        {**_may(["get"], "apps", "daemonsets"), "resourceNames": [agent]},
        # It looks for that of the move, which is not made here, for as long as it runs.
        _may(["list", "watch"], "apiextensions.k8s.io", "customresourcedefinitions"),
        _may(_READ, _VIRTUAL, "virtualmachineinstances", "virtualmachines"),
        _may(_READ, "", "namespaces", "nodes", "pods"),
        _may(["list"], _OWN, "ipreservations"),
        _may([*_READ, *_WRITE], _OWN, *_IPAM, "hostendpoints", "ipamconfigs", "tiers"),
        _may(["list", "watch"], _OWN, "ippools"),
        _may([*_READ, "create", "update"], _OWN, "clusterinformations"),
        _may([*_READ, "create", "update"], _OWN, "kubecontrollersconfigurations"),
        _may(["get", "update"], _OWN, "kubecontrollersconfigurations/status"),
        # Names of an old form become those of a new one.
        _may([*_READ, *_WRITE], _OWN, "globalnetworkpolicies", "networkpolicies"),
        _may([*_READ, *_WRITE], _OWN, "stagedglobalnetworkpolicies", "stagednetworkpolicies"),
    ]


def of_passwords(names: list[str]) -> list[Document]:
    """Reads these Secrets of one namespace: passwords of BGP sessions."""
    return [{**_may(_READ, "", "secrets"), "resourceNames": names}] if names else []


def _may(verbs: list[str], group: str, *resources: str) -> Document:
    return {"apiGroups": [group], "resources": sorted(resources), "verbs": sorted(verbs)}
