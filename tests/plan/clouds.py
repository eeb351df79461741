"""Resources of the clouds as their providers see them: what is required, what fits, what cannot be together.

Names and types of inputs are those of the SDKs, which are made from the providers' schemas. What schemas do not
say (lengths, words, what excludes what) is told from the providers' documentation, at each rule. Outputs are made up.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import types
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Network
from typing import ForwardRef

from toolchain.differences import differences, top
from toolchain.resources import Difference
from toolchain.values import Properties, Value, plain

# By type: inputs whose change makes the provider replace the resource (its documentation: "changing this forces a
# new resource"). Of machines only what is not ignored.
_REPLACING = {
    "gcp:compute/instance:Instance": {"name", "zone", "bootDisk", "networkInterfaces"},
    "gcp:compute/disk:Disk": {"name", "zone", "type", "diskEncryptionKey"},  # a size is changed in place, to a bigger one
    "gcp:compute/forwardingRule:ForwardingRule": {"name", "ipAddress", "loadBalancingScheme", "ports", "portRange"},
    "gcp:compute/instanceGroupMembership:InstanceGroupMembership": {"instance", "instanceGroup", "zone"},
    "gcp:compute/network:Network": {"name"},
    "gcp:compute/subnetwork:Subnetwork": {"name", "network", "region"},
    "aws:ec2/instance:Instance": {"ami", "availabilityZone", "privateIp", "subnetId", "userData"},
    "aws:ebs/volume:Volume": {"availabilityZone", "kmsKeyId"},
    "aws:ec2/volumeAttachment:VolumeAttachment": {"instanceId", "volumeId", "deviceName"},
    "aws:ec2/subnet:Subnet": {"cidrBlock", "availabilityZone", "vpcId"},
    "aws:ec2/vpc:Vpc": {"cidrBlock"},
    "aws:ec2/securityGroup:SecurityGroup": {"name", "description", "vpcId"},
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": {"securityGroupId"},
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": {"securityGroupId"},
    "aws:lb/loadBalancer:LoadBalancer": {"name", "internal", "loadBalancerType"},
    "aws:lb/listener:Listener": {"loadBalancerArn"},
    "aws:lb/targetGroup:TargetGroup": {"name", "port", "protocol", "targetType", "vpcId"},
    "gcp:dns/recordSet:RecordSet": {"name", "managedZone", "project"},
    "gcp:dns/managedZone:ManagedZone": {"name", "dnsName", "visibility"},
    "aws:route53/record:Record": {"name", "type", "zoneId", "setIdentifier"},
    "aws:route53/zone:Zone": {"name"},
    "aws:lb/targetGroupAttachment:TargetGroupAttachment": {"targetGroupArn", "targetId", "port"},
    # ForceNew and RequiresReplace of terraform-provider-hcloud.
    "hcloud:index/networkSubnet:NetworkSubnet": {"networkId", "type", "networkZone", "ipRange"},
    "hcloud:index/sshKey:SshKey": {"publicKey"},
    "hcloud:index/primaryIp:PrimaryIp": {"type", "location"},
    "hcloud:index/volume:Volume": {"location"},
    "hcloud:index/volumeAttachment:VolumeAttachment": {"volumeId", "serverId"},
    "hcloud:index/server:Server": {"image", "location", "userData", "sshKeys"},
    "hcloud:index/loadBalancer:LoadBalancer": {"location", "networkZone"},
    "hcloud:index/loadBalancerNetwork:LoadBalancerNetwork": {"loadBalancerId", "networkId", "subnetId", "ip"},
    "hcloud:index/loadBalancerService:LoadBalancerService": {"loadBalancerId", "protocol", "listenPort"},
    "hcloud:index/loadBalancerTarget:LoadBalancerTarget": {"loadBalancerId", "serverId"},
}  # fmt: skip
_CLOUDS = ("gcp", "aws", "hcloud")


def is_cloud(kind: str) -> bool:
    """Whether a type belongs to one of the clouds' providers."""
    return kind.removeprefix("pulumi:providers:").partition(":")[0] in _CLOUDS


def difference(kind: str, old: Properties, new: Properties) -> Difference:
    """What the provider says about the inputs of the last success and the wanted ones."""
    changes = differences(old, new)
    replacing = _REPLACING.get(kind, set()) | _leaving(kind, old, new)
    return Difference(changes, frozenset(path for path in changes if top(path) in replacing))


