"""metrics-server: what nodes and pods take, for `kubectl top` and autoscalers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stacks.catalogue.entry import NodePort, Wanted, no_notices
from stacks.catalogue.pods import CONFINED, apart, pod
from stacks.config.problems import Problem
from stacks.config.spec import AddonSpec, Spec
from stacks.documents.kubernetes_objects import (
    Document,
    cluster_role,
    cluster_role_binding,
    meta,
    mount,
    requests,
    service_account,
)
from stacks.releases.versions import Versions

_NAMESPACE = "kube-system"
_NAME = "metrics-server"
_GROUP = "metrics.k8s.io"
_VERSION = "v1beta1"
_PORT = 10250  # of its pod, as upstream has it
_LABELS = {"k8s-app": _NAME}
_RBAC = "rbac.authorization.k8s.io"

ROLLOUTS: tuple[str, ...] = (f"{_NAMESPACE}/deployment/{_NAME}",)
SETTINGS: tuple[str, ...] = ()
REGISTRIES: tuple[str, ...] = ()
LOCAL_PORTS: Mapping[int, str] = {}
PORTS: tuple[NodePort, ...] = ()
READS_NODES: bool = False
LOGS_IN: bool = False
NEEDS_LAYER_2: bool = False
NEEDS_POLICIES: bool = False
notices = no_notices
NODE_FOLDER: str = ""


def version(versions: Versions) -> str:
    """Of the set, as artifacts/lock.yaml has it."""
    return versions.metrics_server


def problems(spec: Spec) -> Iterable[Problem]:
    """It takes the word of kubelets alone whose certificates the cluster has signed."""
    if spec.kubelet.serving_certificates == "self-signed":
        yield Problem(
            f"addons.{_NAME}",
            "asks kubelets, and trusts certificates of the cluster's CA alone; take it out, or set "
            "kubelet.servingCertificates to issued and then to verified, an update each",
        )


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """Account, rights, Deployment, disruption budget, Service and the API that it answers.

    Two replicas where there are two control plane nodes: autoscalers ask it all the time.
    """
    del said
    image = f"registry.k8s.io/metrics-server/metrics-server:v{wanted.versions.metrics_server}"
    return (
        service_account(_NAME, _NAMESPACE),
        *_rights(),
        _deployment(image, min(2, wanted.masters)),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta(_NAME, _NAMESPACE),
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _LABELS}},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta(_NAME, _NAMESPACE, **_LABELS),
            "spec": {
                "selector": _LABELS,
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"}],
            },
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": meta(f"{_VERSION}.{_GROUP}"),
            "spec": {
                "group": _GROUP,
                "version": _VERSION,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                # As upstream has it: it makes a certificate of its own at each start.
                "insecureSkipTLSVerify": True,
                "service": {"name": _NAME, "namespace": _NAMESPACE},
            },
        },
    )


def _rights() -> tuple[Document, ...]:
    look = ["get", "list", "watch"]
    roles = [f"rbac.authorization.k8s.io/aggregate-to-{role}" for role in ("admin", "edit", "view")]
    reader = "system:aggregated-metrics-reader"
    return (
        cluster_role(
            f"system:{_NAME}",
            [
                {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": look},
            ],
        ),
        cluster_role_binding(f"system:{_NAME}", f"system:{_NAME}", _NAME, _NAMESPACE),
        # It asks the API who its clients are, and by which CA API servers are known to it.
        cluster_role_binding(
            f"{_NAME}:system:auth-delegator", "system:auth-delegator", _NAME, _NAMESPACE
        ),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta(f"{_NAME}-auth-reader", _NAMESPACE),
            "roleRef": {
                "apiGroup": _RBAC,
                "kind": "Role",
                "name": "extension-apiserver-authentication-reader",
            },
            "subjects": [{"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}],
        },
        # Whoever may look at a namespace sees what its pods take.
        {
            **cluster_role(
                reader, [{"apiGroups": [_GROUP], "resources": ["nodes", "pods"], "verbs": look}]
            ),
            "metadata": meta(reader, **dict.fromkeys(roles, "true")),
        },
    )


def _deployment(image: str, replicas: int) -> Document:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(_NAME, _NAMESPACE, **_LABELS),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": _LABELS},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": _LABELS},
                "spec": {
                    **pod(_NAME, _container(image), {"name": "certificate", "emptyDir": {}}),
                    "affinity": apart(_LABELS),
                },
            },
        },
    }


def _container(image: str) -> Document:
    return {
        "name": _NAME,
        "image": image,
        "args": [
            "--cert-dir=/tmp",
            f"--secure-port={_PORT}",
            # By the names that their certificates have, whatever else a node is called.
            "--kubelet-preferred-address-types=InternalIP,Hostname",
            "--kubelet-use-node-status-port",
            "--kubelet-certificate-authority=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
            "--metric-resolution=15s",
        ],
        "ports": [{"name": "https", "containerPort": _PORT, "protocol": "TCP"}],
        "livenessProbe": _probe("/livez"),
        # It is ready once it has asked the kubelets.
        "readinessProbe": _probe("/readyz"),
        "resources": requests("100m", "200Mi"),
        "securityContext": CONFINED,
        "volumeMounts": [mount("certificate", "/tmp")],  # noqa: S108 - of the container
    }


def _probe(path: str) -> Document:
    get = {"path": path, "port": "https", "scheme": "HTTPS"}
    return {"httpGet": get, "periodSeconds": 5, "failureThreshold": 6}
