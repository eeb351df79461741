"""traefik: an ingress controller on every worker, behind the door that the config has for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stacks.catalogue.entry import NodePort, Wanted, no_notices
from stacks.catalogue.pods import CONFINED
from stacks.config.problems import Problem
from stacks.config.spec import AddonSpec, Spec
from stacks.documents.kubernetes_objects import (
    REAL_NODES,
    ROLLING,
    SECCOMP,
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
from stacks.releases.versions import Versions

_NAME = "traefik"
_NAMESPACE = "traefik"
_LABELS = {"app.kubernetes.io/name": _NAME}
_WEB, _TLS, _PING = 8000, 8443, 8080  # of its pods
_BESIDE = "metallb"

ROLLOUTS: tuple[str, ...] = (f"{_NAMESPACE}/daemonset/{_NAME}",)
SETTINGS: tuple[str, ...] = ("default",)
REGISTRIES: tuple[str, ...] = ("docker.io",)
LOCAL_PORTS: Mapping[int, str] = {}
PORTS: tuple[NodePort, ...] = ()
READS_NODES: bool = False
LOGS_IN: bool = False
NEEDS_LAYER_2: bool = False
NEEDS_POLICIES: bool = False
notices = no_notices  # its pods are replaced a tenth at a time
NODE_FOLDER: str = ""

# What fails at a pod that died with its node is asked of another one; requests that change
# something are not.
_RETRY = {
    "retry.yaml": "http: {middlewares: {retry: {retry: {attempts: 3, initialInterval: 100ms}}}}\n"
}


def version(versions: Versions) -> str:
    """Of the set, as artifacts/lock.yaml has it."""
    return versions.traefik


def problems(spec: Spec) -> Iterator[Problem]:
    """Nothing forwards to it, or what does tells it of clients in a way that it cannot check."""
    ingress = spec.front_doors.ingress
    if ingress is None and _BESIDE not in spec.addons:
        text = f"is reached by nobody; add frontDoors.ingress, or add-on {_BESIDE}"
        yield Problem(f"addons.{_NAME}", text)
    if ingress is not None and ingress.proxy_protocol and spec.front_doors.vip is None:
        text = f"add-on {_NAME} cannot tell a cloud's load balancer from others who speak it"
        yield Problem("frontDoors.ingress.proxyProtocol", f"{text}; take one of them out")


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """Namespace, account, rights, class, settings, a pod on every worker, and the way to them.

    frontDoors.ingress with a virtual IP: its HAProxy ends TLS and forwards to a NodePort. In a
    cloud: ports 80 and 443 of the nodes. Neither: a Service of type LoadBalancer.
    """
    default = {"ingressclass.kubernetes.io/is-default-class": "true"}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": meta(_NAMESPACE)},
        service_account(_NAME, _NAMESPACE),
        *_rights(),
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": meta(_NAME) | ({"annotations": default} if said.default else {}),
            "spec": {"controller": "traefik.io/ingress-controller"},
        },
        config_map(_NAME, _NAMESPACE, _RETRY),
        _daemon_set(wanted),
        *_services(wanted),
    )


def _rights() -> tuple[Document, ...]:
    """Secrets too: certificates of Ingresses are there, and it does not start without them."""
    look = ["get", "list", "watch"]
    ingresses, updated = ["ingresses", "ingressclasses"], ["ingresses/status"]
    return (
        cluster_role(
            _NAME,
            [
                {"apiGroups": [""], "resources": ["services", "secrets", "nodes"], "verbs": look},
                {
                    "apiGroups": ["discovery.k8s.io"],
                    "resources": ["endpointslices"],
                    "verbs": ["list", "watch"],
                },
                {"apiGroups": ["networking.k8s.io"], "resources": ingresses, "verbs": look},
                {"apiGroups": ["networking.k8s.io"], "resources": updated, "verbs": ["update"]},
            ],
        ),
        cluster_role_binding(_NAME, _NAME, _NAME, _NAMESPACE),
    )


def _daemon_set(wanted: Wanted) -> Document:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": meta(_NAME, _NAMESPACE),
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "updateStrategy": ROLLING,
            "template": {
                "metadata": {"labels": _LABELS, "annotations": config_annotation(_RETRY)},
                "spec": {
                    "securityContext": SECCOMP | {"runAsNonRoot": True, "runAsUser": 65532},
                    "serviceAccountName": _NAME,
                    "terminationGracePeriodSeconds": 60,
                    "affinity": REAL_NODES,
                    "containers": [_container(wanted)],
                    "volumes": [{"name": "settings", "configMap": {"name": _NAME}}],
                },
            },
        },
    }


def _container(wanted: Wanted) -> Document:
    ports = {"web": _WEB, "tls": _TLS, "ping": _PING}
    on_node = {"web": 80, "tls": 443} if _on_nodes(wanted) else {}
    ping = {"httpGet": {"path": "/ping", "port": "ping"}}
    return {
        "name": _NAME,
        "image": f"docker.io/library/traefik:v{wanted.versions.traefik}",
        "args": [
            *_entry_points(wanted),
            "--ping",
            "--providers.kubernetesIngress",
            f"--providers.kubernetesIngress.ingressClass={_NAME}",
            "--providers.file.filename=/etc/traefik/retry.yaml",
            "--serversTransport.forwardingTimeouts.dialTimeout=1s",
            "--global.checkNewVersion=false",
            "--global.sendAnonymousUsage=false",
        ],
        "ports": [
            {"name": name, "containerPort": port}
            | ({"hostPort": on_node[name]} if name in on_node else {})
            for name, port in ports.items()
        ],
        "readinessProbe": {**ping, "periodSeconds": 2},
        "livenessProbe": ping,
        "resources": requests("50m", "64Mi"),
        "securityContext": CONFINED,
        "volumeMounts": [mount("settings", "/etc/traefik", read_only=True)],
    }


def _entry_points(wanted: Wanted) -> Iterator[str]:
    for name, port in (("web", _WEB), ("tls", _TLS)):
        point = f"--entryPoints.{name}"
        yield f"{point}.address=:{port}"
        yield f"{point}.http.middlewares=retry@file"
        # Told to end, it continues for so long: who asks its port sees it closed by then.
        yield f"{point}.transport.lifeCycle.requestAcceptGraceTimeout=10s"
    yield "--entryPoints.tls.http.tls=true"
    yield f"--entryPoints.traefik.address=:{_PING}"
    ingress = wanted.spec.front_doors.ingress
    if ingress is not None and wanted.holders:
        # They alone say who the client is.
        what = "proxyProtocol" if ingress.proxy_protocol else "forwardedHeaders"
        yield f"--entryPoints.web.{what}.trustedIPs={','.join(wanted.holders)}"


def _on_nodes(wanted: Wanted) -> bool:
    return wanted.spec.front_doors.ingress is not None and not wanted.holders


def _services(wanted: Wanted) -> Iterator[Document]:
    ingress = wanted.spec.front_doors.ingress
    web = {"name": "web", "port": 80, "targetPort": "web"}
    if ingress is None:
        tls = {"name": "tls", "port": 443, "targetPort": "tls"}
        yield _service("LoadBalancer", [web, tls])
    elif wanted.holders:
        yield _service("NodePort", [web | {"nodePort": ingress.node_port}])


def _service(kind: str, ports: list[Document]) -> Document:
    """Local: a node sends to its own pod alone, so a dead node takes nobody else's requests along.

    Pods see who asks, too.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta(_NAME, _NAMESPACE),
        "spec": {
            "type": kind,
            "externalTrafficPolicy": "Local",
            "selector": _LABELS,
            "ports": ports,
        },
    }
