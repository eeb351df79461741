"""What differs between partitions of AWS: the public regions, GovCloud, and China."""

from __future__ import annotations


def partition(region: str) -> str:
    """As the ARNs of a region begin (AWS General Reference, "Amazon Resource Names")."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def service(name: str, region: str) -> str:
    """Who a service is in a policy of trust, as ec2."""
    return f"{name}.amazonaws.com" + (".cn" if partition(region) == "aws-cn" else "")


def ssm_policy(region: str) -> str:
    """What SSM's agent needs (AWS Systems Manager user guide, "Instance permissions"), by ARN."""
    return f"arn:{partition(region)}:iam::aws:policy/AmazonSSMManagedInstanceCore"
