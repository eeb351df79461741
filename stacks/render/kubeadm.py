"""kubeadm.yaml (v1beta4): how masters are made, and how workers join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stacks.cluster import rotation, serving_certificates
from stacks.cluster.plan import Node, Plan
from stacks.config import token_issuers
from stacks.config.fields import STRONG_CIPHERS
from stacks.config.network import API_SHUTDOWN_DELAY_S
from stacks.config.ports import API_PORT, ETCD_CLIENT_PORT, LOCAL_API_PORT
from stacks.documents.yaml_text import documents
from stacks.render import authentication, kubelet

_API = "kubeadm.k8s.io/v1beta4"
_PKI = "/etc/kubernetes/pki"
AUDIT_POLICY = "/etc/kubernetes/audit-policy.yaml"
AUDIT_LOG = "/var/log/kubernetes/audit.log"
ADMISSION = "/etc/kubernetes/admission.yaml"
AUDIT_WEBHOOK = "/etc/kubernetes/audit-webhook.yaml"
AUTHENTICATION = "/etc/kubernetes/authentication.yaml"
OIDC_CA = "/etc/kubernetes/oidc-ca.crt"
ENCRYPTION = "/etc/kubernetes/encryption.yaml"
SIGNER = f"{_PKI}/signing-ca.crt"
DISCOVERY = "/etc/kubernetes/discovery.conf"

_NODE_MASK = 24  # kube-controller-manager's default, in bits
_MASTER_TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


def init(plan: Plan, node: Node) -> str:
    """For `kubeadm init`, the same on every master but for its name and address.

    Whether add-ons and uploads run is the script's choice (--skip-phases), for only etcd knows
    whether the cluster exists. No bootstrap token is in here: secrets have files of their own.
    """
    return documents(
        {
            "apiVersion": _API,
            "kind": "InitConfiguration",
            "localAPIEndpoint": {"advertiseAddress": node.address, "bindPort": API_PORT},
            # Not labels and taints of the config: setting one must not restart an API server.
            "nodeRegistration": _registration(
                plan, node, {}, [] if "worker" in node.roles else [_MASTER_TAINT]
            ),
        },
        cluster_configuration(plan),
        kubelet.configuration(plan),
    )


def join_worker(plan: Plan, node: Node) -> str:
    """For `kubeadm join` of a worker; /etc/kubernetes/discovery.conf holds CA and token."""
    return documents(
        {
            "apiVersion": _API,
            "kind": "JoinConfiguration",
            "discovery": {"file": {"kubeConfigPath": DISCOVERY}},
            # A new node has them from the start, before the first pod is placed there.
            "nodeRegistration": _registration(
                plan, node, dict(kubelet.own_labels(node)), _taints(node)
            ),
        }
    )


def _registration(
    plan: Plan, node: Node, labels: Mapping[str, str], taints: list[dict[str, str]]
) -> dict[str, object]:
    out: dict[str, object] = {
        "name": node.name,
        "criSocket": "unix:///run/containerd/containerd.sock",
        "imagePullSerial": False,
        "kubeletExtraArgs": _arguments(_kubelet_flags(node, labels)),
        "taints": taints,
    }
    if plan.containers:
        out["ignorePreflightErrors"] = ["SystemVerification"]
    return out


def _kubelet_flags(node: Node, labels: Mapping[str, str]) -> dict[str, str]:
    # The name is said even where it equals the hostname: a machine renamed later stays this node.
    flags = {"hostname-override": node.name, "node-ip": node.address}
    if labels:
        flags["node-labels"] = ",".join(f"{key}={value}" for key, value in labels.items())
    return flags


def _taints(node: Node) -> list[dict[str, str]]:
    return [
        {"key": taint.key, "value": taint.value, "effect": taint.effect}
        if taint.value
        else {"key": taint.key, "effect": taint.effect}
        for taint in node.taints
    ]


def cluster_configuration(plan: Plan) -> dict[str, object]:
    """The part that describes the cluster, the same for every master."""
    cluster = plan.spec.cluster
    return {
        "apiVersion": _API,
        "kind": "ClusterConfiguration",
        "clusterName": cluster.name,
        "kubernetesVersion": f"v{plan.versions.kubernetes}",
        "controlPlaneEndpoint": f"127.0.0.1:{LOCAL_API_PORT}",
        "networking": {
            "podSubnet": cluster.pod_cidr,
            "serviceSubnet": cluster.service_cidr,
            "dnsDomain": cluster.dns_domain,
        },
        "certificatesDir": _PKI,
        "encryptionAlgorithm": "ECDSA-P256",
        "certificateValidityPeriod": f"{plan.spec.pki.leaf_validity_hours}h0m0s",
        "etcd": {
            "external": {
                "endpoints": _etcd_endpoints(plan),
                "caFile": f"{_PKI}/etcd/ca.crt",
                "certFile": f"{_PKI}/apiserver-etcd-client.crt",
                "keyFile": f"{_PKI}/apiserver-etcd-client.key",
            }
        },
        "apiServer": {
            "certSANs": _names(plan),
            "extraArgs": _arguments(
                _apiserver_flags(plan), [*_required_claims(plan), *_token_issuers(plan)]
            ),
            "extraVolumes": _apiserver_volumes(plan),
        },
        "controllerManager": {"extraArgs": _arguments(_controller_manager_flags(plan))},
        "scheduler": {"extraArgs": _arguments(_scheduler_flags(plan))},
        # Both are manifests of ours.
        "dns": {"disabled": True},
        "proxy": {"disabled": True},
    }


def _etcd_endpoints(plan: Plan) -> list[str]:
    # With a member on each master, membership changes touch no API server's flags.
    addresses = ["127.0.0.1"] if plan.etcd_stacked else [node.address for node in plan.etcd]
    return [f"https://{address}:{ETCD_CLIENT_PORT}" for address in addresses]


def _names(plan: Plan) -> list[str]:
    """Names and addresses that API servers are called by, but for what kubeadm adds itself."""
    endpoint = plan.spec.cluster.endpoint
    outside = [endpoint.partition(":")[0]] if endpoint else []
    return sorted({"127.0.0.1", "localhost", *outside, *plan.spec.control_plane.cert_sans})


def _apiserver_flags(plan: Plan) -> Mapping[str, str]:
    spec = plan.spec.control_plane
    # Dropping NodeRestriction would let any kubelet change every node.
    plugins = sorted({"NodeRestriction", *(spec.admission_plugins or ())})
    flags = {
        "enable-admission-plugins": ",".join(plugins),
        "profiling": str(spec.profiling).lower(),
        # The API answers for so long after it said it is no longer ready: load balancers
        # need their time to notice.
        "shutdown-delay-duration": f"{API_SHUTDOWN_DELAY_S}s",
    }
    if spec.audit.enabled:
        flags |= {
            "audit-log-path": AUDIT_LOG,
            "audit-log-maxage": str(spec.audit.max_age_days),
            "audit-log-maxbackup": str(spec.audit.max_backups),
            "audit-log-maxsize": str(spec.audit.max_size_mib),
            "audit-policy-file": AUDIT_POLICY,
        }
    if spec.audit.webhook:
        flags |= {"audit-webhook-config-file": AUDIT_WEBHOOK, "audit-webhook-mode": "batch"}
    if serving_certificates.are_verified(plan):
        flags["kubelet-certificate-authority"] = f"{_PKI}/ca.crt"
    if spec.encrypt_secrets:
        flags["encryption-provider-config"] = ENCRYPTION
    if spec.pod_security:
        flags["admission-control-config-file"] = ADMISSION
    if spec.tls_ciphers == "strong":
        flags["tls-cipher-suites"] = ",".join(STRONG_CIPHERS)
    if not spec.extend_token_expiration:
        flags["service-account-extend-token-expiration"] = "false"
    if authentication.in_file(plan):
        flags["authentication-config"] = AUTHENTICATION
    if spec.service_account_issuers:
        # What an API server says of itself can be published as it is.
        first = spec.service_account_issuers[0].rstrip("/")
        flags["service-account-jwks-uri"] = f"{first}/{token_issuers.JWKS}"
    return flags | _feature_gates(plan) | _oidc_flags(plan) | spec.api_server_args


def _feature_gates(plan: Plan) -> dict[str, str]:
    gates = sorted(plan.spec.control_plane.feature_gates.items())
    text = ",".join(f"{name}={str(on).lower()}" for name, on in gates)
    return {"feature-gates": text} if text else {}


def _oidc_flags(plan: Plan) -> dict[str, str]:
    oidc = authentication.issuer_of_flags(plan)
    if oidc is None:
        return {}
    flags = {
        "oidc-issuer-url": oidc.issuer_url,
        "oidc-client-id": oidc.client_id,
        "oidc-username-claim": oidc.username_claim,
        "oidc-username-prefix": oidc.username_prefix,
        "oidc-groups-claim": oidc.groups_claim,
        "oidc-groups-prefix": oidc.groups_prefix,
        "oidc-signing-algs": ",".join(oidc.signing_algs),
        "oidc-ca-file": OIDC_CA if oidc.ca else None,
    }
    return {name: value for name, value in flags.items() if value}


def _required_claims(plan: Plan) -> list[tuple[str, str]]:
    """One flag for each: the API server takes a comma for a part of the value."""
    oidc = authentication.issuer_of_flags(plan)
    claims = sorted(oidc.required_claims.items()) if oidc else []
    return [("oidc-required-claim", f"{claim}={value}") for claim, value in claims]


def _token_issuers(plan: Plan) -> list[tuple[str, str]]:
    """One flag for each, in this order; kubeadm's own one is gone with the first of them."""
    said = plan.spec.control_plane.service_account_issuers
    return [("service-account-issuer", issuer) for issuer in said]


