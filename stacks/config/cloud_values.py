"""The texts that name things of a cloud: each function returns the accepted value or says why not.

The forms are those of the providers' own documentation; whether a thing of that name is there is
known to the provider alone.
"""

from __future__ import annotations

import re

from stacks.config.values import short

PROJECT = re.compile(r"([a-z][a-z0-9.-]{0,62}:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
REGION = re.compile(r"[a-z]{2,20}(-[a-z]{2,20}){1,3}-?[0-9]{1,2}")
NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
LABEL = re.compile(r"[a-z0-9_-]{0,63}")
IMAGE = re.compile(r"ami-[0-9a-f]{8,17}|[a-z0-9.:-]{1,63}/[A-Za-z0-9_./-]{1,100}")
HCLOUD_IMAGE = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
TYPE = re.compile(r"[a-z][a-z0-9-]{1,30}(\.[a-z0-9-]{1,30})?")
ROLE = re.compile(r"(projects/[a-z0-9.:-]+/|organizations/[0-9]+/)?roles/[A-Za-z0-9_.]{1,100}")
ARN = re.compile(r"arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]{1,512}")
KMS_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]{1,30}:[0-9]{12}:key/(mrk-)?[0-9a-f-]{32,36}")
KMS_NAME = re.compile(
    r"projects/[a-z0-9.:-]{6,63}/locations/[a-z0-9-]{2,40}/keyRings/[A-Za-z0-9_-]{1,63}/"
    r"cryptoKeys/[A-Za-z0-9_-]{1,63}"
)
POOL = re.compile(r"(?!gcp-)[a-z0-9-]{4,32}")
AWS_ZONE = re.compile(r"Z[A-Z0-9]{1,31}")
DNS_ZONE = re.compile(f"{AWS_ZONE.pattern}|{NAME.pattern}")
ACCOUNT = re.compile(r"[0-9]{12}")
AWS_ID = re.compile(r"(vpc|subnet)-[0-9a-f]{8,17}")


def _form(form: re.Pattern[str], text: str, what: str, *examples: str) -> str:
    if not form.fullmatch(text):
        shown = " or ".join(repr(example) for example in examples)
        raise ValueError(f"{short(text)} is not a valid {what}; write it as {shown}")
    return text


def project(text: str) -> str:
    """ID of a project of Google Cloud."""
    return _form(PROJECT, text, "project ID", "my-project-123")


def region(text: str) -> str:
    """A region, not a zone in it."""
    return _form(REGION, text, "region", "europe-west3", "eu-central-1")


def name(text: str) -> str:
    """Name of a network or subnet (RFC 1035 label)."""
    return _form(NAME, text, "name of a network", "my-network")


def label(text: str) -> str:
    """Key or value of a label that both clouds take."""
    if not LABEL.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a label of a cloud; use up to 63 of a-z, 0-9, '_' and '-'"
        )
    return text


def image(text: str) -> str:
    """An image, or where its family is found."""
    return _form(
        IMAGE, text, "image", "ubuntu-os-cloud/ubuntu-2404-lts-amd64", "ami-0123456789abcdef0"
    )


def hcloud_image(text: str) -> str:
    """An image of Hetzner Cloud, by name, or a snapshot by its ID."""
    return _form(HCLOUD_IMAGE, text, "image", "debian-12", "123456789")


def machine_type(text: str) -> str:
    """Machine type of Google Cloud, instance type of AWS, server type of Hetzner Cloud."""
    return _form(TYPE, text, "machine type", "e2-standard-4", "m6i.large", "cx33")


def role(text: str) -> str:
    """An IAM role of Google Cloud."""
    return _form(ROLE, text, "role", "roles/compute.viewer")


def policy(text: str) -> str:
    """ARN of a managed IAM policy."""
    return _form(ARN, text, "ARN of a policy", "arn:aws:iam::aws:policy/NAME")


def kms_arn(text: str) -> str:
    """ARN of a key of AWS KMS; an alias is none, for another key can be behind it tomorrow."""
    example = "arn:aws:kms:eu-central-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
    return _form(KMS_ARN, text, "ARN of a key", example)


def kms_name(text: str) -> str:
    """Name of a key of Cloud KMS, without a version of it."""
    example = "projects/my-project-123/locations/europe-west3/keyRings/RING/cryptoKeys/KEY"
    return _form(KMS_NAME, text, "name of a key", example)


def port_span(text: str) -> str:
    """A port, or the first and the last of several."""
    first, _, last = text.partition("-")
    numbers = [int(part) for part in (first, last or first) if re.fullmatch(r"[0-9]{1,5}", part)]
    if len(numbers) != 2 or not 1 <= numbers[0] <= numbers[1] <= 65535:
        raise ValueError(f"{short(text)} is not a port; write it as 10250, or 9100-9110")
    return text


def account(text: str) -> str:
    """Number of an account of AWS."""
    return _form(ACCOUNT, text, "number of an account", "123456789012")


def aws_id(text: str) -> str:
    """ID of a VPC or of a subnet."""
    return _form(
        AWS_ID, text, "ID of a VPC or subnet", "vpc-0123456789abcdef0", "subnet-0123456789abcdef0"
    )


def pool(text: str) -> str:
    """ID of a pool of workload identities of Google Cloud."""
    if not POOL.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not an ID of a pool; use 4 to 32 of a-z, 0-9 and '-', and another "
            "beginning than gcp-"
        )
    return text


def zone(text: str) -> str:
    """A DNS zone that is there: ID of a hosted zone of Route 53, name of one of Cloud DNS."""
    return _form(DNS_ZONE, text, "DNS zone", "Z0123456789ABCDEFGHIJ", "my-zone")
