"""Loki in the cluster, for a stack that names no endpoint: one pod, which holds all of it.

Loki asks nobody for a password. So it listens at 127.0.0.1 of its pod alone, and a collector before
it takes lines from those who have one. Whoever reads comes by `kubectl port-forward`, and with the
rights for it.
"""

from __future__ import annotations

from stacks.catalogue.entry import Wanted
from stacks.catalogue.logs import collector, pipeline
from stacks.catalogue.logs.names import (
    ACCESS,
    ACCESS_FOLDER,
    LABELS,
    NAMESPACE,
    RECEIVER,
    RECEIVER_PORT,
    STORE,
    STORE_PORT,
    USER,
)
from stacks.catalogue.pods import CONFINED, claim, pod, secret
from stacks.config.spec import AddonSpec
from stacks.documents.kubernetes_objects import (
    SECCOMP,
    Document,
    config_annotation,
    config_map,
    meta,
    mount,
    service_account,
)
from stacks.documents.yaml_text import documents

_FILE = "loki.yaml"
_RECEIVER_FILE = "receiver.yaml"
_LABELS = {"app": STORE}
_GIB = 10  # of data at most, where the config says nothing
_MIB = 1024  # of memory at most
_DATA = "/data"
_CONFIG_FOLDER = "/etc/loki"
_RECEIVER_FOLDER = "/etc/logs-receiver"
_HERE = "127.0.0.1"


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """Account without rights, password, configs, Service and StatefulSet."""
    data = {_FILE: documents(config(said))}
    receiving = {_RECEIVER_FILE: documents(pipeline.receiving())}
    return (
        service_account(STORE, NAMESPACE),
        _access(),
        config_map(STORE, NAMESPACE, data),
        config_map(RECEIVER, NAMESPACE, receiving),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta(STORE, NAMESPACE, **_LABELS),
            "spec": {
                "selector": _LABELS,
                "ports": [
                    {
                        "name": "otlp",
                        "port": RECEIVER_PORT,
                        "protocol": "TCP",
                        "targetPort": RECEIVER_PORT,
                    }
                ],
            },
        },
        _stateful_set(wanted, said, data | receiving),
    )


def config(said: AddonSpec) -> Document:
    """Loki's own, of one program that has all parts."""
    hours = f"{said.retention_days * 24}h"
    return {
        "auth_enabled": False,
        "analytics": {"reporting_enabled": False},
        "server": {
            "http_listen_address": _HERE,
            "http_listen_port": STORE_PORT,
            "grpc_listen_address": _HERE,
            "grpc_server_max_recv_msg_size": 32 * pipeline.MIB,
            "log_level": "warn",
        },
        "common": {
            "path_prefix": _DATA,
            "instance_addr": _HERE,
            "replication_factor": 1,
            "ring": {"kvstore": {"store": "inmemory"}},
            "storage": {
                "filesystem": {
                    "chunks_directory": f"{_DATA}/chunks",
                    "rules_directory": f"{_DATA}/rules",
                }
            },
        },
        "schema_config": {
            "configs": [
                {
                    "from": "2024-01-01",
                    "store": "tsdb",
                    "object_store": "filesystem",
                    "schema": "v13",
                    "index": {"prefix": "index_", "period": "24h"},
                }
            ]
        },
        "ingester": {"wal": {"dir": f"{_DATA}/wal", "replay_memory_ceiling": "512MB"}},
        "compactor": {
            "working_directory": f"{_DATA}/compactor",
            "retention_enabled": True,
            "delete_request_store": "filesystem",
        },
        "limits_config": _limits(hours),
    }


def _limits(hours: str) -> Document:
    """None that a line would be refused for: it would be lost. Lines go by age alone."""
    return {
        "retention_period": hours,
        "max_query_lookback": hours,
        "reject_old_samples_max_age": hours,
        "deletion_mode": "disabled",
        "ingestion_rate_mb": 64,
        "ingestion_burst_size_mb": 128,
        "per_stream_rate_limit": "64MB",
        "per_stream_rate_limit_burst": "128MB",
        "max_global_streams_per_user": 0,
        "max_line_size": "2MB",
        "max_line_size_truncate": True,
        "discover_service_name": [],
        "discover_log_levels": False,
        "otlp_config": {
            "resource_attributes": {
                "ignore_defaults": True,
                "attributes_config": [{"action": "index_label", "attributes": [*LABELS]}],
            }
        },
    }


def _access() -> Document:
    # components/scripts/manifests.sh makes a password where there is none.
    marks = {"kube-ha.io/basic-auth": USER}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**meta(ACCESS, NAMESPACE), "annotations": marks},
    }


def _stateful_set(wanted: Wanted, said: AddonSpec, data: dict[str, str]) -> Document:
    volumes: list[Document] = [
        {"name": "config", "configMap": {"name": STORE}},
        {"name": "receiver", "configMap": {"name": RECEIVER}},
        secret("access", ACCESS, "password"),
        {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}},
    ]
    claims: list[Document] = []
    if said.storage_gi is None:
        volumes.append({"name": "data", "emptyDir": {"sizeLimit": f"{_GIB}Gi"}})
    else:
        claims.append(claim(meta("data"), said.storage_gi))
    nobody: Document = {"runAsNonRoot": True, "runAsUser": 65534, "fsGroup": 65534}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": meta(STORE, NAMESPACE, **_LABELS),
        "spec": {
            "serviceName": STORE,
            "replicas": 1,
            "selector": {"matchLabels": _LABELS},
            "template": {
                "metadata": {"labels": _LABELS, "annotations": config_annotation(data)},
                "spec": {
                    **pod(STORE, _loki(wanted), *volumes),
                    "containers": [_loki(wanted), _receiver(wanted)],
                    "securityContext": SECCOMP | nobody,
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": 120,
                },
            },
            **({"volumeClaimTemplates": claims} if claims else {}),
        },
    }


def _loki(wanted: Wanted) -> Document:
    return {
        "name": "loki",
        "image": f"docker.io/grafana/loki:{wanted.versions.loki}",
        "command": ["/usr/bin/loki"],
        "args": [f"-config.file={_CONFIG_FOLDER}/{_FILE}"],
        "env": [{"name": "GOMEMLIMIT", "value": f"{_MIB * 4 // 5}MiB"}],
        # It says that it is ready some 15 s after its start, and reads its log before that.
        "startupProbe": {**_probe(), "failureThreshold": 90},
        "livenessProbe": {**_probe(), "failureThreshold": 12},
        "readinessProbe": {**_probe(), "failureThreshold": 3},
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi"},
            "limits": {"memory": f"{_MIB}Mi"},
        },
        "securityContext": CONFINED,
        "volumeMounts": [
            mount("config", _CONFIG_FOLDER, read_only=True),
            mount("data", _DATA),
            mount("tmp", "/tmp"),  # noqa: S108 - of the container; retention writes there
        ],
    }


def _receiver(wanted: Wanted) -> Document:
    made = collector.program(
        wanted, "receiver", f"{_RECEIVER_FOLDER}/{_RECEIVER_FILE}", mib=pipeline.RECEIVER_MIB
    )
    made["volumeMounts"] = [
        mount("receiver", _RECEIVER_FOLDER, read_only=True),
        mount("access", ACCESS_FOLDER, read_only=True),
    ]
    return made


def _probe() -> Document:
    """Nobody outside the pod reaches it, so it asks itself."""
    command = ["/usr/bin/loki", "-health", f"-health.url=http://{_HERE}:{STORE_PORT}/ready"]
    return {"exec": {"command": command}, "periodSeconds": 10, "timeoutSeconds": 6}
