"""local-path: a StorageClass of folders on the nodes' own disks, by Rancher's provisioner."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from stacks.catalogue.entry import NodePort, Wanted, no_notices
from stacks.catalogue.pods import CONFINED, pod
from stacks.config.problems import Problem
from stacks.config.spec import AddonSpec, Spec
from stacks.documents.kubernetes_objects import (
    SECCOMP,
    Document,
    cluster_role,
    cluster_role_binding,
    config_annotation,
    config_map,
    field,
    meta,
    mount,
    requests,
    service_account,
)
from stacks.documents.yaml_text import documents
from stacks.releases.versions import Versions

_NAMESPACE = "kube-system"  # its pods write into the nodes' file systems
_NAME = "local-path-provisioner"
_CLASS = "local-path"
_CONFIG = "local-path-config"
_LABELS = {"app": _NAME}
_RBAC = "rbac.authorization.k8s.io"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_PATH = "/opt/local-path-provisioner"  # upstream's

ROLLOUTS: tuple[str, ...] = (f"{_NAMESPACE}/deployment/{_NAME}",)
SETTINGS: tuple[str, ...] = ("default", "path")
REGISTRIES: tuple[str, ...] = ("docker.io",)
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
    return versions.local_path


def problems(spec: Spec) -> Iterable[Problem]:
    """None: a folder can be made everywhere."""
    del spec
    return ()


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """Account, rights, config, Deployment and StorageClass.

    One replica: it elects no leader. Without it volumes that exist are used as before.
    """
    image = f"docker.io/rancher/local-path-provisioner:v{wanted.versions.local_path}"
    data = _settings(said, image)
    return (
        service_account(_NAME, _NAMESPACE),
        *_rights(),
        config_map(_CONFIG, _NAMESPACE, data),
        _deployment(image, data),
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                **meta(_CLASS),
                "annotations": {_DEFAULT_CLASS: "true" if said.default else "false"},
            },
            "provisioner": "rancher.io/local-path",
            "reclaimPolicy": "Delete",
            # The folder is made on the node that the scheduler chose for the pod.
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )


def _settings(said: AddonSpec, image: str) -> dict[str, str]:
    """Files of its ConfigMap, as upstream names them."""
    paths = [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [said.path or _PATH]}]
    return {
        "config.json": json.dumps({"nodePathMap": paths}),
        "setup": '#!/bin/sh\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n',
        "teardown": '#!/bin/sh\nset -eu\nrm -rf "$VOL_DIR"\n',
        "helperPod.yaml": documents(_helper(image)),
    }


def _helper(image: str) -> Document:
    """The pod that makes or removes a folder on a node; it gets volumes and a command there."""
    # What is in a volume belongs to whoever wrote it.
    capabilities = {"add": ["DAC_OVERRIDE", "FOWNER"], "drop": ["ALL"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta("helper-pod"),
        "spec": {
            "automountServiceAccountToken": False,
            "priorityClassName": "system-node-critical",
            "securityContext": SECCOMP,
            "containers": [
                {
                    "name": "helper-pod",
                    "image": image,
                    "resources": requests("10m", "16Mi"),
                    "securityContext": CONFINED | {"capabilities": capabilities},
                }
            ],
        },
    }


def _rights() -> tuple[Document, ...]:
    look = ["get", "list", "watch"]
    write = [*look, "create", "delete", "patch", "update"]
    group = "storage.k8s.io"
    account = [{"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}]
    return (
        cluster_role(
            _NAME,
            [
                {
                    "apiGroups": [""],
                    "resources": ["nodes", "persistentvolumeclaims", "pods"],
                    "verbs": look,
                },
                {"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": write},
                {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
                {"apiGroups": [group], "resources": ["storageclasses"], "verbs": look},
            ],
        ),
        cluster_role_binding(_NAME, _NAME, _NAME, _NAMESPACE),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": meta(_NAME, _NAMESPACE),
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": write},
                {"apiGroups": [""], "resources": ["configmaps", "pods/log"], "verbs": look},
            ],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta(_NAME, _NAMESPACE),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": _NAME},
            "subjects": account,
        },
    )


def _deployment(image: str, data: dict[str, str]) -> Document:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(_NAME, _NAMESPACE, **_LABELS),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": _LABELS},
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": {"labels": _LABELS, "annotations": config_annotation(data)},
                "spec": pod(
                    _NAME,
                    _container(image),
                    {"name": "config", "configMap": {"name": _CONFIG}},
                ),
            },
        },
    }


def _container(image: str) -> Document:
    return {
        "name": _NAME,
        "image": image,
        "command": ["local-path-provisioner", "start", "--config", "/etc/config/config.json"],
        "env": [
            field("POD_NAMESPACE", "metadata.namespace"),
            {"name": "SERVICE_ACCOUNT_NAME", "value": _NAME},
            {"name": "CONFIG_MOUNT_PATH", "value": "/etc/config/"},
        ],
        "resources": requests("10m", "32Mi"),
        "securityContext": CONFINED,
        "volumeMounts": [mount("config", "/etc/config", read_only=True)],
    }