def _leaving(kind: str, old: Properties, new: Properties) -> set[str]:
    """A network load balancer takes a subnet more in place, and leaves or changes none (customizeDiffLoadBalancerNLB)."""
    if kind != "aws:lb/loadBalancer:LoadBalancer":
        return set()
    keys = ("subnetMappings", "subnets")
    was, now = ([one for key in keys for one in plain(of.get(key)) or []] for of in (old, new))  # type: ignore[union-attr]
    return {*keys} if [one for one in was if one not in now] else set()


def _address(mark: str) -> str:
    return f"198.18.{int(mark[:2], 16)}.{int(mark[2:4], 16)}"


def created(kind: str, inputs: Properties) -> tuple[str, Properties]:
    """ID and outputs of a new resource."""
    short = kind.rpartition(":")[2]
    mark = uuid.uuid4().hex
    name = str(plain(inputs.get("name")) or mark[:8])
    if kind.startswith("gcp:"):
        number = f"projects/my-project/{short}/{name}"
        made: dict[str, Value] = {
            "selfLink": f"https://www.googleapis.com/compute/v1/{number}",
            "name": name,
            "email": f"{plain(inputs.get('accountId'))}@my-project.iam.gserviceaccount.com",
            "address": "198.51.100.7" if name.endswith("-external") else _address(mark),
        }
        return number, {**made, **inputs}
    if kind.startswith("hcloud:"):
        return _of_hcloud(short, mark, inputs)
    prefix = {"Vpc": "vpc", "Subnet": "subnet", "Volume": "vol", "Instance": "i"}.get(short, "x")
    number = f"{prefix}-{mark[:17]}"
    made = {
        "arn": f"arn:aws:x:eu-central-1:123456789012:{short}/{number}",
        "name": name,
        "publicIp": _address(mark),
        "allocationId": f"eipalloc-{mark[:17]}",
        "dnsName": f"{name}.elb.eu-central-1.amazonaws.com",
        "defaultSecurityGroupId": f"sg-{mark[:17]}",
        "zoneId": f"Z{mark[:20].upper()}",
    }
    return number, {**made, **inputs}


def _of_hcloud(short: str, mark: str, inputs: Properties) -> tuple[str, Properties]:
    """IDs are numbers, as texts, but for what is a part of something else."""
    whole = {
        "NetworkSubnet": ("networkId", "ipRange"),
        "LoadBalancerNetwork": ("loadBalancerId", "ip"),
    }
    parts = [str(plain(inputs[key])).removesuffix(".0") for key in whole.get(short, ())]
    made: dict[str, Value] = {"ipAddress": _address(mark), "ipv4": "198.51.100.7"}
    return "-".join(parts) or str(int(mark[:10], 16)), {**made, **inputs}


def problems(kind: str, inputs: Properties) -> list[str]:
    """Why the provider would refuse these inputs: all reasons."""
    given = {key: plain(value) for key, value in inputs.items()}
    if kind.startswith("pulumi:providers:"):
        return []
    found = list(_of_annotations(kind, given))
    for pattern, rule in _RULES:
        if re.fullmatch(pattern, kind):
            found += [f"{kind}: {text}" for text in rule(given)]
    return found


# --- Names and types, by the SDK ---------------------------------------------------------------------------------


def _of_annotations(kind: str, given: Mapping[str, Value]) -> Iterator[str]:
    known, required, names = _declared(kind)
    for missing in required:
        if given.get(_camel(missing)) is None:
            yield f"{kind}: {missing} is missing"
    for key, value in given.items():
        if key not in known:
            yield f"{kind}: no input {key}"
        elif value is not None and not _fits(value, known[key].annotation, names):
            yield f"{kind}: {key} is {value!r}"


@functools.cache
def _declared(
    kind: str,
) -> tuple[Mapping[str, inspect.Parameter], list[str], Mapping[str, object]]:
    """Inputs of a type by their names on the wire, those that have to be there, and names of the SDK's types."""
    package, path, name = kind.split(":")
    folder = path.partition("/")[0]
    module = importlib.import_module(
        f"pulumi_{package}" + (f".{folder}" if folder != "index" else "")
    )
    cls = getattr(module, name)
    accepted = inspect.signature(cls._internal_init).parameters
    # What the constructor itself asks for, when it makes the bag of inputs.
    source = inspect.getsource(cls._internal_init)
    return (
        {_camel(key): parameter for key, parameter in accepted.items()},
        re.findall(r"Missing required property '(\w+)'", source),
        vars(importlib.import_module(f"{module.__name__}._inputs")),
    )


