"""Config sections of the software on the nodes: network, etcd, control plane, PKI, mirror."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.fields import (
    BaseUrl,
    FilePath,
    Flag,
    FlagValue,
    NoProxy,
    Section,
    SubjectName,
    Url,
)

AdmissionPlugin = Literal[
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "DenyServiceExternalIPs",
    "ExtendedResourceToleration",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NamespaceLifecycle",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodNodeSelector",
    "PodSecurity",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
]


class NetworkSpec(Section):
    plugin: Literal["flannel", "none"] = Field(
        "flannel", description="pod network; none leaves nodes NotReady for your own manifest"
    )
    backend: Literal["vxlan", "host-gw"] = Field(
        "vxlan", description="how flannel carries packets; host-gw needs all nodes on one layer 2"
    )
    proxy_mode: Literal["nftables", "iptables"] = Field(
        "nftables", description="how kube-proxy implements services"
    )
    node_cidr_mask: Annotated[int, Field(ge=20, le=28)] = Field(
        24,
        description="a node's part of podCidr, in bits: 24 has addresses for 253 pods; fixed when "
        "the cluster is made",
    )
    mtu: Annotated[int, Field(ge=576, le=9000)] | None = Field(
        None,
        description="biggest packet of a pod in bytes, on all nodes; pods that run keep theirs; "
        "default: what the machine's interface takes, less 50 for vxlan",
    )


# An API server that ends answers for so long after it has said that it is no longer ready.
API_SHUTDOWN_DELAY_S = 15
CHECKS_TO_FALL = 2  # failed checks in a row after which HAProxy takes a master out
CHECK_TIMEOUT_S = 3


class LoadBalancingSpec(Section):
    max_connections: Annotated[int, Field(ge=100, le=100000)] = Field(
        4000, description="connections to the API that one node's HAProxy carries at a time"
    )
    check_interval_ms: Annotated[int, Field(ge=500, le=60000)] = Field(
        2000, description="time between two checks of one master by one node"
    )
    idle_timeout_h: Annotated[int, Field(ge=1, le=500)] = Field(
        24, description="silence after which a connection (a watch, an exec) is closed, in hours"
    )

    @property
    def detection_ms(self) -> int:
        """The longest that a node sends new connections to a master that is no longer ready."""
        return CHECKS_TO_FALL * self.check_interval_ms + 1000 * CHECK_TIMEOUT_S


class EtcdSpec(Section):
    heartbeat_interval_ms: Annotated[int, Field(ge=10, le=5000)] = Field(
        100, description="leader's heartbeat; about the slowest round trip between two members"
    )
    election_timeout_ms: Annotated[int, Field(ge=100, le=50000)] = Field(
        1000, description="silence after which members elect; at least 10 round trips"
    )
    quota_backend_gib: Annotated[int, Field(ge=1, le=8)] = Field(
        2, description="size at which etcd stops writes; it keeps the whole of it in memory"
    )
    # The API server's client of etcd sends no more than 2 MiB.
    max_request_kib: Annotated[int, Field(ge=1536, le=2048)] = Field(
        1536,
        description="biggest object that can be written; all members hold it in memory at once",
    )
    snapshot_count: Annotated[int, Field(ge=1000, le=1_000_000)] = Field(
        10000,
        description="writes between two snapshots; more take more memory, fewer more disk work",
    )
    compaction_retention_min: Annotated[int, Field(ge=5, le=10080)] = Field(
        60,
        description="minutes after which old revisions go while no API server runs, which else "
        "sees to it every 5",
    )
    metrics: Literal["basic", "extensive"] = Field(
        "basic", description="extensive adds histograms of every gRPC call to 127.0.0.1:2381"
    )


class AuditSpec(Section):
    enabled: bool = Field(default=True, description="write an audit log on every master")
    policy: dict[str, object] | None = Field(
        None, description="audit.k8s.io/v1 Policy; default: metadata of writes"
    )
    max_age_days: Annotated[int, Field(ge=1, le=3650)] = Field(
        30, description="days after which a rotated audit log is deleted"
    )
    max_backups: Annotated[int, Field(ge=1, le=1000)] = Field(
        10, description="rotated audit logs kept"
    )
    max_size_mib: Annotated[int, Field(ge=1, le=10240)] = Field(
        100, description="size at which the audit log is rotated"
    )


class LeaderElectionSpec(Section):
    lease_duration_s: Annotated[int, Field(ge=2, le=600)] = Field(
        15, description="age at which controller manager and scheduler leases may be taken over"
    )
    renew_deadline_s: Annotated[int, Field(ge=1, le=600)] = Field(
        10, description="time a leader tries to renew before it gives up; under leaseDurationS"
    )
    retry_period_s: Annotated[int, Field(ge=1, le=600)] = Field(
        2, description="time between two tries; renewDeadlineS is more than 1.2 times this"
    )


class ControlPlaneSpec(Section):
    audit: AuditSpec = Field(AuditSpec(), description="audit log of the API")
    encrypt_secrets: bool = Field(
        default=True,
        description="Secrets are encrypted in etcd (secretbox); fixed when the cluster is made",
    )
    admission_plugins: tuple[AdmissionPlugin, ...] = Field(
        ("NodeRestriction",),
        description="admission plugins switched on besides the API server's own defaults",
    )
    profiling: bool = Field(
        default=False, description="serve /debug/pprof on control plane components"
    )
    leader_election: LeaderElectionSpec = Field(
        LeaderElectionSpec(), description="timings of controller manager and scheduler"
    )
    terminated_pod_gc_threshold: Annotated[int, Field(ge=0, le=100000)] = Field(
        1000, description="finished pods kept before the oldest are deleted; 0 keeps all"
    )
    cert_sans: tuple[SubjectName, ...] = Field(
        (), description="further names and addresses in the API server's certificate"
    )
    api_server_args: dict[Flag, FlagValue] = Field(
        default_factory=dict, description="further flags of kube-apiserver, without dashes"
    )
    controller_manager_args: dict[Flag, FlagValue] = Field(
        default_factory=dict, description="further flags of kube-controller-manager"
    )
    scheduler_args: dict[Flag, FlagValue] = Field(
        default_factory=dict, description="further flags of kube-scheduler"
    )


class KubeletSpec(Section):
    max_pods: Annotated[int, Field(ge=10, le=1000)] = Field(
        110, description="pods a node takes, as far as network.nodeCidrMask has addresses"
    )


class PkiSpec(Section):
    ca_validity_hours: Annotated[int, Field(ge=24, le=876000)] = Field(
        87600, description="lifetime of the CAs; fixed when the cluster is made"
    )
    leaf_validity_hours: Annotated[int, Field(ge=2, le=87600)] = Field(
        8760, description="lifetime of every other certificate"
    )
    leaf_renewal_hours: Annotated[int, Field(ge=1, le=87600)] = Field(
        2160, description="an up that runs within this time before the end renews the certificate"
    )


class MirrorSpec(Section):
    url: Url = Field(description="serves files under <url>/<upstream host>/<path>")
    registry: BaseUrl = Field(description="OCI registry that holds the images, http(s)://host:port")
    manifest: FilePath = Field(description="manifest.json of the bundle, with the checksums")


class ProxySpec(Section):
    http: BaseUrl | None = Field(None, description="proxy for downloads over http")
    https: BaseUrl | None = Field(None, description="proxy for downloads over https and for images")
    no_proxy: tuple[NoProxy, ...] = Field(
        (), description="reached without proxy, besides pods, services and the mirror"
    )


class ConvergeSpec(Section):
    generation: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1, description="raise it to run every node's phases again on the next up"
    )
