"""The servers: each holds everything, answers questions and judges the rules."""

from __future__ import annotations

from stacks.catalogue.entry import Wanted
from stacks.catalogue.pods import CONFINED, apart, claim, pod, secret
from stacks.catalogue.prometheus import rules, scrape, screen
from stacks.catalogue.prometheus.names import (
    ACCESS,
    ACCESS_FOLDER,
    NAMESPACE,
    PORT,
    SERVER,
    USER,
    replicas,
)
from stacks.config.spec import AddonSpec
from stacks.documents.kubernetes_objects import (
    Document,
    cluster_role,
    cluster_role_binding,
    config_annotation,
    config_map,
    meta,
    mount,
    requests,
    service_account,
)
from stacks.documents.yaml_text import documents

_CONFIG = "prometheus-config"
_LABELS = {"app": SERVER}
_GIB = 10  # of data at most, where the config says nothing
_CONSOLES = "/etc/prometheus/consoles"


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """Account, rights, access, config, Service and StatefulSet."""
    data = {
        "prometheus.yaml": documents(scrape.server(said.alertmanagers)),
        "rules.yaml": documents(rules.document(wanted)),
        "client.yaml": documents(scrape.client()),
    }
    seen = {f"{screen.NAME}.html": screen.page(wanted)}
    return (
        service_account(SERVER, NAMESPACE),
        cluster_role(SERVER, _rules()),
        cluster_role_binding(SERVER, SERVER, SERVER, NAMESPACE),
        _access(),
        config_map(_CONFIG, NAMESPACE, data),
        config_map(f"{SERVER}-consoles", NAMESPACE, seen),
        _service(),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta(SERVER, NAMESPACE),
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _LABELS}},
        },
        _stateful_set(wanted, said, data | seen),
    )


def _rules() -> list[Document]:
    """What it finds pods and Services by."""
    look = ["get", "list", "watch"]
    return [
        {"apiGroups": [""], "resources": ["pods", "services"], "verbs": look},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": look},
    ]


def _access() -> Document:
    # components/scripts/manifests.sh makes a password where there is none.
    marks = {"kube-ha.io/basic-auth": USER}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**meta(ACCESS, NAMESPACE), "annotations": marks},
    }


def _service() -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta(SERVER, NAMESPACE, **_LABELS),
        "spec": {
            "clusterIP": "None",
            # Agents write to one that is not ready too: it reads its log meanwhile.
            "publishNotReadyAddresses": True,
            "selector": _LABELS,
            "ports": [{"name": "http", "port": PORT, "protocol": "TCP", "targetPort": "http"}],
        },
    }


def _stateful_set(wanted: Wanted, said: AddonSpec, data: dict[str, str]) -> Document:
    volumes: list[Document] = [
        {"name": "config", "configMap": {"name": _CONFIG}},
        {"name": "consoles", "configMap": {"name": f"{SERVER}-consoles"}},
        secret("access", ACCESS, "password", "web.yaml"),
    ]
    claims: list[Document] = []
    if said.storage_gi is None:
        volumes.append({"name": "data", "emptyDir": {"sizeLimit": f"{_GIB + 2}Gi"}})
    else:
        claims.append(claim(meta("data"), said.storage_gi))
    spec = pod(SERVER, _container(wanted, said), *volumes)
    spec["securityContext"] = {**_mapping(spec["securityContext"]), "fsGroup": 65534}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": meta(SERVER, NAMESPACE, **_LABELS),
        "spec": {
            "serviceName": SERVER,
            "replicas": replicas(wanted.masters),
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": _LABELS},
            "template": {
                "metadata": {"labels": _LABELS, "annotations": config_annotation(data)},
                "spec": {**spec, "affinity": apart(_LABELS), "terminationGracePeriodSeconds": 120},
            },
            **({"volumeClaimTemplates": claims} if claims else {}),
        },
    }


def _container(wanted: Wanted, said: AddonSpec) -> Document:
    # Prometheus counts neither its log nor what it is merging.
    most_gib = max(1, int((said.storage_gi or _GIB) * 0.8))
    return {
        "name": SERVER,
        "image": f"quay.io/prometheus/prometheus:v{wanted.versions.prometheus}",
        "command": ["/bin/prometheus"],
        "args": [
            "--config.file=/etc/prometheus/prometheus.yaml",
            f"--web.config.file={ACCESS_FOLDER}/web.yaml",
            f"--web.console.templates={_CONSOLES}",
            "--web.enable-remote-write-receiver",
            "--storage.tsdb.path=/data",
            f"--storage.tsdb.retention.time={said.retention_days}d",
            f"--storage.tsdb.retention.size={most_gib}GB",
            # Of a machine that died nobody says that it ended: after four rounds it counts as gone.
            f"--query.lookback-delta={4 * scrape.INTERVAL_S}s",
            "--log.level=warn",
        ],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "startupProbe": {**_probe("healthy"), "failureThreshold": 60},
        "livenessProbe": _probe("healthy"),
        "readinessProbe": _probe("ready"),
        "resources": requests("100m", "512Mi"),
        "securityContext": CONFINED,
        "volumeMounts": [
            mount("config", "/etc/prometheus", read_only=True),
            mount("consoles", _CONSOLES, read_only=True),
            mount("access", ACCESS_FOLDER, read_only=True),
            mount("data", "/data"),
        ],
    }


def _probe(word: str) -> Document:
    """It answers nobody without the password, so its own client asks."""
    command = [
        "/bin/promtool",
        "check",
        word,
        f"--url=http://127.0.0.1:{PORT}",
        "--http.config.file=/etc/prometheus/client.yaml",
    ]
    return {
        "exec": {"command": command},
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": 6,
    }


def _mapping(value: object) -> Document:
    return dict(value) if isinstance(value, dict) else {}