def _fits(value: Value, annotation: object, names: Mapping[str, object]) -> bool:
    if isinstance(annotation, ForwardRef):
        annotation = names.get(annotation.__forward_arg__.strip("'\""), annotation)
    if isinstance(annotation, str):
        annotation = names.get(annotation, annotation)
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part, names) for part in parts)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(_fits(v, parts[1], names) for v in value.values())
    if isinstance(value, list):
        listed = isinstance(origin, type) and issubclass(origin, typing.Sequence)
        return listed and all(_fits(item, parts[0], names) for item in value)
    if annotation in (str, bool):
        return type(value) is annotation
    if annotation in (int, float):
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return not isinstance(value, bool) and (whole or annotation is float)
    if (
        isinstance(value, dict)
        and isinstance(annotation, type)
        and not issubclass(annotation, dict)
    ):
        return _nested(value, annotation, names)
    return False


def _nested(value: Mapping[str, Value], args: type, names: Mapping[str, object]) -> bool:
    parameters = {
        _camel(key): parameter for key, parameter in inspect.signature(args).parameters.items()
    }
    required = {key for key, p in parameters.items() if p.default is inspect.Parameter.empty}
    return required <= set(value) <= set(parameters) and all(
        _fits(item, parameters[key].annotation, names) for key, item in value.items()
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


# --- What the documentation says beyond that ---------------------------------------------------------------------

Given = Mapping[str, Value]
_RFC1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def _gcp_name(given: Given) -> Iterator[str]:
    """Compute Engine: names are RFC 1035 labels of at most 63 characters."""
    name = str(given.get("name"))
    if not _RFC1035.fullmatch(name):
        yield f"name {name!r}"


def _gcp_labels(given: Given) -> Iterator[str]:
    """Labels: keys and values of up to 63 lowercase letters, digits, - and _; at most 64 of them."""
    labels = given.get("labels") or {}
    assert isinstance(labels, dict)
    for key, value in labels.items():
        if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key) or not re.fullmatch(
            r"[a-z0-9_-]{0,63}", str(value)
        ):
            yield f"label {key}={value}"


def _gcp_instance(given: Given) -> Iterator[str]:
    tags = given.get("tags") or []
    assert isinstance(tags, list)
    if bad := [tag for tag in tags if not _RFC1035.fullmatch(str(tag))]:
        yield f"tags {bad}"
    if not given.get("zone"):
        yield "no zone, and the provider has none"
    (door,) = _list(given, "networkInterfaces")
    if bool(door.get("network")) == bool(door.get("subnetwork")):
        yield "an interface needs network or subnetwork, and one of them is enough"
    # Metadata: 256 KB a value, 512 KB in all ("Metadata", limitations).
    if len(str(given.get("metadata")).encode()) > 256 * 1024:
        yield "metadata is too long"


def _gcp_scheduling(given: Given) -> Iterator[str]:
    """Of spot machines: not started again, not moved, and stopped or deleted ("Spot VMs", and the provider's words)."""
    said = given.get("scheduling")
    if said is None:
        return
    assert isinstance(said, dict)
    wanted = {
        "provisioningModel": "SPOT",
        "preemptible": True,
        "automaticRestart": False,
        "onHostMaintenance": "TERMINATE",
    }
    if {key: said.get(key) for key in wanted} != wanted or said.get(
        "instanceTerminationAction"
    ) not in ("STOP", "DELETE"):
        yield f"scheduling {said}"
    if given.get("deletionProtection"):
        yield "a spot machine that is protected"


def _aws_market(given: Given) -> Iterator[str]:
    """Persistent requests stop or hibernate; a spot machine has no protection (RunInstances, SpotMarketOptions)."""
    said = given.get("instanceMarketOptions")
    if said is None:
        return
    assert isinstance(said, dict)
    options = said.get("spotOptions")
    assert isinstance(options, dict)
    kind, then = options.get("spotInstanceType"), options.get("instanceInterruptionBehavior")
    if said.get("marketType") != "spot" or (kind, then) not in (
        ("one-time", "terminate"),
        ("persistent", "stop"),
    ):
        yield f"market {said}"
    if given.get("disableApiTermination") is not None or given.get("forceDestroy"):
        yield "a word about the protection of a spot machine"


