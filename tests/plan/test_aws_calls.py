"""What a plan asks of AWS, asked of moto, which emulates it: made, changed, and taken away in the program's order.

The calls are this project's translation (tests/plan/aws_calls.py), not those of the provider's plugin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from stacks.cluster import api_record, firewall
from tests.plan.aws_calls import CREATE, DELETE, UPDATE, Calls, emulated
from tests.plan.providers import Made
from tests.plan.recording import Engine
from tests.plan.settled import Stacks, assert_exactly
from tests.unit.cloud_shapes import DISK_KEYS, IDENTITIES
from tests.unit.configs import aws, behind_tunnel, by_identity, planned
from toolchain.values import Value

Edits = Mapping[str, object]
ROOT = Path(__file__).parents[2]
ZONES = tuple(f"eu-central-1{zone}" for zone in "abc")
EXTERNAL = {"machines.aws.apiLoadBalancer": "external", "cluster.endpoint": "api.example.com"}


POLICY = (
    '{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}'
)
# Keys and certificates, which take the most time, are those of the first stack.
MADE: Made = {}


@pytest.fixture
def account() -> Iterator[Calls]:
    with emulated() as found:
        yield found


def named(account: Calls, **more: object) -> dict[str, object]:
    """Edits: the stack makes the record of the API's name, in a zone that is there."""
    zone = {"domain": "example.com", "id": account.zone("example.com")}
    endpoint = {"cluster.endpoint": "api.example.com"}
    return {**endpoint, "frontDoors": {"dns": "managed", "zone": zone}, **more}


def grants(edits: Edits) -> bool:
    """Whether anybody gets one of AWS's own policies."""
    said = {"machines.aws.policies", "machines.aws.workloadIdentity"}
    return bool(said & {*edits}) or edits.get("machines.aws.access") == "tunnel"


def begun(stacks: Stacks, account: Calls, edits: Edits) -> Engine:
    """A stack that was applied there once."""
    engine = stacks.new(aws())
    engine.cloud, engine.made = account, MADE
    engine.up(aws(edits))
    return engine


def destroyed(engine: Engine, account: Calls) -> None:
    for resource in reversed(engine.resources.values()):
        if resource.type.startswith("aws:"):
            account.deleted(resource.type, resource.id, resource.outputs)