def _apiserver_volumes(plan: Plan) -> list[dict[str, object]]:
    spec = plan.spec.control_plane
    volumes: list[dict[str, object]] = []
    if spec.audit.enabled:
        volumes.append(_file_volume("audit-policy", AUDIT_POLICY))
        folder = AUDIT_LOG.rpartition("/")[0]
        volumes.append(_volume("audit-log", folder, "DirectoryOrCreate"))
    if spec.encrypt_secrets:
        volumes.append(_file_volume("encryption", ENCRYPTION))
    if spec.pod_security:
        volumes.append(_file_volume("admission", ADMISSION))
    if spec.audit.webhook:
        volumes.append(_file_volume("audit-webhook", AUDIT_WEBHOOK))
    if authentication.in_file(plan):
        volumes.append(_file_volume("authentication", AUTHENTICATION))
    if authentication.oidc_ca(plan):
        volumes.append(_file_volume("oidc-ca", OIDC_CA))
    return volumes


def _volume(name: str, path: str, kind: str) -> dict[str, object]:
    return {"name": name, "hostPath": path, "mountPath": path, "pathType": kind}


def _file_volume(name: str, path: str) -> dict[str, object]:
    return {**_volume(name, path, "File"), "readOnly": True}


def _election_flags(plan: Plan) -> dict[str, str]:
    election = plan.spec.control_plane.leader_election
    return {
        "leader-elect-lease-duration": f"{election.lease_duration_s}s",
        "leader-elect-renew-deadline": f"{election.renew_deadline_s}s",
        "leader-elect-retry-period": f"{election.retry_period_s}s",
        "profiling": str(plan.spec.control_plane.profiling).lower(),
    }