def _gcp_network(given: Given) -> Iterator[str]:
    """Some resources hand a network on as it is, and the API takes addresses, no names (instance groups)."""
    inside = _list(given, "networkInterfaces") if "networkInterfaces" in given else []
    for of in (given, *inside):
        for key in ("network", "subnetwork"):
            value = str(of.get(key) or "projects/")
            if not re.match(r"(https://[^ ]*/)?projects/", value):
                yield f"{key} {value!r} is no address"


def _gcp_boot_disk(given: Given) -> Iterator[str]:
    """Series 4 takes Hyperdisk alone, older ones than 3 none (Compute Engine, "Disk types")."""
    boot = given.get("bootDisk")
    made = boot.get("initializeParams") if isinstance(boot, dict) else None
    if not isinstance(made, dict):
        yield "no boot disk"
        return
    series = re.match(r"[a-z]([0-9]+)", str(given.get("machineType")))
    is_new = series is not None and int(series[1]) >= 4
    if series and int(series[1]) != 3 and is_new != str(made.get("type")).startswith("hyperdisk"):
        yield f"{given.get('machineType')} with {made.get('type')}"


def _gcp_firewall(given: Given) -> Iterator[str]:
    """One of sourceRanges and sourceTags has to be given for ingress; ICMP has no ports."""
    if given.get("direction") != "INGRESS" or given.get("destinationRanges"):
        yield "no rule for ingress"
    if not given.get("sourceRanges") and not given.get("sourceTags"):
        yield "neither sourceRanges nor sourceTags"
    if not given.get("targetTags"):
        yield "without targetTags it is for every machine of the network"
    if bool(given.get("allows")) == bool(given.get("denies")):
        yield "one of allows and denies"
    for allow in _list(given, "allows"):
        ports = allow.get("ports") or []
        assert isinstance(ports, list)
        if allow.get("protocol") == "icmp" and ports:
            yield "ICMP has no ports"
        if bad := [p for p in ports if not re.fullmatch(r"[0-9]{1,5}(-[0-9]{1,5})?", str(p))]:
            yield f"ports {bad}"


def _gcp_nat(given: Given) -> Iterator[str]:
    words = {"AUTO_ONLY", "MANUAL_ONLY"}
    if given.get("natIpAllocateOption") not in words:
        yield "natIpAllocateOption"
    least, most = given.get("minPortsPerVm"), given.get("maxPortsPerVm")
    if given.get("enableDynamicPortAllocation"):
        # Powers of two; with endpoint-independent mapping there is none of it ("NAT ports").
        powers = [
            n for n in (least, most) if isinstance(n, int | float) and int(n).bit_count() == 1
        ]
        if len(powers) != 2 or given.get("enableEndpointIndependentMapping") is not False:
            yield "dynamic ports"
    elif not isinstance(least, int | float) or least < 2048:
        yield "64 ports a machine are few for all of its pods"
    listed = given.get("sourceSubnetworkIpRangesToNat") == "LIST_OF_SUBNETWORKS"
    if listed != bool(given.get("subnetworks")):
        yield "subnetworks go with LIST_OF_SUBNETWORKS"


def _gcp_rule(given: Given) -> Iterator[str]:
    """`ports`, `portRange` and `allPorts` exclude each other; up to five ports."""
    ways = [key for key in ("ports", "portRange", "allPorts") if given.get(key)]
    if len(ways) != 1:
        yield f"ports are told by {ways}"
    if given.get("loadBalancingScheme") not in ("INTERNAL", "EXTERNAL"):
        yield "loadBalancingScheme"
    internal = given.get("loadBalancingScheme") == "INTERNAL"
    if internal != bool(given.get("subnetwork")) or (internal and "portRange" in ways):
        yield "subnetwork is for INTERNAL, portRange is for EXTERNAL"
    # Of external ones those that have a backend service ("Forwarding rules", ports).
    if "ports" in ways and (len(_ports(given)) > 5 or not given.get("backendService")):
        yield "ports"
    if bool(given.get("backendService")) == bool(given.get("target")):
        yield "one of backendService and target"


