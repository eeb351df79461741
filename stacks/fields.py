"""Semantic types of the config fields: what pydantic checks, with the texts of stacks/values.py."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from stacks import values

Role = Literal["etcd", "master", "worker"]
Arch = Literal["amd64", "arm64"]
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]

Version = Annotated[str, AfterValidator(values.version)]
ClusterName = Annotated[str, AfterValidator(values.cluster_name)]
DnsLabel = Annotated[str, AfterValidator(values.dns_label)]
DnsName = Annotated[str, AfterValidator(values.dns_name)]
Ipv4 = Annotated[str, AfterValidator(values.ipv4)]
Cidr = Annotated[str, AfterValidator(values.cidr)]
Host = Annotated[str, AfterValidator(values.host)]
Endpoint = Annotated[str, AfterValidator(values.endpoint)]
Url = Annotated[str, AfterValidator(values.url)]
BaseUrl = Annotated[str, AfterValidator(values.base_url)]
NoProxy = Annotated[str, AfterValidator(values.no_proxy)]
SubjectName = Annotated[str, AfterValidator(values.subject_name)]
User = Annotated[str, AfterValidator(values.user)]
FilePath = Annotated[str, AfterValidator(values.path)]
HostKey = Annotated[str, AfterValidator(values.host_key)]
LabelKey = Annotated[str, AfterValidator(values.label_key)]
LabelValue = Annotated[str, AfterValidator(values.label_value)]
Flag = Annotated[str, AfterValidator(values.flag)]
FlagValue = Annotated[str, AfterValidator(values.flag_value)]
Port = Annotated[int, Field(ge=1, le=65535)]


class Section(BaseModel):
    """One mapping of the config: camelCase keys in YAML, immutable, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        # Values that break a rule are shown by stacks/problems.py, shortened.
        hide_input_in_errors=True,
    )
