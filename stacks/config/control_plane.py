"""Config section of the control plane: API server, controller manager, scheduler."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import (
    Certificates,
    Ciphers,
    Claim,
    DnsLabel,
    FeatureGate,
    Flag,
    FlagText,
    FlagValue,
    IssuerUrl,
    PodSecurityVersion,
    Section,
    SubjectName,
    TokenIssuer,
    Url,
    is_unsaid,
)
from stacks.config.pki import RotationSpec

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


class AuditWebhookSpec(Section):
    url: Url = Field(description="where API servers send what they log, in batches")
    ca: Certificates | None = Field(
        None, description="CA of its certificate; default: those of the API server's image"
    )


class AuditSpec(Section):
    enabled: bool = Field(default=True, description="write an audit log on every master")
    detail: Literal["metadata", "bodies"] | None = Field(
        None,
        description="metadata: of writes, and of reading secrets or entering pods; bodies: also "
        "what was written of rights, webhooks, certificates and pods, and who probed; never the "
        "content of Secrets, ConfigMaps or tokens. Default: bodies with cluster.defaults 2",
    )
    policy: dict[str, object] | None = Field(
        None, description="audit.k8s.io/v1 Policy in place of detail"
    )
    webhook: AuditWebhookSpec | None = Field(
        None, description="a collector that gets the log too, out of reach of who has a master"
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


SigningAlgorithm = Literal[
    "RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"
]
PodSecurityLevel = Literal["privileged", "baseline", "restricted"]


class OidcSpec(Section):
    issuer_url: IssuerUrl = Field(
        description="the provider's address, letter by letter as in its tokens"
    )
    client_id: FlagText = Field(description="audience that a token must be made for")
    username_claim: Claim = Field("sub", description="claim that becomes the user name")
    username_prefix: FlagText | None = Field(
        None,
        description="put before user names, '-' for nothing; default: issuerUrl and #, nothing "
        "for claim email",
    )
    groups_claim: Claim | None = Field(None, description="claim that holds the user's groups")
    groups_prefix: FlagText | None = Field(None, description="put before groups")
    required_claims: dict[Claim, FlagText] = Field(
        default_factory=dict, description="claims that a token must have, with these values"
    )
    signing_algs: tuple[SigningAlgorithm, ...] = Field(
        (), description="how tokens may be signed; default: RS256"
    )
    ca: Certificates | None = Field(
        None, description="CA of the provider's own certificate; default: those of the machine"
    )


class PodSecuritySpec(Section):
    enforce: PodSecurityLevel = Field("privileged", description="pods that break it are refused")
    audit: PodSecurityLevel = Field(
        "privileged", description="pods that break it are marked in the audit log"
    )
    warn: PodSecurityLevel = Field(
        "privileged", description="whoever makes a pod that breaks it is warned"
    )
    version: PodSecurityVersion = Field(
        "latest", description="version of the Pod Security Standards that is meant"
    )
    exempt_namespaces: tuple[DnsLabel, ...] = Field(
        (), description="not looked at, besides those of the cluster's own parts"
    )


class ControlPlaneSpec(Section):
    audit: AuditSpec = Field(AuditSpec(), description="audit log of the API")
    encrypt_secrets: bool = Field(
        default=True,
        description="Secrets are encrypted in etcd (secretbox); fixed when the cluster is made",
    )
    encryption_key: RotationSpec = Field(
        RotationSpec(), description="key that Secrets are encrypted with, replaced step by step"
    )
    admission_plugins: tuple[AdmissionPlugin, ...] | None = Field(
        None,
        description="admission plugins switched on besides the API server's own; default: "
        "NodeRestriction, and with cluster.defaults 2 DenyServiceExternalIPs",
    )
    anonymous: Literal["health", "all"] | None = Field(
        None,
        description="requests without credentials: health takes them at /livez, /readyz and "
        "/healthz alone, all wherever RBAC lets system:anonymous; default: health with "
        "cluster.defaults 2, unless oidc.signingAlgs is said",
    )
    extend_token_expiration: bool | None = Field(
        None,
        description="service account tokens of pods live a year in place of an hour, for clients "
        "that do not read them again; default: false with cluster.defaults 2",
    )
    tls_ciphers: Ciphers | None = Field(
        None, description="of the API server, for TLS 1.2; default: strong with cluster.defaults 2"
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
    feature_gates: dict[FeatureGate, bool] = Field(
        default_factory=dict,
        description="switched for API server, controller manager and scheduler; kubelets have "
        "their own",
    )
    oidc: OidcSpec | None = Field(None, description="users of an identity provider")
    oidc_issuers: tuple[OidcSpec, ...] = Field(
        (), description="users of further identity providers; as oidc, without signingAlgs"
    )
    service_account_issuers: tuple[TokenIssuer, ...] = Field(
        (),
        exclude_if=is_unsaid,
        description="names of the cluster in tokens of service accounts: the first is in new ones, "
        "those of all are taken; default: https://kubernetes.default.svc and cluster.dnsDomain",
    )
    pod_security: PodSecuritySpec | None = Field(
        None,
        description="Pod Security Standards of namespaces that have no labels for them; default: "
        "audit and warn baseline with cluster.defaults 2",
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
