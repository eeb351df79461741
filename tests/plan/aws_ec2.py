"""Resources of EC2: the calls that make, change and delete each. Used by tests/plan/aws_calls.py alone.

A function that makes takes out of the inputs what it sends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Given = dict[str, Any]
Ask = Callable[..., Given]  # client, call, its arguments; what is None is not sent
Made = tuple[str, Given]  # ID and outputs
Create = Callable[[Ask, Given], Made]
Delete = Callable[[Ask, str, Given], object]


class Update(NamedTuple):
    inputs: frozenset[str]  # that it can change
    call: Callable[[Ask, str, Given], object]


def arguments(given: Given, **names: str) -> Given:
    """Everything that is left of the inputs, as arguments: `vpcId` is VpcId, where `names` has no other."""
    return {names.get(key, key[0].upper() + key[1:]): given.pop(key) for key in list(given)}


def tags_of(given: Given, kind: str = "") -> Any:
    tags = [{"Key": key, "Value": value} for key, value in given.pop("tags").items()]
    return [{"ResourceType": kind, "Tags": tags}] if kind else tags


def _plain(call: str, tagged: str, path: str, **names: str) -> Create:
    """One call of EC2 that takes every input; the ID is at `path` of what it answers, as Vpc.VpcId."""

    def create(ask: Ask, given: Given) -> Made:
        tags = tags_of(given, tagged) if tagged else None
        found: Any = ask("ec2", call, TagSpecifications=tags, **arguments(given, **names))
        for part in filter(None, path.split(".")):
            found = found[part]
        return found if path else f"{call}-{time.monotonic_ns()}", {}

    return create


def by_id(client: str, call: str, key: str) -> Delete:
    return lambda ask, number, _: ask(client, call, **{key: number})


def _of(call: str, *keys: str) -> Delete:
    """Deleted by inputs that it had."""
    return lambda ask, _, state: ask("ec2", call, **arguments({key: state[key] for key in keys}))


# --- Network ---------------------------------------------------------------------------------------


def _vpc(ask: Ask, given: Given) -> Made:
    words = {"enableDnsSupport": "EnableDnsSupport", "enableDnsHostnames": "EnableDnsHostnames"}
    switches = {name: {"Value": given.pop(key)} for key, name in words.items()}
    number, _ = _plain("create_vpc", "vpc", "Vpc.VpcId")(ask, given)
    for name, value in switches.items():  # each is a call of its own
        ask("ec2", "modify_vpc_attribute", VpcId=number, **{name: value})
    return number, {}


def _subnet(ask: Ask, given: Given) -> Made:
    public = {"Value": given.pop("mapPublicIpOnLaunch")}
    number, _ = _plain("create_subnet", "subnet", "Subnet.SubnetId")(ask, given)
    ask("ec2", "modify_subnet_attribute", SubnetId=number, MapPublicIpOnLaunch=public)
    return number, {}


def _gateway(ask: Ask, given: Given) -> Made:
    vpc, tags = given.pop("vpcId"), tags_of(given, "internet-gateway")
    found = ask("ec2", "create_internet_gateway", TagSpecifications=tags)["InternetGateway"]
    number = found["InternetGatewayId"]
    ask("ec2", "attach_internet_gateway", InternetGatewayId=number, VpcId=vpc)
    return number, {}


def _no_gateway(ask: Ask, number: str, state: Given) -> None:
    ask("ec2", "detach_internet_gateway", InternetGatewayId=number, VpcId=state["vpcId"])
    ask("ec2", "delete_internet_gateway", InternetGatewayId=number)


def _address(ask: Ask, given: Given) -> Made:
    instance, tags = given.pop("instance", None), tags_of(given, "elastic-ip")
    found = ask("ec2", "allocate_address", TagSpecifications=tags, **arguments(given))
    number = found["AllocationId"]
    if instance is not None:
        ask("ec2", "associate_address", AllocationId=number, InstanceId=instance)
    return number, {"allocationId": number, "publicIp": found["PublicIp"]}


def _no_address(ask: Ask, number: str, _: Given) -> None:
    (found,) = ask("ec2", "describe_addresses", AllocationIds=[number])["Addresses"]
    if "AssociationId" in found:
        ask("ec2", "disassociate_address", AssociationId=found["AssociationId"])
    ask("ec2", "release_address", AllocationId=number)


def _group(ask: Ask, given: Given) -> Made:
    create = _plain("create_security_group", "security-group", "GroupId", name="GroupName")
    number, _ = create(ask, given)
    # The provider takes away what AWS lets out by itself.
    usual = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    ask("ec2", "revoke_security_group_egress", GroupId=number, IpPermissions=usual)
    return number, {}


def _rule(way: str) -> Create:
    def create(ask: Ask, given: Given) -> Made:
        text, sources = {"Description": given.pop("description")}, {}
        if "cidrIpv4" in given:
            sources["IpRanges"] = [{"CidrIp": given.pop("cidrIpv4"), **text}]
        if "referencedSecurityGroupId" in given:
            group = {"GroupId": given.pop("referencedSecurityGroupId")}
            sources["UserIdGroupPairs"] = [{**group, **text}]
        to, tags = given.pop("securityGroupId"), tags_of(given, "security-group-rule")
        rules = [{**arguments(given), **sources}]
        call = f"authorize_security_group_{way}"
        found = ask("ec2", call, GroupId=to, IpPermissions=rules, TagSpecifications=tags)
        (rule,) = found["SecurityGroupRules"]
        return rule["SecurityGroupRuleId"], {}

    return create


def _no_rule(way: str) -> Delete:
    call = f"revoke_security_group_{way}"
    return lambda ask, number, state: ask(
        "ec2", call, GroupId=state["securityGroupId"], SecurityGroupRuleIds=[number]
    )


# --- Machines --------------------------------------------------------------------------------------


def _instance(ask: Ask, given: Given) -> Made:
    given.pop("forceDestroy", None)  # the provider's own word, for the end
    market = given.pop("instanceMarketOptions", None)
    spot = {
        key: arguments(value) if isinstance(value, dict) else value
        for key, value in (market or {}).items()
    }
    root, options = given.pop("rootBlockDevice"), given.pop("metadataOptions")
    tags = [*tags_of(given, "instance"), *tags_of(root, "volume")]
    names = ("associatePublicIpAddress", "privateIp", "subnetId", "vpcSecurityGroupIds")
    interface = {key: given.pop(key) for key in names if key in given}
    interface = arguments(interface, privateIp="PrivateIpAddress", vpcSecurityGroupIds="Groups")
    profile, placement = given.pop("iamInstanceProfile", None), given.pop("placementGroup", None)
    found = ask(
        "ec2",
        "run_instances",
        MinCount=1,
        MaxCount=1,
        # The first interface always ends with its machine.
        NetworkInterfaces=[{"DeviceIndex": 0, "DeleteOnTermination": True, **interface}],
        BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": arguments(root)}],
        MetadataOptions=arguments(options),
        IamInstanceProfile={"Name": profile} if profile else None,
        Placement={"GroupName": placement} if placement else None,
        InstanceMarketOptions=arguments(spot) if spot else None,
        TagSpecifications=tags,
        **arguments(given, ami="ImageId"),
    )
    return found["Instances"][0]["InstanceId"], {}


def _protect(ask: Ask, number: str, now: Given) -> None:
    value = {"Value": now["disableApiTermination"]}
    ask("ec2", "modify_instance_attribute", InstanceId=number, DisableApiTermination=value)


def _changed(ask: Ask, number: str, now: Given) -> None:
    _protect(ask, number, now)
    groups = now["vpcSecurityGroupIds"]
    ask("ec2", "modify_instance_attribute", InstanceId=number, Groups=groups)
    profile = now.get("iamInstanceProfile")
    if profile is not None:
        _reprofile(ask, number, str(profile))


def _reprofile(ask: Ask, number: str, profile: str) -> None:
    of = [{"Name": "instance-id", "Values": [number]}]
    found = ask("ec2", "describe_iam_instance_profile_associations", Filters=of)
    (there,) = found["IamInstanceProfileAssociations"]
    if not there["IamInstanceProfile"]["Arn"].endswith(f"/{profile}"):
        said = {"Name": profile}
        call = "replace_iam_instance_profile_association"
        ask("ec2", call, AssociationId=there["AssociationId"], IamInstanceProfile=said)


def _no_instance(ask: Ask, number: str, state: Given) -> None:
    if state.get("forceDestroy"):
        _protect(ask, number, {"disableApiTermination": False})
    ask("ec2", "terminate_instances", InstanceIds=[number])


def _grown(ask: Ask, number: str, now: Given) -> None:
    keys = ("iops", "size", "throughput", "type")
    said = arguments({key: now[key] for key in keys if key in now}, type="VolumeType")
    ask("ec2", "modify_volume", VolumeId=number, **said)


def _attachment(ask: Ask, given: Given) -> Made:
    given.pop("stopInstanceBeforeDetaching")
    return _plain("attach_volume", "", "", deviceName="Device")(ask, given)


def _no_attachment(ask: Ask, _: str, state: Given) -> None:
    machine = state["instanceId"]
    ask("ec2", "stop_instances", InstanceIds=[machine])
    ask("ec2", "detach_volume", VolumeId=state["volumeId"], InstanceId=machine)


CREATE: Mapping[str, Create] = {
    "aws:ebs/volume:Volume": _plain("create_volume", "volume", "VolumeId", type="VolumeType"),
    "aws:ec2/eip:Eip": _address,
    "aws:ec2/instance:Instance": _instance,
    "aws:ec2/internetGateway:InternetGateway": _gateway,
    "aws:ec2/natGateway:NatGateway": _plain("create_nat_gateway", "natgateway", "NatGateway.NatGatewayId"),
    "aws:ec2/placementGroup:PlacementGroup": _plain("create_placement_group", "placement-group", "", name="GroupName"),
    "aws:ec2/route:Route": _plain("create_route", "", ""),
    "aws:ec2/routeTable:RouteTable": _plain("create_route_table", "route-table", "RouteTable.RouteTableId"),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _plain("associate_route_table", "", "AssociationId"),
    "aws:ec2/securityGroup:SecurityGroup": _group,
    "aws:ec2/subnet:Subnet": _subnet,
    "aws:ec2/volumeAttachment:VolumeAttachment": _attachment,
    "aws:ec2/vpc:Vpc": _vpc,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _rule("egress"),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _rule("ingress"),
}  # fmt: skip
UPDATE: Mapping[str, Update] = {
    "aws:ebs/volume:Volume": Update(frozenset({"iops", "size", "throughput", "type"}), _grown),
    "aws:ec2/instance:Instance": Update(
        frozenset({"disableApiTermination", "iamInstanceProfile", "vpcSecurityGroupIds"}), _changed
    ),
}
DELETE: Mapping[str, Delete] = {
    "aws:ebs/volume:Volume": by_id("ec2", "delete_volume", "VolumeId"),
    "aws:ec2/eip:Eip": _no_address,
    "aws:ec2/instance:Instance": _no_instance,
    "aws:ec2/internetGateway:InternetGateway": _no_gateway,
    "aws:ec2/natGateway:NatGateway": by_id("ec2", "delete_nat_gateway", "NatGatewayId"),
    "aws:ec2/placementGroup:PlacementGroup": lambda ask, _, state: ask("ec2", "delete_placement_group", GroupName=state["name"]),
    "aws:ec2/route:Route": _of("delete_route", "routeTableId", "destinationCidrBlock"),
    "aws:ec2/routeTable:RouteTable": by_id("ec2", "delete_route_table", "RouteTableId"),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": by_id("ec2", "disassociate_route_table", "AssociationId"),
    "aws:ec2/securityGroup:SecurityGroup": by_id("ec2", "delete_security_group", "GroupId"),
    "aws:ec2/subnet:Subnet": by_id("ec2", "delete_subnet", "SubnetId"),
    "aws:ec2/volumeAttachment:VolumeAttachment": _no_attachment,
    "aws:ec2/vpc:Vpc": by_id("ec2", "delete_vpc", "VpcId"),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _no_rule("egress"),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _no_rule("ingress"),
}  # fmt: skip