def _ports(given: Given) -> list[Value]:
    ports = given.get("ports")
    assert isinstance(ports, list)
    return ports


def _gcp_service(given: Given) -> Iterator[str]:
    """Passthrough: CONNECTION is the one balancing mode; one health check."""
    modes = {backend.get("balancingMode") for backend in _list(given, "backends")}
    if modes - {"CONNECTION"}:
        yield f"balancing mode {modes}"
    if given.get("loadBalancingScheme") not in ("INTERNAL", "EXTERNAL"):
        yield "loadBalancingScheme"
    if given.get("protocol") != "TCP" or not given.get("healthChecks"):
        yield "protocol, health check"


def _gcp_check(given: Given) -> Iterator[str]:
    """Exactly one kind of check; timeout at most the interval."""
    kinds = [key for key in given if key.endswith("HealthCheck")]
    if len(kinds) != 1:
        yield f"kinds {kinds}"
    timeout, interval = given.get("timeoutSec"), given.get("checkIntervalSec")
    assert isinstance(timeout, int | float)
    assert isinstance(interval, int | float)
    if timeout > interval:
        yield "the timeout is longer than the interval"


def _gcp_account(given: Given) -> Iterator[str]:
    if not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])", str(given["accountId"])) or not (
        6 <= len(str(given["accountId"])) <= 30
    ):
        yield f"account ID {given['accountId']}"


def _aws_rule(given: Given) -> Iterator[str]:
    """One source or destination; ports for TCP and UDP, -1 for ICMP, none for all protocols (-1)."""
    ways = [
        key
        for key in ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
        if given.get(key)
    ]
    if len(ways) != 1:
        yield f"one of them: {ways}"
    protocol, first, last = given.get("ipProtocol"), given.get("fromPort"), given.get("toPort")
    if protocol == "-1" and (first is not None or last is not None):
        yield "all protocols have no ports"
    if protocol == "icmp" and (first, last) != (-1, -1):
        yield "ICMP of every type is -1"
    if protocol in ("tcp", "udp"):
        assert isinstance(first, int | float)
        assert isinstance(last, int | float)
        if not 0 <= first <= last <= 65535:
            yield f"ports {first} to {last}"
    elif protocol in ("4", "50"):
        if first is not None or last is not None:
            yield f"protocol {protocol} has no ports"
    elif protocol not in ("-1", "icmp"):
        yield f"protocol {protocol}"


def _aws_instance(given: Given) -> Iterator[str]:
    """User data: 16 KB before encoding. `securityGroups` are for the default VPC alone."""
    if len(str(given.get("userData", "")).encode()) > 16 * 1024:
        yield "user data is over 16 KB"
    if given.get("securityGroups"):
        yield "securityGroups instead of vpcSecurityGroupIds"
    if given.get("availabilityZone") and not given.get("subnetId"):
        yield "no subnet"
    options = given.get("metadataOptions")
    if not isinstance(options, dict) or options.get("httpTokens") != "required":
        yield "metadata without a token can be read by whoever gets a request through"
    root = given.get("rootBlockDevice")
    if not isinstance(root, dict) or root.get("encrypted") is not True:
        yield "the boot disk is not encrypted"


def _aws_volume(given: Given) -> Iterator[str]:
    """`iops` is needed for io1 and io2, `throughput` is of gp3; at least one of size and snapshotId; a key encrypts."""
    if given.get("throughput") and given.get("type") != "gp3":
        yield "throughput is for gp3"
    if given.get("kmsKeyId") and not given.get("encrypted"):
        yield "a key, and encrypted is not true"
    if given.get("type") in ("io1", "io2") and not given.get("iops"):
        yield "iops is needed"
    if not given.get("size") and not given.get("snapshotId"):
        yield "neither size nor snapshotId"


def _aws_lb_name(given: Given) -> Iterator[str]:
    """At most 32 letters, digits and hyphens, none at an end, and no `internal-` before."""
    name = str(given.get("name"))
    if not re.fullmatch(r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,30}[a-zA-Z0-9])?", name) or name.startswith(
        "internal-"
    ):
        yield f"name {name!r}"