def seen(account: Calls) -> dict[str, list[str]]:
    """What is there, by name and not by ID, so that two accounts can be compared."""
    ec2 = account.ask

    def tag(of: Mapping[str, Any]) -> str:
        return next((t["Value"] for t in of.get("Tags", []) if t["Key"] == "Name"), "")

    subnets = {one["SubnetId"]: tag(one) for one in ec2("ec2", "describe_subnets")["Subnets"]}
    reservations = ec2("ec2", "describe_instances")["Reservations"]
    instances = [
        one for group in reservations for one in group["Instances"] if one["State"]["Name"] != "terminated"
    ]  # fmt: skip
    names = {one["InstanceId"]: tag(one) for one in instances}
    associations = ec2("ec2", "describe_iam_instance_profile_associations")["IamInstanceProfileAssociations"]  # fmt: skip
    # Not what the instances say: moto leaves that as it was when another one is associated.
    profiles = {one["InstanceId"]: one["IamInstanceProfile"]["Arn"].rpartition("/")[2] for one in associations}  # fmt: skip
    groups = {one["GroupId"]: one for one in ec2("ec2", "describe_security_groups")["SecurityGroups"]}  # fmt: skip
    rules = ec2("ec2", "describe_security_group_rules")["SecurityGroupRules"]
    balancers = ec2("elbv2", "describe_load_balancers")["LoadBalancers"]
    targets = ec2("elbv2", "describe_target_groups")["TargetGroups"]
    found: dict[str, list[str]] = {
        "instances": [
            f"{tag(one)} {one['PrivateIpAddress']} {subnets[one['SubnetId']]} {one['Placement']['AvailabilityZone']} "
            f"{profiles.get(one['InstanceId'], '')} {sorted(g['GroupName'] for g in one['NetworkInterfaces'][0]['Groups'])} {one.get('InstanceLifecycle')}"
            for one in instances
        ],
        "volumes": [
            f"{tag(one)} {one['Size']} {one['AvailabilityZone']} {[names[a['InstanceId']] for a in one['Attachments']]} "
            f"{one['VolumeType']} {one.get('Iops')}"
            for one in ec2("ec2", "describe_volumes")["Volumes"] if "etcd-disk" in tag(one)
        ],
        "rules": [
            f"{groups[one['GroupId']]['GroupName']} {'->' if one['IsEgress'] else '<-'} {one['IpProtocol']} {one.get('FromPort')} "
            f"{one.get('CidrIpv4') or groups[one['ReferencedGroupInfo']['GroupId']]['GroupName']}"
            for one in rules if tag(groups[one["GroupId"]])
        ],
        "balancers": [f"{one['LoadBalancerName']} {one['Scheme']} {len(one['AvailabilityZones'])}" for one in balancers],
        "targets": [
            f"{one['TargetGroupName']} {target['Target']['Id']}" for one in targets
            for target in ec2("elbv2", "describe_target_health", TargetGroupArn=one["TargetGroupArn"])["TargetHealthDescriptions"]
        ],
        "addresses": [
            f"{tag(one)} {names.get(one.get('InstanceId', ''))}" for one in ec2("ec2", "describe_addresses")["Addresses"]
        ],
        "networks": [tag(one) for one in ec2("ec2", "describe_vpcs")["Vpcs"]] + list(subnets.values()),
        "routes": [
            f"{tag(one)} {route.get('DestinationCidrBlock')} {str(route.get('GatewayId') or route.get('NatGatewayId'))[:4]}"
            for one in ec2("ec2", "describe_route_tables")["RouteTables"] for route in one["Routes"]
        ],
        "nat": [one["State"] for one in ec2("ec2", "describe_nat_gateways")["NatGateways"] if one["State"] != "deleted"],
        "roles": [
            f"{one['RoleName']} {ec2('iam', 'get_role_policy', RoleName=one['RoleName'], PolicyName=inline)['PolicyDocument'] if inline else ''}"
            for one in ec2("iam", "list_roles")["Roles"]
            for inline in (*ec2("iam", "list_role_policies", RoleName=one["RoleName"])["PolicyNames"], "")
        ],
        "issuers": [one["Arn"] for one in ec2("iam", "list_open_id_connect_providers")["OpenIDConnectProviderList"]],
        "objects": [
            f"{bucket['Name']} {one['Key']} {one['ETag']}" for bucket in ec2("s3", "list_buckets")["Buckets"]
            for one in ec2("s3", "list_objects_v2", Bucket=bucket["Name"]).get("Contents", [])
        ],
        "records": [
            f"{record['Name']} {record['Type']} {record.get('ResourceRecords') or record['AliasTarget']['DNSName'].split('.', 1)[1]}"
            for zone in ec2("route53", "list_hosted_zones")["HostedZones"]
            for record in ec2("route53", "list_resource_record_sets", HostedZoneId=zone["Id"])["ResourceRecordSets"]
            if record["Type"] == "A"
        ],
    }  # fmt: skip
    return {key: sorted(values) for key, values in found.items()}


WAYS: dict[str, Edits] = {
    "as in the example": {"pools.worker.count": 3},
    "public machines": {"machines.aws.access": "public", "pools.master.count": 1},
    "behind a tunnel": behind_tunnel("aws"),
    # moto makes no machine with a fast boot disk: it forgets its IOPS.
    "all that can be said": {
        "pools.etcd": {"roles": ["etcd"], "count": 3, "zones": list(ZONES)}, "pools.master.roles": ["master"],
        "cluster.name": "a-cluster-with-a-name-of-32-chars"[:32], "machines.aws.etcdDiskType": "io2",
        "machines.aws.policies": ["arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"],
        "machines.aws.nodePortsFrom": ["198.51.100.0/24"], "pools.worker.spot": True,
        "frontDoors.ingress": {"proxyProtocol": True}, "machines.aws.ingressFrom": ["198.51.100.0/24"],
    },
    "roles for service accounts": IDENTITIES["aws"],
    "snapshots by the machines' role": {**by_identity("aws"), "machines.aws.policies": ["arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"]},
    "a key, faster disks": {"machines.aws.diskKey": DISK_KEYS["aws"], "machines.aws.etcdDiskIops": 4000, "machines.aws.etcdDiskThroughput": 1000},
    "a private zone of its own": {"cluster.endpoint": "api.k8s.internal", "frontDoors": {"dns": "managed", "zone": {"domain": "k8s.internal", "private": True}}},
}  # fmt: skip


