"""Semantic types of the config fields: what pydantic checks, with the texts of config/values.py."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from stacks.config import (
    cloud_values,
    kernel_values,
    kubernetes_values,
    object_store_values,
    rollout_values,
    values,
)

Role = Literal["etcd", "master", "worker", "loadbalancer"]
# As kubeadm calls it; read as the role that it is.
CONTROL_PLANE = "control-plane"
RoleName = Annotated[
    Role,
    BeforeValidator(lambda said: "master" if said == CONTROL_PLANE else said),
    WithJsonSchema({"type": "string", "enum": [*get_args(Role), CONTROL_PLANE]}),
]
Arch = Literal["amd64", "arm64"]
GivenUp = Literal["lost", "compromised"]  # never dialled again, and refused
Present = Literal["active", "maintenance", "absent"]  # part of the cluster
NodeState = Literal[Present, "decommissioned", GivenUp, "removed"]
PRESENT: tuple[Present, ...] = get_args(Present)
GIVEN_UP: tuple[GivenUp, ...] = get_args(GivenUp)
# What a config does not say depends on it: config/defaults.py.
DefaultsLevel = Literal[1, 2]
# strong: with forward secrecy and authenticated encryption alone; all: those of Go.
Ciphers = Literal["strong", "all"]
STRONG_CIPHERS = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
)
SPOT_LABEL = "kube-ha.io/spot"  # label and taint of nodes that the cloud may take away
ZONE_LABEL = "topology.kubernetes.io/zone"  # by which the scheduler knows the zone of a node
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


def _text(kind: str, form: re.Pattern[str] | None = None) -> WithJsonSchema:
    """How an editor sees a text: the word for it, and what may be typed."""
    limits = {} if form is None else {"pattern": f"^(?:{form.pattern})$"}
    return WithJsonSchema({"type": "string", "format": kind, **limits})


Version = Annotated[str, AfterValidator(values.version), _text("version", values.VERSION)]
ClusterName = Annotated[
    str, AfterValidator(values.cluster_name), _text("cluster name", values.LABEL)
]
DnsLabel = Annotated[str, AfterValidator(values.dns_label), _text("name", values.LABEL)]
DnsName = Annotated[str, AfterValidator(values.dns_name), _text("DNS name", values.SUBDOMAIN)]
Ipv4 = Annotated[str, AfterValidator(values.ipv4), _text("IPv4 address")]
Cidr = Annotated[str, AfterValidator(values.cidr), _text("IPv4 network")]
AddressRange = Annotated[
    str, AfterValidator(values.address_range), _text("IPv4 address, network, or first-last")
]
Host = Annotated[str, AfterValidator(values.host), _text("address or name")]
Endpoint = Annotated[str, AfterValidator(values.endpoint), _text("host[:port]")]
Url = Annotated[str, AfterValidator(values.url), _text("URL")]
BaseUrl = Annotated[str, AfterValidator(values.base_url), _text("URL without path")]
NoProxy = Annotated[str, AfterValidator(values.no_proxy), _text("host, domain or network")]
SubjectName = Annotated[str, AfterValidator(values.subject_name), _text("address or name")]
User = Annotated[str, AfterValidator(values.user), _text("login name", values.USER)]
Interface = Annotated[str, AfterValidator(values.interface), _text("interface", values.INTERFACE)]
Folder = Annotated[str, AfterValidator(values.folder), _text("absolute path", values.FOLDER)]
FilePath = Annotated[str, AfterValidator(values.path), _text("file", values.PATH)]
HostKey = Annotated[str, AfterValidator(values.host_key), _text("OpenSSH public key")]
LabelKey = Annotated[str, AfterValidator(values.label_key), _text("label key")]
Sha256 = Annotated[str, AfterValidator(values.sha256), _text("SHA-256 in hex", values.SHA256)]
ApiVersion = Annotated[
    str,
    AfterValidator(kubernetes_values.api_version),
    _text("group/version", kubernetes_values.API_VERSION),
]
SecretKey = Annotated[
    str,
    AfterValidator(kubernetes_values.secret_key),
    _text("key of a Secret", kubernetes_values.SECRET_KEY),
]
LabelValue = Annotated[str, AfterValidator(values.label_value), _text("label value")]
Zone = Annotated[str, AfterValidator(values.zone), _text("zone")]
Flag = Annotated[str, AfterValidator(values.flag), _text("flag", values.FLAG)]
FlagValue = Annotated[str, AfterValidator(values.flag_value), _text("flag value")]
AllowId = Annotated[str, AfterValidator(values.allow_id), _text("id", values.ALLOW_ID)]
FeatureGate = Annotated[
    str,
    AfterValidator(kubernetes_values.feature_gate),
    _text("feature gate", kubernetes_values.FEATURE_GATE),
]
Quantity = Annotated[
    str, AfterValidator(kubernetes_values.quantity), _text("amount", kubernetes_values.QUANTITY)
]
Threshold = Annotated[str, AfterValidator(kubernetes_values.threshold), _text("amount or part")]
IssuerUrl = Annotated[str, AfterValidator(kubernetes_values.issuer_url), _text("https URL")]
TokenIssuer = Annotated[str, AfterValidator(kubernetes_values.token_issuer), _text("https URL")]
Claim = Annotated[str, AfterValidator(kubernetes_values.claim), _text("claim")]
FlagText = Annotated[str, AfterValidator(kubernetes_values.flag_text), _text("text")]
PodSecurityVersion = Annotated[
    str,
    AfterValidator(kubernetes_values.pod_security_version),
    _text("latest or v1.N", kubernetes_values.POD_SECURITY_VERSION),
]
Certificates = Annotated[
    str, AfterValidator(kubernetes_values.certificates), _text("PEM certificates")
]
Share = Annotated[
    str,
    BeforeValidator(rollout_values.as_text),
    AfterValidator(rollout_values.share),
    WithJsonSchema({"type": ["integer", "string"], "format": "number or percent"}),
]
AbsentShare = Annotated[
    str,
    BeforeValidator(rollout_values.as_text),
    AfterValidator(rollout_values.absent_share),
    WithJsonSchema({"type": ["integer", "string"], "format": "number or percent"}),
]
Window = Annotated[
    str, AfterValidator(rollout_values.window), _text("window", rollout_values.WINDOW)
]
ProjectId = Annotated[
    str, AfterValidator(cloud_values.project), _text("project ID", cloud_values.PROJECT)
]
Region = Annotated[str, AfterValidator(cloud_values.region), _text("region", cloud_values.REGION)]
CloudName = Annotated[str, AfterValidator(cloud_values.name), _text("name", cloud_values.NAME)]
CloudLabel = Annotated[str, AfterValidator(cloud_values.label), _text("label", cloud_values.LABEL)]
ImageName = Annotated[str, AfterValidator(cloud_values.image), _text("image", cloud_values.IMAGE)]
HcloudImage = Annotated[
    str, AfterValidator(cloud_values.hcloud_image), _text("image", cloud_values.HCLOUD_IMAGE)
]
InstanceType = Annotated[
    str, AfterValidator(cloud_values.machine_type), _text("machine type", cloud_values.TYPE)
]
ServiceRole = Annotated[str, AfterValidator(cloud_values.role), _text("role", cloud_values.ROLE)]
PolicyArn = Annotated[str, AfterValidator(cloud_values.policy), _text("ARN", cloud_values.ARN)]
KmsArn = Annotated[str, AfterValidator(cloud_values.kms_arn), _text("ARN", cloud_values.KMS_ARN)]
KmsName = Annotated[str, AfterValidator(cloud_values.kms_name), _text("key", cloud_values.KMS_NAME)]
ZoneId = Annotated[str, AfterValidator(cloud_values.zone), _text("zone", cloud_values.DNS_ZONE)]
PortSpan = Annotated[
    str,
    BeforeValidator(rollout_values.as_text),
    AfterValidator(cloud_values.port_span),
    WithJsonSchema({"type": ["integer", "string"], "format": "port, or first-last"}),
]
AccountId = Annotated[
    str, AfterValidator(cloud_values.account), _text("12 digits", cloud_values.ACCOUNT)
]
AwsId = Annotated[str, AfterValidator(cloud_values.aws_id), _text("ID", cloud_values.AWS_ID)]
BucketName = Annotated[
    str, AfterValidator(object_store_values.bucket), _text("bucket", object_store_values.BUCKET)
]
ObjectPrefix = Annotated[
    str, AfterValidator(object_store_values.prefix), _text("prefix", object_store_values.PREFIX)
]
StoreRegion = Annotated[
    str, AfterValidator(object_store_values.region), _text("region", object_store_values.REGION)
]
AccessKey = Annotated[
    str,
    AfterValidator(object_store_values.access_key),
    _text("access key", object_store_values.ACCESS_KEY),
]
IdentityPool = Annotated[str, AfterValidator(cloud_values.pool), _text("pool", cloud_values.POOL)]
UpdateWord = Annotated[
    str,
    BeforeValidator(rollout_values.as_text),
    AfterValidator(rollout_values.update_word),
    _text("word", rollout_values.UPDATE_WORD),
]
Rollout = Annotated[
    str,
    AfterValidator(kubernetes_values.rollout),
    _text("namespace/daemonset/name", kubernetes_values.ROLLOUT),
]
ServiceAccountName = Annotated[
    str,
    AfterValidator(kubernetes_values.service_account),
    _text("namespace/name", kubernetes_values.SERVICE_ACCOUNT),
]
KernelModule = Annotated[
    str,
    AfterValidator(kernel_values.module),
    _text("kernel module", kernel_values.MODULE),
]
KernelSetting = Annotated[
    str,
    AfterValidator(kernel_values.setting),
    _text("kernel setting", kernel_values.SETTING),
]
KernelValue = Annotated[
    str,
    BeforeValidator(rollout_values.as_text),
    AfterValidator(kernel_values.value),
    WithJsonSchema({"type": ["integer", "string"], "format": "number or numbers"}),
]
PackageName = Annotated[
    str, AfterValidator(rollout_values.package), _text("package", rollout_values.PACKAGE)
]
Port = Annotated[int, Field(ge=1, le=65535)]


def is_unsaid(value: object) -> bool:
    """Of a key that came later: a config that does not say it stays, to the letter, what it was."""
    return value is None or value in ((), {})


class Section(BaseModel):
    """One mapping of the config: camelCase keys in YAML, immutable, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        # Values that break a rule are shown by config/problems.py, shortened.
        hide_input_in_errors=True,
    )