def _controller_manager_flags(plan: Plan) -> Mapping[str, str]:
    spec = plan.spec.control_plane
    flags = _election_flags(plan)
    flags["terminated-pod-gc-threshold"] = str(spec.terminated_pod_gc_threshold)
    if has_own_signer(plan):
        flags["cluster-signing-cert-file"] = SIGNER
    mask = plan.spec.network.node_cidr_mask
    if mask != _NODE_MASK:
        # This one of the three flags for it is the one that kubeadm looks at.
        flags["node-cidr-mask-size-ipv4"] = str(mask)
    return flags | _feature_gates(plan) | spec.controller_manager_args


def has_own_signer(plan: Plan) -> bool:
    """Whether the CA that signs has a file of its own, in SIGNER.

    The controller manager takes no bundle to sign with (its ca_provider: expected 1 certificate).
    """
    return rotation.has_begun(plan.spec.pki.rotation.kubernetes)


def _scheduler_flags(plan: Plan) -> Mapping[str, str]:
    flags = _election_flags(plan) | _feature_gates(plan)
    return flags | plan.spec.control_plane.scheduler_args


def _arguments(
    flags: Mapping[str, str], repeated: Iterable[tuple[str, str]] = ()
) -> list[dict[str, str]]:
    """kubeadm's list of flags; `repeated` are those that are given more than once."""
    listed = sorted([*flags.items(), *repeated], key=lambda flag: flag[0])
    return [{"name": name, "value": value} for name, value in listed]