@pytest.mark.parametrize("edits", WAYS.values(), ids=WAYS)
def test_it_is_made_left_alone_and_taken_away_without_a_trace(stacks: Stacks, edits: Edits) -> None:
    with emulated(policies=grants(edits)) as account:
        whole_life(stacks, account, edits)


def whole_life(stacks: Stacks, account: Calls, edits: Edits) -> None:
    before, plan = seen(account), planned(aws(edits))
    engine = begun(stacks, account, edits)
    there = seen(account)
    cluster = plan.spec.cluster.name
    machines = {line.split()[0]: line.split()[1:4] for line in there["instances"]}
    for node in plan.nodes:
        where = [node.address, f"{cluster}-subnet-{node.zone}", str(node.zone)]
        assert machines[f"{cluster}-{node.name}"] == where
    volumes = {f"{cluster}-{node.name}-etcd-disk 20 {node.zone} ['{cluster}-{node.name}']" for node in plan.etcd}  # fmt: skip
    assert {one.partition("]")[0] + "]" for one in there["volumes"]} == volumes
    account.made.clear()
    assert_exactly(engine.up(aws(edits)), [])
    changing = [call for call in account.made if not call.startswith(("describe", "list", "get"))]
    assert changing == []
    destroyed(engine, account)
    assert seen(account) == before


def test_the_doors_are_those_of_the_table(stacks: Stacks, account: Calls) -> None:
    begun(stacks, account, {})
    table = {
        f"prod-{rule.to} <- {rule.protocol} {(rule.ports or (-1, -1))[0]} {source}"
        for rule in firewall.rules(planned(aws()))
        for source in (*(f"prod-{group}" for group in rule.groups), *rule.ranges)
    }
    rules = seen(account)["rules"]
    assert {line for line in rules if "<-" in line and "balancer" not in line} == table


# Calls of S3 that IAM knows by another word (Service Authorization Reference, "Amazon S3").
_WORDS = {
    "s3:PutPublicAccessBlock": "s3:PutBucketPublicAccessBlock",
    "s3:DeletePublicAccessBlock": "s3:PutBucketPublicAccessBlock",
}
_SERVICES = {
    "ec2": "ec2",
    "elbv2": "elasticloadbalancing",
    "iam": "iam",
    "route53": "route53",
    "s3": "s3",
}


def test_the_policy_of_the_docs_allows_each_call(stacks: Stacks, account: Calls) -> None:
    """Of a stack that is made, edited and taken away; the provider's plugin asks more, which Describe and Get allow."""
    account.all.clear()
    edits = {**named(account), **IDENTITIES["aws"], **by_identity("aws")}
    edits["machines.aws.workloadIdentity"] = {"bucket": "our-keys", "policies": {"a/b": []}}
    engine = begun(stacks, account, edits)
    engine.up(aws({**edits, **EXTERNAL, "machines.aws.deletionProtection": False}))
    engine.up(
        aws({**edits, **EXTERNAL, "etcd.backup": {}, "machines.aws.deletionProtection": False})
    )
    destroyed(engine, account)
    policy = json.loads((ROOT / "docs/install/aws-policy.json").read_text())
    allowed = [one for statement in policy["Statement"] for one in [*([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])]]  # fmt: skip
    asked = {
        f"{_SERVICES[client]}:{''.join(part.capitalize() for part in call.split('_'))}"
        for client, call in account.all
    }
    asked = {_WORDS.get(one, one) for one in asked}
    assert {"ec2:RunInstances", "elasticloadbalancing:CreateLoadBalancer"} <= asked
    mine = {"ec2:RegisterImage", "route53:CreateHostedZone"}  # of the test's own
    missing = {one for one in asked - mine if not any(fnmatch(one.lower(), each.lower()) for each in allowed)}  # fmt: skip
    assert missing == set()
    assert "*" not in allowed
    # What no emulator asks for: a role is handed to a machine, and an account's first load balancer has one of AWS's.
    assert {"iam:PassRole", "iam:CreateServiceLinkedRole", "ec2:CreateTags"} <= {*allowed}


