"""Policies of an organisation at Google that refuse what a stack makes, and what goes with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# By constraint. Some have a newer form, as `compute.managed.vmExternalIpAccess`, of the same
# meaning (Resource Manager documentation, "Organization policy constraints").
WAYS: Mapping[str, str] = {
    "compute.vmExternalIpAccess": "set machines.gcp.access: tunnel",
    "compute.requireOsLogin": "ask for an exception of the project: keys come by cloud-init",
    "compute.requireShieldedVm": "leave machines.gcp.secureBoot true, with an image that is signed",
    "compute.trustedImageProjects": "set machines.gcp.image to a copy in a project that is trusted",
    "compute.storageResourceUseRestrictions": "set machines.gcp.image to a copy in your project",
    "compute.restrictLoadBalancerCreationForTypes": (
        "have INTERNAL_TCP_UDP allowed, for an external one EXTERNAL_NETWORK_TCP_UDP; or set "
        "machines.gcp.apiLoadBalancer: none"
    ),
    "compute.restrictCloudNATUsage": "name a subnet with its own NAT: machines.gcp.subnetwork",
    "compute.requireVpcFlowLogs": "name a subnet that has flow logs: machines.gcp.subnetwork",
    "compute.restrictSharedVpcSubnetworks": "name a subnet that the project may use",
    "compute.vmCanIpForward": "leave out machines.gcp.podRoutes, and take an overlay network",
    "compute.restrictNonConfidentialComputing": "ask for an exception of the project",
    "gcp.resourceLocations": "set machines.gcp.region to one that is allowed",
    "gcp.restrictServiceUsage": "have the APIs allowed that the page of permissions lists",
    "gcp.restrictNonCmekServices": "set machines.gcp.diskKey",
    "iam.disableServiceAccountCreation": "ask for an exception of the project",
    "iam.allowedPolicyMemberDomains": (
        "have the organisation itself allowed, for accounts of its projects"
    ),
    "iam.workloadIdentityPoolProviders": (
        "have https://kubernetes.default.svc. and your cluster.dnsDomain allowed"
    ),
}
_NAMED = re.compile(r"constraints/([A-Za-z]+\.(?:managed\.)?[A-Za-z]+)")


def explained(text: str) -> Iterator[str]:
    """By each constraint that is named there, once."""
    for name in dict.fromkeys(_NAMED.findall(text)):
        way = WAYS.get(name.replace(".managed.", "."), "ask whoever set it for an exception")
        yield f"policy {name} of your organisation at Google refuses it: {way}"