def _aws_balancer(given: Given) -> Iterator[str]:
    if bool(given.get("subnets")) == bool(given.get("subnetMappings")):
        yield "one of subnets and subnetMappings"
    for mapping in _list(given, "subnetMappings"):
        if mapping.get("allocationId"):
            yield "an Elastic IP, of which an account has five at first"
        if bool(mapping.get("privateIpv4Address")) != bool(given.get("internal")):
            yield "inner addresses are for internal load balancers"
    if given.get("loadBalancerType") != "network":
        yield "no network load balancer"


def _aws_group(given: Given) -> Iterator[str]:
    """Up to 255 characters, and no `sg-` before: so begin IDs."""
    name = str(given.get("name"))
    if name.startswith("sg-") or len(name) > 255:
        yield f"name {name!r}"


def _aws_tags(given: Given) -> Iterator[str]:
    """At most 50; keys of 1 to 128 characters, values of up to 256, and none of AWS's own."""
    tags = given.get("tags") or {}
    assert isinstance(tags, dict)
    if len(tags) > 50:
        yield f"{len(tags)} tags"
    for key, value in tags.items():
        if (
            not re.fullmatch(r"[\w .:/=+@-]{1,128}", key)
            or key.startswith("aws:")
            or len(str(value)) > 256
        ):
            yield f"tag {key}={value}"


def _aws_targets(given: Given) -> Iterator[str]:
    """Network load balancers: protocol TCP; interval 5 to 300, timeout 2 to 120, counts 2 to 10."""
    if given.get("protocol") != "TCP" or given.get("targetType") not in ("ip", "instance"):
        yield "protocol, target type"
    check = given.get("healthCheck")
    if not isinstance(check, dict):
        yield "no health check"
        return
    limits = {"interval": (5, 300), "timeout": (2, 120), "healthyThreshold": (2, 10), "unhealthyThreshold": (2, 10)}  # fmt: skip
    for key, (low, high) in limits.items():
        value = check.get(key)
        assert isinstance(value, int | float)
        if not low <= value <= high:
            yield f"{key} {value}"
    if check.get("protocol") not in ("HTTPS", "HTTP") and check.get("path"):
        yield "a path is for HTTP"


def _aws_profile(given: Given) -> Iterator[str]:
    """IAM: names of up to 128 (roles: 64) characters."""
    if not re.fullmatch(r"[\w+=,.@-]{1,64}", str(given.get("name"))):
        yield f"name {given.get('name')}"


def _aws_nat(given: Given) -> Iterator[str]:
    """A public one needs an Elastic IP."""
    if given.get("connectivityType", "public") == "public" and not given.get("allocationId"):
        yield "no allocationId"


def _aws_placement(given: Given) -> Iterator[str]:
    if given.get("strategy") not in ("cluster", "partition", "spread"):
        yield "strategy"


_DNS_LABELS = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+")


def _gcp_record(given: Given) -> Iterator[str]:
    """Cloud DNS: names are fully qualified, with a dot at the end; one of rrdatas and routingPolicy."""
    if not _DNS_LABELS.fullmatch(str(given.get("name"))):
        yield f"name {given.get('name')!r}"
    values = given.get("rrdatas") or []
    assert isinstance(values, list)
    if bool(values) == bool(given.get("routingPolicy")):
        yield "one of rrdatas and routingPolicy"
    yield from _addresses(given.get("type"), values)
    if values and not given.get("ttl"):
        yield "no ttl"


def _gcp_zone(given: Given) -> Iterator[str]:
    """A private zone is seen by networks, told as projects/<project>/global/networks/<name> or a URL."""
    if not _DNS_LABELS.fullmatch(str(given.get("dnsName"))):
        yield f"dnsName {given.get('dnsName')!r}"
    config = given.get("privateVisibilityConfig") or {}
    assert isinstance(config, dict)
    networks = _list(config, "networks")
    if (given.get("visibility") == "private") != bool(networks):
        yield "networks go with visibility private"
    for network in networks:
        if not re.match(r"(https://.*/)?projects/[^/]+/", str(network.get("networkUrl"))):
            yield f"networkUrl {network.get('networkUrl')!r}"


