"""A pod on every node that reads its logs, keeps them on its disk, and sends them to the store.

It is root, for the files are root's alone, without a capability, and sees no more of the node than
its logs and what journalctl is made of: no key and no kubeconfig. It has no ServiceAccount's token.
"""

from __future__ import annotations

from stacks.catalogue.entry import FOLDERS, Wanted
from stacks.catalogue.logs import pipeline
from stacks.catalogue.logs.names import (
    ACCESS,
    ACCESS_FOLDER,
    COLLECTOR,
    ENDPOINT_FOLDER,
    ENDPOINT_KEY,
    FOLDER,
    HEALTH_PORT,
    NAMESPACE,
)
from stacks.catalogue.pods import CONFINED, daemon_set, secret
from stacks.config.spec import AddonSpec
from stacks.documents.kubernetes_objects import (
    SECCOMP,
    TOLERATE_ALL,
    Document,
    config_annotation,
    config_map,
    field,
    host_path,
    meta,
    mount,
)
from stacks.documents.yaml_text import documents

_FILE = "collector.yaml"
_CONFIG_FOLDER = "/etc/logs-collector"
_PROGRAM = "/otelcol-contrib"
# Lines are handed on one after the other, so that a killed collector has none in its hands.
_GATES = "--feature-gates=stanza.synchronousLogEmitter"


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """A ConfigMap and a DaemonSet for each kind of node."""
    return (
        *_of_nodes(wanted, said, control_plane=True),
        *_of_nodes(wanted, said, control_plane=False),
    )


def names() -> tuple[str, str]:
    """Of the DaemonSets: on control plane nodes, on all others."""
    return f"{COLLECTOR}-control-plane", f"{COLLECTOR}-worker"


def image(wanted: Wanted) -> str:
    """Of collectors, and of what receives their lines."""
    version = wanted.versions.opentelemetry_collector
    return f"docker.io/otel/opentelemetry-collector-contrib:{version}"


def program(wanted: Wanted, name: str, config: str, *, mib: int) -> Document:
    """A container of the collector with a config and so much memory."""
    return {
        "name": name,
        "image": image(wanted),
        "command": [_PROGRAM],
        "args": [f"--config={config}", _GATES],
        "env": [
            field("NODE", "spec.nodeName"),
            {"name": "GOMEMLIMIT", "value": f"{mib * 4 // 5}MiB"},
        ],
        "livenessProbe": _probe(),
        "readinessProbe": _probe(),
        "resources": {
            "requests": {"cpu": "20m", "memory": "64Mi"},
            "limits": {"memory": f"{mib}Mi"},
        },
        "securityContext": CONFINED,
    }


def _of_nodes(wanted: Wanted, said: AddonSpec, *, control_plane: bool) -> tuple[Document, Document]:
    name = names()[0 if control_plane else 1]
    config = pipeline.collector(wanted.spec, said, control_plane=control_plane)
    data = {_FILE: documents(config)}
    collectors = daemon_set(
        meta(name, NAMESPACE, app=name),
        _pod(wanted, said, name),
        annotations=config_annotation(data),
        control_plane=control_plane,
    )
    return config_map(name, NAMESPACE, data), collectors


def _pod(wanted: Wanted, said: AddonSpec, config: str) -> Document:
    files = _files(said)
    container = program(
        wanted, "collector", f"{_CONFIG_FOLDER}/{_FILE}", mib=pipeline.COLLECTOR_MIB
    )
    container["volumeMounts"] = [
        mount("config", _CONFIG_FOLDER, read_only=True),
        mount("state", pipeline.STATE),
        *(mount(str(volume["name"]), path, read_only=True) for volume, path in files),
    ]
    return {
        "securityContext": SECCOMP | {"runAsUser": 0, "runAsGroup": 0},
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": "system-node-critical",
        "tolerations": TOLERATE_ALL,
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": config}},
            host_path("state", f"{FOLDERS}/{FOLDER}", "DirectoryOrCreate"),
            *(volume for volume, _ in files),
        ],
    }


def _files(said: AddonSpec) -> list[tuple[Document, str]]:
    """Volumes that are read, and where: logs, the node's journalctl, and who the store is."""
    found = [
        (host_path("log", "/var/log", "Directory"), "/var/log"),
        # Of a journal that is not kept over boots.
        (host_path("run-log", "/run/log", "DirectoryOrCreate"), "/run/log"),
        (host_path("machine-id", "/etc/machine-id", "File"), "/etc/machine-id"),
        (host_path("usr", "/usr", "Directory"), "/usr"),
        (host_path("lib", "/lib", "Directory"), "/lib"),
        # Where programs of amd64 begin; arm64 has no such folder, and an empty one does no harm.
        (host_path("lib64", "/lib64", "DirectoryOrCreate"), "/lib64"),
    ]
    if said.endpoint is None:
        return [*found, (secret("access", ACCESS, "password"), ACCESS_FOLDER)]
    # It trusts whom the node trusts.
    found.append((host_path("trusted", "/etc/ssl/certs", "DirectoryOrCreate"), "/etc/ssl/certs"))
    if said.secret:
        found.append((secret("endpoint", said.secret, ENDPOINT_KEY), ENDPOINT_FOLDER))
    return found


def _probe() -> Document:
    get = {"path": "/", "port": HEALTH_PORT}
    return {"httpGet": get, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6}