# From one config to others and back; each end has to be what a new stack of it would be.
TURNS: dict[str, tuple[Edits, ...]] = {
    "one to three masters and back": ({"pools.master.count": 1}, {}, {"pools.master.count": 1}),
    "the load balancer on, off, outside": ({"machines.aws.apiLoadBalancer": "none"}, {}, EXTERNAL, {}),
    "ingress, for others, and none": ({}, {"frontDoors.ingress": {}}, {"frontDoors.ingress": {}, "pools.worker.count": 3, "machines.aws.ingressFrom": ["198.51.100.0/24"]}, {}),
    "disks that grow and are faster": ({}, {"machines.aws.etcdDiskGib": 40, "machines.aws.etcdDiskIops": 16000}, {"machines.aws.etcdDiskGib": 40, "machines.aws.etcdDiskType": "io2", "machines.aws.etcdDiskIops": 400}),
    "bastion to tunnel and back": ({}, behind_tunnel("aws"), {}),
    "snapshots by the machines' role, elsewhere, and none": ({}, by_identity("aws"), by_identity("aws", prefix="others", prune=False), {}),
    "workers, protection, ranges": ({}, {"pools.worker.count": 3, "machines.aws.deletionProtection": False},
                                    {"machines.aws.sshFrom": ["198.51.100.0/24"], "machines.aws.apiFrom": ["203.0.113.0/24"]}),
}  # fmt: skip


@pytest.fixture(scope="module")
def fresh(stacks: Stacks) -> Callable[[Edits], dict[str, list[str]]]:
    """What there is when a stack of that config is new."""
    known: dict[str, dict[str, list[str]]] = {}

    def find(edits: Edits) -> dict[str, list[str]]:
        key = json.dumps(aws(edits), sort_keys=True)
        if key not in known:
            with emulated(policies=grants(edits)) as other:
                begun(stacks, other, edits)
                known[key] = seen(other)
        return known[key]

    return find


@pytest.mark.parametrize("turns", TURNS.values(), ids=TURNS)
def test_after_an_edit_it_is_what_a_new_stack_would_be(
    stacks: Stacks, fresh: Callable[[Edits], dict[str, list[str]]], turns: tuple[Edits, ...]
) -> None:
    wanted = [fresh(edits) for edits in turns]
    with emulated(policies=any(map(grants, turns))) as account:
        engine = begun(stacks, account, turns[0])
        for edits, there in zip(turns[1:], wanted[1:], strict=True):
            engine.up(aws(edits))
            assert seen(account) == there, edits


def test_the_record_follows_the_masters_and_their_load_balancer(
    stacks: Stacks, account: Calls
) -> None:
    one = named(account, **{"pools.master.count": 1})
    three = {**one, "pools.master.count": 3}
    engine = begun(stacks, account, one)
    by_turns: Edits = {**three, "machines.aws.apiLoadBalancer": "none"}
    outside: Edits = {**three, "machines.aws.apiLoadBalancer": "external"}

    def record() -> str:
        (line,) = seen(account)["records"]
        assert line.startswith("api.example.com. A ")
        return line.removeprefix("api.example.com. A ")

    assert record() == "[{'Value': '10.20.0.11'}]"
    for edits in (three, outside):
        engine.up(aws(edits))
        assert "elb" in record()
    engine.up(aws(by_turns))
    addresses = api_record.known(planned(aws(by_turns)))
    assert addresses
    assert all(address in record() for address in addresses)
    engine.up(aws(one))
    assert record() == "[{'Value': '10.20.0.11'}]"