def _aws_record(given: Given) -> Iterator[str]:
    """Exactly one of records, which need a ttl, and alias, which has none; the name within 255 octets."""
    values, aliases = given.get("records") or [], _list(given, "aliases")
    assert isinstance(values, list)
    if bool(values) == bool(aliases):
        yield "one of records and aliases"
    if bool(values) != (given.get("ttl") is not None):
        yield "ttl goes with records"
    if len(aliases) > 1:
        yield "one alias"
    yield from _addresses(given.get("type"), values)
    if not _DNS_LABELS.fullmatch(f"{given.get('name')}."):
        yield f"name {given.get('name')!r}"
    if given.get("allowOverwrite"):
        yield "somebody else's record would be lost"


def _aws_zone(given: Given) -> Iterator[str]:
    """A zone without a VPC is public; `delegationSetId` excludes VPCs."""
    if not _list(given, "vpcs"):
        yield "a public zone"
    if given.get("delegationSetId") or given.get("forceDestroy"):
        yield "delegationSetId, forceDestroy"


def _addresses(kind: Value, values: list[Value]) -> Iterator[str]:
    four = r"([0-9]{1,3}\.){3}[0-9]{1,3}"
    if kind != "A" or [value for value in values if not re.fullmatch(four, str(value))]:
        yield f"{values} for type {kind}"
    if len(set(map(str, values))) != len(values):
        yield f"{values}: one of them twice"


_LOCATIONS = ("fsn1", "nbg1", "hel1", "ash", "hil", "sin")


def _hcloud_name(given: Given) -> Iterator[str]:
    """Of servers a hostname (RFC 1123), and all others are called like them."""
    if not _RFC1035.fullmatch(str(given.get("name"))):
        yield f"name {given.get('name')!r}"


def _hcloud_server(given: Given) -> Iterator[str]:
    """Both protections are one (the provider's page of hcloud_server); 32 KiB of user data; 5 firewalls (Firewalls, FAQ)."""
    if given.get("location") not in _LOCATIONS or given.get("datacenter"):
        yield f"location {given.get('location')}"
    if given.get("deleteProtection") != given.get("rebuildProtection"):
        yield "one protection without the other"
    if len(str(given.get("userData", "")).encode()) > 32 * 1024:
        yield "user data is over 32 KiB"
    if not given.get("sshKeys"):
        yield "no SSH key: a password of root would be made, and sent by mail"
    walls = given.get("firewallIds")
    if not isinstance(walls, list) or not 1 <= len(walls) <= 5:
        yield f"firewalls {walls}: without one all ports are open"
    for one in _list(given, "networks"):
        if bool(one.get("networkId")) == bool(one.get("subnetId")):
            yield "one of networkId and subnetId"
        if one.get("aliasIps") != []:
            yield "without aliasIps each update attaches the network again"
    if len(_list(given, "publicNets")) != 1:
        yield "one publicNets"


def _hcloud_firewall(given: Given) -> Iterator[str]:
    """A port is of tcp and udp alone, and needed there; sources are of `in`; 500 rules (internal/firewall)."""
    rules = _list(given, "rules")
    if len(rules) > 500:
        yield f"{len(rules)} rules"
    for rule in rules:
        if rule.get("protocol") not in ("tcp", "udp", "icmp", "esp", "gre"):
            yield f"protocol {rule.get('protocol')}"
        if (rule.get("protocol") in ("tcp", "udp")) != bool(rule.get("port")):
            yield f"port {rule.get('port')} of {rule.get('protocol')}"
        if rule.get("direction") != "in" or not rule.get("sourceIps") or rule.get("destinationIps"):
            yield "a rule of `in` has sources, and no destinations"


def _hcloud_volume(given: Given) -> Iterator[str]:
    size = given.get("size")
    assert isinstance(size, int | float)
    if not 10 <= size <= 10240:
        yield f"size {size}"
    if given.get("location") not in _LOCATIONS or given.get("serverId"):
        yield "its location, or its server, is what it has"
    if given.get("format") or given.get("automount"):
        yield "somebody else's file system"


def _hcloud_attachment(given: Given) -> Iterator[str]:
    if given.get("automount") is not False:
        yield "automount"


def _hcloud_one_of(*keys: str) -> Callable[[Given], Iterator[str]]:
    def rule(given: Given) -> Iterator[str]:
        if len([key for key in keys if given.get(key) is not None]) != 1:
            yield f"exactly one of {', '.join(keys)}"

    return rule


