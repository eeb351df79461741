"""Accounts, load balancers and names on AWS, as in tests/plan/aws_ec2.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from tests.plan.aws_ec2 import Ask, Create, Delete, Given, Made, Update, arguments, by_id, tags_of

# --- Accounts --------------------------------------------------------------------------------------


def _role(ask: Ask, given: Given) -> Made:
    name, tags = given.pop("name"), tags_of(given)
    document = arguments(given, assumeRolePolicy="AssumeRolePolicyDocument")
    ask("iam", "create_role", RoleName=name, Tags=tags, **document)
    return name, {}


def _grant(call: str) -> Callable[[Ask, Given], object]:
    return lambda ask, given: ask("iam", call, RoleName=given["role"], PolicyArn=given["policyArn"])


def _granted(ask: Ask, given: Given) -> Made:
    _grant("attach_role_policy")(ask, given)
    return f"{given.pop('role')}-{given.pop('policyArn')}", {}


def _inline(ask: Ask, given: Given) -> Made:
    name, role = given.pop("name"), given.pop("role")
    ask(
        "iam", "put_role_policy", RoleName=role, PolicyName=name, PolicyDocument=given.pop("policy")
    )
    return f"{role}:{name}", {}


def _no_inline(ask: Ask, _key: str, state: Given) -> None:
    ask("iam", "delete_role_policy", RoleName=state["role"], PolicyName=state["name"])


def _profile(ask: Ask, given: Given) -> Made:
    name, tags, role = given.pop("name"), tags_of(given), given.pop("role")
    ask("iam", "create_instance_profile", InstanceProfileName=name, Tags=tags)
    ask("iam", "add_role_to_instance_profile", InstanceProfileName=name, RoleName=role)
    return name, {}


def _no_profile(ask: Ask, name: str, state: Given) -> None:
    role = state["role"]
    ask("iam", "remove_role_from_instance_profile", InstanceProfileName=name, RoleName=role)
    ask("iam", "delete_instance_profile", InstanceProfileName=name)


def _issuer(ask: Ask, given: Given) -> Made:
    tags, url, known = tags_of(given), given.pop("url"), given.pop("clientIdLists")
    # The provider leaves fingerprints to IAM, which looks at the certificate; moto has nobody to ask.
    made = ask(
        "iam",
        "create_open_id_connect_provider",
        Url=url,
        ClientIDList=known,
        ThumbprintList=["0" * 40],
        Tags=tags,
    )
    return made["OpenIDConnectProviderArn"], {"arn": made["OpenIDConnectProviderArn"]}


# --- Buckets ---------------------------------------------------------------------------------------


def _bucket(ask: Ask, given: Given) -> Made:
    name, tags = given.pop("bucket"), tags_of(given)
    # It is in the client's region only if that is said.
    ask("s3", "create_bucket", Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})  # fmt: skip
    ask("s3", "put_bucket_tagging", Bucket=name, Tagging={"TagSet": tags})
    return name, {}


def _closed(ask: Ask, given: Given) -> Made:
    name = given.pop("bucket")
    said = arguments(given)
    ask("s3", "put_public_access_block", Bucket=name, PublicAccessBlockConfiguration=said)
    return name, {}


def _readers(ask: Ask, given: Given) -> Made:
    name = given.pop("bucket")
    ask("s3", "put_bucket_policy", Bucket=name, Policy=given.pop("policy"))
    return name, {}


def _put(ask: Ask, given: Given) -> Made:
    tags = urlencode([(one["Key"], one["Value"]) for one in tags_of(given)])
    said = arguments(given, content="Body")
    ask("s3", "put_object", Tagging=tags, **said)
    return said["Key"], {}


# --- Load balancer ---------------------------------------------------------------------------------


def _set(ask: Ask, call: str, of: str, arn: str, **values: object) -> None:
    pairs = [{"Key": k.replace("__", "."), "Value": str(v).lower()} for k, v in values.items()]
    ask("elbv2", call, **{of: arn}, Attributes=pairs)


def _balancer(ask: Ask, given: Given) -> Made:
    cross, tags = given.pop("enableCrossZoneLoadBalancing"), tags_of(given)
    listed = given.pop("subnetMappings", None)
    mappings = listed and [arguments(one, privateIpv4Address="PrivateIPv4Address") for one in listed]  # fmt: skip
    scheme = "internal" if given.pop("internal") else "internet-facing"
    rest = {"SubnetMappings": mappings, "Scheme": scheme, "Tags": tags, **arguments(given, loadBalancerType="Type")}  # fmt: skip
    (made,) = ask("elbv2", "create_load_balancer", **rest)["LoadBalancers"]
    arn, call = made["LoadBalancerArn"], "modify_load_balancer_attributes"
    _set(ask, call, "LoadBalancerArn", arn, load_balancing__cross_zone__enabled=cross)
    outputs = {"dnsName": made["DNSName"], "zoneId": made["CanonicalHostedZoneId"]}
    return arn, {"arn": arn, **outputs}


def _targets(ask: Ask, given: Given) -> Made:
    check, tags = given.pop("healthCheck"), tags_of(given)
    keep, delay = given.pop("preserveClientIp"), given.pop("deregistrationDelay")
    code, proxied = check.pop("matcher", None), given.pop("proxyProtocolV2", None)
    matcher = {"HttpCode": code} if code else None
    words = {"interval": "HealthCheckIntervalSeconds", "timeout": "HealthCheckTimeoutSeconds"}
    words |= {key: f"HealthCheck{key.capitalize()}" for key in ("protocol", "path", "port")}
    words |= {f"{one}Threshold": f"{one.capitalize()}ThresholdCount" for one in ("healthy", "unhealthy")}  # fmt: skip
    rest = {"Matcher": matcher, "Tags": tags, **arguments(check, **words), **arguments(given)}
    (made,) = ask("elbv2", "create_target_group", **rest)["TargetGroups"]
    arn, call = made["TargetGroupArn"], "modify_target_group_attributes"
    delays = {"deregistration_delay__timeout_seconds": delay, "preserve_client_ip__enabled": keep}
    if proxied is not None:
        delays["proxy_protocol_v2__enabled"] = proxied
    _set(ask, call, "TargetGroupArn", arn, **delays)
    return arn, {"arn": arn}


def _listener(ask: Ask, given: Given) -> Made:
    idle, tags = given.pop("tcpIdleTimeoutSeconds"), tags_of(given)
    actions = [arguments(one) for one in given.pop("defaultActions")]
    made = ask("elbv2", "create_listener", DefaultActions=actions, Tags=tags, **arguments(given))
    arn, call = made["Listeners"][0]["ListenerArn"], "modify_listener_attributes"
    _set(ask, call, "ListenerArn", arn, tcp__idle_timeout__seconds=idle)
    return arn, {"arn": arn}


def _target(call: str) -> Callable[[Ask, Given], object]:
    def change(ask: Ask, given: Given) -> None:
        target = {"Id": given["targetId"], "Port": given["port"]}
        ask("elbv2", call, TargetGroupArn=given["targetGroupArn"], Targets=[target])

    return change


def _targeted(ask: Ask, given: Given) -> Made:
    _target("register_targets")(ask, given)
    return "-".join(str(given.pop(key)) for key in ("targetGroupArn", "targetId", "port")), {}


# --- Names -----------------------------------------------------------------------------------------


def _zone(ask: Ask, given: Given) -> Made:
    (vpc,), tags = given.pop("vpcs"), tags_of(given)
    said = {"Comment": given.pop("comment"), "PrivateZone": True}
    place = {"VPCRegion": "eu-central-1", "VPCId": vpc["vpcId"]}
    mark = str(time.monotonic_ns())
    made = ask("route53", "create_hosted_zone", CallerReference=mark, HostedZoneConfig=said, VPC=place, **arguments(given))  # fmt: skip
    number = made["HostedZone"]["Id"].rpartition("/")[2]
    ask("route53", "change_tags_for_resource", ResourceType="hostedzone", ResourceId=number, AddTags=tags)  # fmt: skip
    return number, {"zoneId": number}


def _names(action: str) -> Callable[[Ask, Given], object]:
    def change(ask: Ask, given: Given) -> None:
        record = {"Name": given["name"], "Type": given["type"]}
        if aliases := given.get("aliases"):
            words = {"name": "DNSName", "zoneId": "HostedZoneId"}
            record["AliasTarget"] = arguments(dict(aliases[0]), **words)
        else:
            values = [{"Value": value} for value in given["records"]]
            record |= {"TTL": given["ttl"], "ResourceRecords": values}
        changes = {"Changes": [{"Action": action, "ResourceRecordSet": record}]}
        ask("route53", "change_resource_record_sets", HostedZoneId=given["zoneId"], ChangeBatch=changes)  # fmt: skip

    return change


def _named(ask: Ask, given: Given) -> Made:
    _names("CREATE")(ask, given)
    for key in ("aliases", "records", "ttl"):
        given.pop(key, None)
    return "_".join(str(given.pop(key)) for key in ("zoneId", "name", "type")), {}


CREATE: Mapping[str, Create] = {
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": _issuer,
    "aws:s3/bucket:Bucket": _bucket,
    "aws:s3/bucketObjectv2:BucketObjectv2": _put,
    "aws:s3/bucketPolicy:BucketPolicy": _readers,
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _closed,
    "aws:iam/instanceProfile:InstanceProfile": _profile,
    "aws:iam/role:Role": _role,
    "aws:iam/rolePolicy:RolePolicy": _inline,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _granted,
    "aws:lb/listener:Listener": _listener,
    "aws:lb/loadBalancer:LoadBalancer": _balancer,
    "aws:lb/targetGroup:TargetGroup": _targets,
    "aws:lb/targetGroupAttachment:TargetGroupAttachment": _targeted,
    "aws:route53/record:Record": _named,
    "aws:route53/zone:Zone": _zone,
}  # fmt: skip
UPDATE: Mapping[str, Update] = {
    "aws:iam/rolePolicy:RolePolicy": Update(
        frozenset({"policy"}), lambda ask, _, now: _inline(ask, dict(now))
    ),
    "aws:s3/bucketObjectv2:BucketObjectv2": Update(
        frozenset({"content"}), lambda ask, _, now: _put(ask, dict(now))
    ),
    "aws:route53/record:Record": Update(
        frozenset({"aliases", "records", "ttl"}), lambda ask, _, now: _names("UPSERT")(ask, now)
    ),
}
DELETE: Mapping[str, Delete] = {
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": by_id("iam", "delete_open_id_connect_provider", "OpenIDConnectProviderArn"),
    "aws:s3/bucket:Bucket": by_id("s3", "delete_bucket", "Bucket"),
    "aws:s3/bucketObjectv2:BucketObjectv2": lambda ask, key, state: ask("s3", "delete_object", Bucket=state["bucket"], Key=key),
    "aws:s3/bucketPolicy:BucketPolicy": by_id("s3", "delete_bucket_policy", "Bucket"),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": by_id("s3", "delete_public_access_block", "Bucket"),
    "aws:iam/instanceProfile:InstanceProfile": _no_profile,
    "aws:iam/role:Role": by_id("iam", "delete_role", "RoleName"),
    "aws:iam/rolePolicy:RolePolicy": _no_inline,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": lambda ask, _, state: _grant("detach_role_policy")(ask, state),
    "aws:lb/listener:Listener": by_id("elbv2", "delete_listener", "ListenerArn"),
    "aws:lb/loadBalancer:LoadBalancer": by_id("elbv2", "delete_load_balancer", "LoadBalancerArn"),
    "aws:lb/targetGroup:TargetGroup": by_id("elbv2", "delete_target_group", "TargetGroupArn"),
    "aws:lb/targetGroupAttachment:TargetGroupAttachment": lambda ask, _, state: _target("deregister_targets")(ask, state),
    "aws:route53/record:Record": lambda ask, _, state: _names("DELETE")(ask, state),
    "aws:route53/zone:Zone": by_id("route53", "delete_hosted_zone", "Id"),
}  # fmt: skip