# A resource of the usual stack, made once more with one input that is wrong; and who refuses it.
REFUSED: dict[str, tuple[str, dict[str, Value], str]] = {
    "a subnet outside the VPC": ("prod-subnet-eu-central-1a", {"cidrBlock": "10.99.0.0/20"}, "InvalidSubnet.Range"),
    "a range that is taken": ("prod-subnet-eu-central-1a", {}, "InvalidSubnet.Conflict"),
    "a zone that is none": ("prod-subnet-eu-central-1a", {"availabilityZone": "eu-central-1z", "cidrBlock": "10.20.64.0/20"}, "InvalidParameterValue"),
    "a VPC that is not there": ("prod-subnet-eu-central-1a", {"vpcId": "vpc-0123456789abcdef0"}, "InvalidVpcID.NotFound"),
    "a group of a name that is taken": ("prod-etcd-doors", {}, "InvalidGroup.Duplicate"),
    "a rule twice": ("prod-kubelet-from-master", {}, "InvalidPermission.Duplicate"),
    "a group that is not there": ("prod-api-from-node", {"referencedSecurityGroupId": "sg-0123456789abcdef0"}, "InvalidGroup.NotFound"),
    "a range that is none": ("prod-ssh-bastion-from-203-0-113-0-24", {"cidrIpv4": "203.0.113.0/33"}, "InvalidParameterValue"),
    "an address of another subnet": ("prod-worker-1-machine", {"privateIp": "10.20.16.101"}, "IP does not fall in the subnet"),
    "an address that is taken": ("prod-worker-1-machine", {}, "IP already in use"),
    "an image that is not there": ("prod-worker-1-machine", {"ami": "ami-0123456789abcdef0", "privateIp": "10.20.0.201"}, "InvalidAMIID.NotFound"),
    "a machine type that is none": ("prod-worker-1-machine", {"instanceType": "m6i.enormous", "privateIp": "10.20.0.202"}, "InvalidInstanceType"),
    "a profile that is not there": ("prod-worker-1-machine", {"iamInstanceProfile": "nobody", "privateIp": "10.20.0.203"}, "NoSuchEntity"),
    "a role of a name that is taken": ("prod-nodes-role", {}, "EntityAlreadyExists"),
    "a name that is too long": ("prod-api-internal-targets", {"name": "x" * 33}, "cannot be longer than '32'"),
    "a subnet that is not there": ("prod-nat-eu-central-1a", {"subnetId": "subnet-0123456789abcdef0"}, "InvalidSubnetID.NotFound"),
    "a word for a number": ("prod-api-internal-listener", {"port": "api"}, "Invalid type for parameter Port"),
    "a word for a placement group": ("prod-etcd-apart", {"strategy": 7.0}, "Invalid type for parameter Strategy"),
    "an argument that is none": ("prod-vpc", {"ipv9": "yes"}, "Unknown parameter in input"),
}  # fmt: skip


def test_what_aws_would_refuse_is_refused(stacks: Stacks, account: Calls) -> None:
    engine = begun(stacks, account, {})
    usual = {one.name: one for one in engine.resources.values()}
    answers = {}
    for case, (name, wrong, _) in REFUSED.items():
        try:
            account.created(usual[name].type, {**usual[name].inputs, **wrong})
            answers[case] = "accepted"
        # moto tells some of it by an exception that is nobody's in particular.
        except Exception as error:
            answers[case] = str(error)
    assert {case: text for case, text in answers.items() if REFUSED[case][2] not in text} == {}


def test_a_policy_that_is_not_there_and_a_name_outside_its_zone_are_refused(account: Calls) -> None:
    grant: dict[str, Value] = {"role": "no", "policyArn": "arn:aws:iam::aws:policy/None"}
    with pytest.raises(ClientError, match="NoSuchEntity"):
        account.created("aws:iam/rolePolicyAttachment:RolePolicyAttachment", grant)
    record: dict[str, Value] = {"zoneId": account.zone("example.com"), "type": "A", "ttl": 60.0, "records": ["192.0.2.1"]}  # fmt: skip
    kind = "aws:route53/record:Record"
    with pytest.raises(ClientError, match="not permitted in zone"):
        account.created(kind, {**record, "name": "api.example.org"})
    account.created(kind, {**record, "name": "api.example.com"})
    with pytest.raises(ClientError, match="already exists"):
        account.created(kind, {**record, "name": "api.example.com"})


def test_nothing_is_left_out_in_silence(account: Calls) -> None:
    assert CREATE.keys() == DELETE.keys() >= UPDATE.keys()
    with pytest.raises(KeyError, match="aws:ec2/keyPair:KeyPair"):
        account.created("aws:ec2/keyPair:KeyPair", {})
    mine = account.ask("iam", "create_policy", PolicyName="mine", PolicyDocument=POLICY)
    grant: dict[str, Value] = {
        "role": "nodes",
        "policyArn": mine["Policy"]["Arn"],
        "more": "x",
    }
    account.ask("iam", "create_role", RoleName="nodes", AssumeRolePolicyDocument="{}")
    with pytest.raises(NotImplementedError, match=re.escape("nothing is made of ['more']")):
        account.created("aws:iam/rolePolicyAttachment:RolePolicyAttachment", grant)
    with pytest.raises(NotImplementedError, match="no call changes"):
        account.updated("aws:ec2/instance:Instance", "i-1", {"ami": "a"}, {}, {"ami": "b"})