def _hcloud_service(given: Given) -> Iterator[str]:
    """Of tcp both ports are needed; checks are by http or tcp, and https is http with tls."""
    if (
        given.get("protocol") != "tcp"
        or not given.get("listenPort")
        or not given.get("destinationPort")
    ):
        yield "protocol, ports"
    check = given.get("healthCheck")
    if not isinstance(check, dict) or check.get("protocol") not in ("http", "tcp"):
        yield f"check {check}"
        return
    if (check["protocol"] == "http") != isinstance(check.get("http"), dict):
        yield "http is of protocol http"
    interval, timeout = (float(str(check[key])) for key in ("interval", "timeout"))
    if not 3 <= interval <= 60 or timeout > interval:
        yield "interval, timeout"


def _hcloud_network(given: Given) -> Iterator[str]:
    """One of RFC 1918 (the provider's page of hcloud_network)."""
    network = IPv4Network(str(given.get("ipRange")))
    if not network.is_private or not str(network).startswith(("10.", "172.", "192.168.")):
        yield f"range {network}"


def _list(given: Given, key: str) -> list[dict[str, Value]]:
    found = given.get(key) or []
    assert isinstance(found, list)
    return [item for item in found if isinstance(item, dict)]


_RULES: list[tuple[str, Callable[[Given], Iterator[str]]]] = [
    (r"gcp:compute/(?!instanceGroupMembership).*", _gcp_name),
    (r"gcp:compute/.*", _gcp_labels),
    (r"gcp:compute/.*", _gcp_network),
    (r"gcp:compute/instance:.*", _gcp_instance),
    (r"gcp:compute/instance:.*", _gcp_boot_disk),
    (r"gcp:compute/instance:.*", _gcp_scheduling),
    (r"gcp:compute/firewall:.*", _gcp_firewall),
    (r"gcp:compute/routerNat:.*", _gcp_nat),
    (r"gcp:compute/forwardingRule:.*", _gcp_rule),
    (r"gcp:compute/regionBackendService:.*", _gcp_service),
    (r"gcp:compute/regionHealthCheck:.*", _gcp_check),
    (r"gcp:serviceaccount/account:.*", _gcp_account),
    (r"gcp:dns/managedZone:.*", _gcp_name),
    (r"gcp:dns/managedZone:.*", _gcp_labels),
    (r"gcp:dns/managedZone:.*", _gcp_zone),
    (r"gcp:dns/recordSet:.*", _gcp_record),
    (r"aws:route53/record:.*", _aws_record),
    (r"aws:route53/zone:.*", _aws_zone),
    (r"aws:vpc/securityGroup(In|E)gressRule:.*", _aws_rule),
    (r"aws:ec2/instance:.*", _aws_instance),
    (r"aws:ec2/instance:.*", _aws_market),
    (r"aws:ebs/volume:.*", _aws_volume),
    (r"aws:lb/(loadBalancer|targetGroup):.*", _aws_lb_name),
    (r"aws:lb/loadBalancer:.*", _aws_balancer),
    (r"aws:lb/targetGroup:.*", _aws_targets),
    (r"aws:iam/(role|instanceProfile):.*", _aws_profile),
    (r"aws:ec2/natGateway:.*", _aws_nat),
    (r"aws:ec2/securityGroup:.*", _aws_group),
    (r"aws:.*", _aws_tags),
    (r"aws:ec2/placementGroup:.*", _aws_placement),
    (
        r"hcloud:index/(server|volume|firewall|network|sshKey|primaryIp|loadBalancer|placementGroup):.*",
        _hcloud_name,
    ),
    (r"hcloud:.*", _gcp_labels),
    (r"hcloud:index/server:.*", _hcloud_server),
    (r"hcloud:index/firewall:.*", _hcloud_firewall),
    (r"hcloud:index/volume:.*", _hcloud_volume),
    (r"hcloud:index/volumeAttachment:.*", _hcloud_attachment),
    (r"hcloud:index/network:.*", _hcloud_network),
    (r"hcloud:index/primaryIp:.*", _hcloud_one_of("location", "assigneeId")),
    (r"hcloud:index/loadBalancer:.*", _hcloud_one_of("location", "networkZone")),
    (r"hcloud:index/loadBalancerNetwork:.*", _hcloud_one_of("networkId", "subnetId")),
    (r"hcloud:index/loadBalancerTarget:.*", _hcloud_one_of("serverId", "labelSelector", "ip")),
    (r"hcloud:index/loadBalancerService:.*", _hcloud_service),
]
