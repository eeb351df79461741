"""Typed config of one stack: what the user says, every static error at once.

The keys of Pulumi.<stack>.yaml below `kube-ha:` become one frozen `Spec`. Unknown keys are refused.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Role = Literal["etcd", "master", "worker"]


class _Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class ClusterSpec(_Section):
    name: str
    kubernetes: str
    pod_cidr: str = "10.244.0.0/16"
    service_cidr: str = "10.96.0.0/16"
    dns_domain: str = "cluster.local"
    endpoint: str | None = Field(None, description="host[:port] by which clients outside reach the API")


class BastionSpec(_Section):
    address: str
    user: str = "root"
    port: int = 22
    host_key: str | None = None
    private_key_file: str | None = None


class SshSpec(_Section):
    user: str = "root"
    port: int = 22
    private_key_file: str | None = None
    agent: bool = False
    bastion: BastionSpec | None = None
    insecure_ignore_host_key: bool = False


class LabSpec(_Section):
    subnet: str = "10.92.0.0/24"


class MachinesSpec(_Section):
    provider: Literal["lab", "adopt"]
    lab: LabSpec = LabSpec()
    ssh: SshSpec = SshSpec()


class TaintSpec(_Section):
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class HostSpec(_Section):
    name: str
    address: str
    user: str | None = None
    port: int | None = None
    host_key: str | None = None


class PoolSpec(_Section):
    roles: tuple[Role, ...]
    count: int | None = None
    hosts: tuple[HostSpec, ...] | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    taints: tuple[TaintSpec, ...] = ()
    arch: Literal["amd64", "arm64"] = "amd64"
    address_offset: int | None = Field(None, description="lab only: address = subnet + offset + ordinal")


class NodeSpec(_Section):
    labels: dict[str, str] = Field(default_factory=dict)
    taints: tuple[TaintSpec, ...] = ()


class NetworkSpec(_Section):
    plugin: Literal["flannel", "none"] = "flannel"
    backend: Literal["vxlan", "host-gw"] = "vxlan"
    proxy_mode: Literal["nftables", "iptables"] = "nftables"


class EtcdSpec(_Section):
    heartbeat_interval_ms: int = 100
    election_timeout_ms: int = 1000
    quota_backend_gib: int = 2


class AuditSpec(_Section):
    enabled: bool = True
    policy: dict[str, object] | None = Field(None, description="audit.k8s.io/v1 Policy; default: metadata of writes")
    max_age_days: int = 30
    max_backups: int = 10
    max_size_mib: int = 100


class LeaderElectionSpec(_Section):
    lease_duration_s: int = 15
    renew_deadline_s: int = 10
    retry_period_s: int = 2


class ControlPlaneSpec(_Section):
    audit: AuditSpec = AuditSpec()
    encrypt_secrets: bool = True
    admission_plugins: tuple[str, ...] = ("NodeRestriction",)
    profiling: bool = False
    leader_election: LeaderElectionSpec = LeaderElectionSpec()
    terminated_pod_gc_threshold: int = 1000
    cert_sans: tuple[str, ...] = ()
    api_server_args: dict[str, str] = Field(default_factory=dict)
    controller_manager_args: dict[str, str] = Field(default_factory=dict)
    scheduler_args: dict[str, str] = Field(default_factory=dict)


class KubeletSpec(_Section):
    max_pods: int = 110


class PkiSpec(_Section):
    ca_validity_hours: int = 87600
    leaf_validity_hours: int = 8760
    leaf_renewal_hours: int = 2160


class MirrorSpec(_Section):
    url: str
    registry: str
    manifest: str


class ProxySpec(_Section):
    http: str | None = None
    https: str | None = None
    no_proxy: tuple[str, ...] = ()


class ConvergeSpec(_Section):
    generation: int = 1


class Spec(_Section):
    cluster: ClusterSpec
    machines: MachinesSpec
    pools: dict[str, PoolSpec]
    nodes: dict[str, NodeSpec] = Field(default_factory=dict)
    network: NetworkSpec = NetworkSpec()
    etcd: EtcdSpec = EtcdSpec()
    control_plane: ControlPlaneSpec = ControlPlaneSpec()
    kubelet: KubeletSpec = KubeletSpec()
    pki: PkiSpec = PkiSpec()
    mirror: MirrorSpec | None = None
    proxy: ProxySpec = ProxySpec()
    converge: ConvergeSpec = ConvergeSpec()
