"""Policies of an organisation on AWS that refuse what a stack makes, and what goes with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_NETWORK = "name a network that is there: machines.aws.vpcId, with access: tunnel"
_ROLES = "have role/CLUSTER-* and instance-profile/CLUSTER-* left out of it"
# By call.
WAYS: Mapping[str, str] = {
    **{
        f"ec2:{call}": _NETWORK
        for call in (
            *("CreateVpc", "CreateSubnet", "CreateInternetGateway", "AttachInternetGateway"),
            *("CreateRoute", "CreateNatGateway", "AllocateAddress", "AssociateAddress"),
        )
    },
    "ec2:RunInstances": (
        "see which of region, machineType, bastionMachineType, image, labels or podMetadata of "
        "machines.aws it asks for"
    ),
    "ec2:CreateVolume": "see whether it asks for diskKey or labels of machines.aws",
    "ec2:CreateTags": "see which labels it asks for: machines.aws.labels",
    **{
        f"iam:{call}": _ROLES
        for call in (
            *("CreateRole", "PutRolePolicy", "AttachRolePolicy", "PassRole", "TagRole"),
            *("CreateInstanceProfile", "AddRoleToInstanceProfile"),
        )
    },
    "iam:CreateOpenIDConnectProvider": "leave out machines.aws.workloadIdentity",
    "s3:CreateBucket": "serve the documents yourself: machines.aws.workloadIdentity.issuer",
    "s3:PutBucketPolicy": "serve the documents yourself: machines.aws.workloadIdentity.issuer",
    "s3:PutBucketPublicAccessBlock": (
        "serve the documents yourself: machines.aws.workloadIdentity.issuer"
    ),
}
# As EC2 and IAM say it (IAM user guide, "Troubleshoot access denied error messages").
_DENIED = re.compile(
    r"not authorized to perform: ([a-z0-9-]+:[A-Za-z]+)"
    r"(?:(?!not authorized to perform)[^\n])* explicit deny in a service control policy"
)


def explained(text: str) -> Iterator[str]:
    """By each call that a service control policy denies, once."""
    for call in dict.fromkeys(_DENIED.findall(text)):
        way = WAYS.get(call, "ask whoever set it for an exception")
        yield f"a service control policy of your organisation denies {call}: {way}"
