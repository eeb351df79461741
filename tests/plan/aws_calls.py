"""The AWS resources of a plan as calls of its API, against moto, which emulates that API in this process.

Stands in for the provider's plugin: which calls make a resource is told here by hand, from the provider's
documentation. Names and types of arguments are checked by botocore, the rest by moto. A type that is not translated,
and an input of which nothing is made, is an error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any
from unittest import mock

import boto3
from moto import mock_aws
from moto.core.config import DefaultConfig
from moto.ec2.models import ec2_backends

from tests.plan import aws_ec2, aws_services
from toolchain.values import Properties, Value, plain

REGION, ACCOUNT = "eu-central-1", "123456789012"
# Owners of images that configs name, and the images that they have.
IMAGES = {
    "136693071363": "debian-12-amd64-20260901-2222",
    "099720109477": "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20260901",
}
# moto has no such calls: only botocore looks at what they are called with.
NOT_EMULATED = frozenset({"create_placement_group", "delete_placement_group"})
CREATE = {**aws_ec2.CREATE, **aws_services.CREATE}
UPDATE = {**aws_ec2.UPDATE, **aws_services.UPDATE}
DELETE = {**aws_ec2.DELETE, **aws_services.DELETE}

# What AWS is asked and answers: JSON, and nobody has its types.
Given = dict[str, Any]


@contextmanager
def emulated(*, policies: bool = False) -> Iterator[Calls]:
    """An empty account that knows which images and machine types there are.

    With `policies` it has AWS's own ones, which takes a second; without them nobody can be granted one.
    """
    known: DefaultConfig = {"iam": {"load_aws_managed_policies": policies}}
    # One account, whoever asks: no two of these at once.
    with (
        mock_aws(config=known),
        mock.patch("moto.settings.ENABLE_AMI_VALIDATION", new=True),
        mock.patch("moto.settings.EC2_ENABLE_INSTANCE_TYPE_VALIDATION", new=True),
    ):
        yield Calls()


class Calls:
    """An account of AWS, empty but for the images: stands in for the provider, see tests/plan/providers.py."""

    def __init__(self) -> None:
        names = ("ec2", "elbv2", "iam", "route53", "s3")
        self._clients = {name: boto3.client(name, region_name=REGION) for name in names}
        # The engine's stand-in registers resources side by side; moto's mappings are not made for that.
        self._one_at_a_time = Lock()
        self.made: list[str] = []  # calls that change something, in order
        self.all: set[tuple[str, str]] = set()  # of a client
        owned = ec2_backends[ACCOUNT][REGION].amis
        for owner, name in IMAGES.items():
            image = owned[self.ask("ec2", "register_image", Name=name)["ImageId"]]
            image.owner_id, image.architecture = owner, "x86_64"
            image.virtualization_type, image.root_device_type = "hvm", "ebs"
        self.made.clear()

    def ask(self, client: str, call: str, **given: object) -> Given:
        """One call; what is None is not sent. Raises what botocore and moto refuse it with."""
        service = self._clients[client]
        given = {key: value for key, value in given.items() if value is not None}
        self.all.add((client, call))
        if not call.startswith(("describe_", "get_", "list_")):
            self.made.append(call)
        if call in NOT_EMULATED:
            shape = service.meta.service_model.operation_model(
                service.meta.method_to_api_mapping[call]
            )
            service._convert_to_request_dict(given, shape, endpoint_url="https://x", context={})
            return {}
        with self._one_at_a_time:
            answer: Given = getattr(service, call)(**given)
        return answer

    def asked(self, token: str, given: Properties) -> Properties:
        """An invoke: the newest image of an owner, or a DNS zone by its ID."""
        said = _json(given)
        if token == "aws:ec2/getAmi:getAmi":
            filters = [{"Name": one["name"], "Values": one["values"]} for one in said["filters"]]
            found = self.ask("ec2", "describe_images", Owners=said["owners"], Filters=filters)
            return {"id": max(found["Images"], key=lambda image: image["CreationDate"])["ImageId"]}
        if token == "aws:route53/getZone:getZone":
            zone = self.ask("route53", "get_hosted_zone", Id=said["zoneId"])["HostedZone"]
            return {"name": zone["Name"].rstrip("."), "privateZone": zone["Config"]["PrivateZone"]}
        raise NotImplementedError(token)

    def created(self, kind: str, inputs: Properties) -> tuple[str, Properties]:
        """ID and outputs of a new resource."""
        if kind.startswith("pulumi:providers:"):
            return "provider", dict(inputs)
        left = {key: value for key, value in _json(inputs).items() if value is not None}
        number, outputs = CREATE[kind](self.ask, left)
        if left:
            raise NotImplementedError(f"{kind}: nothing is made of {sorted(left)}")
        return number, {**inputs, **outputs}

    def updated(
        self, kind: str, number: str, old: Properties, state: Properties, new: Properties
    ) -> Properties:
        """Outputs of a resource changed in place; `old` are the inputs that it had."""
        was, now = _json(old), _json(new)
        changed = {key for key in was.keys() | now.keys() if was.get(key) != now.get(key)}
        if left := changed - UPDATE[kind].inputs:
            raise NotImplementedError(f"{kind}: no call changes {sorted(left)}")
        UPDATE[kind].call(self.ask, number, now)
        return {**state, **new}

    def deleted(self, kind: str, number: str, state: Properties) -> None:
        """A resource goes, with the outputs that it had."""
        if not kind.startswith("pulumi:providers:"):
            DELETE[kind](self.ask, number, _json(state))

    def zone(self, domain: str) -> str:
        """ID of a public DNS zone, which is there from now on."""
        mark = str(time.monotonic_ns())
        # AWS's IDs begin with this letter, moto's with any.
        with mock.patch("moto.route53.models.ROUTE53_ID_CHOICE", ["Z"]):
            found = self.ask("route53", "create_hosted_zone", Name=domain, CallerReference=mark)
        number: str = found["HostedZone"]["Id"].rpartition("/")[2]
        return number


def _json(given: Properties) -> Given:
    return {key: _whole(plain(value)) for key, value in given.items()}


def _whole(value: Value) -> Any:
    """The protocol has no whole numbers, AWS wants them."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    return value
