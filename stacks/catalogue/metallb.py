"""metallb: addresses for Services of type LoadBalancer on machines that no cloud has, by ARP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, summarize_address_range

from stacks.catalogue import metallb_objects
from stacks.catalogue.entry import NodePort, Wanted
from stacks.catalogue.metallb_objects import CONTROLLER, EXCLUDED, MEMBERS_KEY, NAMESPACE, SPEAKER
from stacks.catalogue.pods import CONFINED, pod
from stacks.config.problems import Problem
from stacks.config.spec import AddonSpec, Spec
from stacks.documents.kubernetes_objects import (
    REAL_NODES,
    SECCOMP,
    TOLERATE_ALL,
    Document,
    field,
    meta,
    mount,
    requests,
    service_account,
)
from stacks.releases.versions import Versions

_NAME = "metallb"
_HEALTH_PORT = 17472
_METRICS_PORT = 9120
_MEMBERS_PORT = 7946  # of memberlist, by which speakers know which of them are alive

ROLLOUTS: tuple[str, ...] = (
    f"{NAMESPACE}/deployment/{CONTROLLER}",
    f"{NAMESPACE}/daemonset/{SPEAKER}",
)
SETTINGS: tuple[str, ...] = ("addresses",)
REGISTRIES: tuple[str, ...] = ("quay.io",)
LOCAL_PORTS: Mapping[int, str] = {
    _HEALTH_PORT: "the health of MetalLB's speaker",
    _METRICS_PORT: "MetalLB's speaker",
    _MEMBERS_PORT: "MetalLB's speakers",
}
PORTS: tuple[NodePort, ...] = (
    NodePort("metallb", "tcp", _MEMBERS_PORT),
    NodePort("metallb-udp", "udp", _MEMBERS_PORT),
)
READS_NODES: bool = False
LOGS_IN: bool = False
NEEDS_POLICIES: bool = False
NODE_FOLDER: str = ""
NEEDS_LAYER_2: bool = True


def version(versions: Versions) -> str:
    """Of the set, as artifacts/lock.yaml has it."""
    return versions.metallb


def ranges(said: AddonSpec) -> tuple[tuple[IPv4Address, IPv4Address], ...]:
    """First and last of each range."""
    return tuple(_ends(text) for text in said.addresses)


def _ends(text: str) -> tuple[IPv4Address, IPv4Address]:
    if "/" in text:
        network = IPv4Network(text)
        return network[0], network[-1]
    first, _, last = text.partition("-")
    return IPv4Address(first), IPv4Address(last or first)


def problems(spec: Spec) -> Iterator[Problem]:
    """No addresses, or addresses that are in use already."""
    path, found = f"addons.{_NAME}.addresses", ranges(spec.addons[_NAME])
    if not found:
        text = "is empty; name addresses of the machines' network that nobody else has"
        yield Problem(path, text)
    inside = {
        "cluster.podCidr": spec.cluster.pod_cidr,
        "cluster.serviceCidr": spec.cluster.service_cidr,
    }
    vip = spec.front_doors.vip
    for place, (first, last) in enumerate(found):
        where = f"{path}[{place}]"
        for name, cidr in inside.items():
            if any(
                part.overlaps(IPv4Network(cidr)) for part in summarize_address_range(first, last)
            ):
                text = f"meets {name} {cidr}, which nobody outside reaches"
                yield Problem(where, text)
        if any(first <= end and start <= last for start, end in found[:place]):
            yield Problem(where, "meets another range of the list; name each address once")
        if vip is not None and first <= IPv4Address(vip.address) <= last:
            text = f"holds {vip.address}, the virtual IP of the API; leave that out"
            yield Problem(where, text)


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """Namespace, kinds, accounts, rights, settings, the controller, and a speaker on every node.

    The namespace is its own: its speakers read all Secrets there, on every node.
    """
    mode = "pod-security.kubernetes.io/enforce"
    return (
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": meta(NAMESPACE, **{mode: "privileged"}),
        },
        *metallb_objects.definitions(),
        service_account(CONTROLLER, NAMESPACE),
        service_account(SPEAKER, NAMESPACE),
        *metallb_objects.rights(),
        *metallb_objects.settings([f"{first}-{last}" for first, last in ranges(said)]),
        _workload("Deployment", CONTROLLER, _controller(wanted), replicas=1),
        _workload("DaemonSet", SPEAKER, _speaker(wanted), updateStrategy=_ONE_BY_ONE),
    )


# Of a speaker that goes, another one takes the addresses over.
_ONE_BY_ONE: Document = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}


def _labels(component: str) -> dict[str, str]:
    return {"app": _NAME, "component": component}


def _workload(kind: str, name: str, spec: Document, **more: object) -> Document:
    labels = _labels(name)
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": meta(name, NAMESPACE, **labels),
        "spec": {
            **more,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _controller(wanted: Wanted) -> Document:
    """One: it elects no leader. Without it Services keep their addresses, and new ones wait."""
    return pod(
        CONTROLLER,
        {
            "name": CONTROLLER,
            "image": f"quay.io/metallb/controller:v{wanted.versions.metallb}",
            "args": ["--log-level=info", f"--port={_METRICS_PORT}", "--webhook-mode=disabled"],
            "env": [
                field("METALLB_POD_NAME", "metadata.name"),
                {"name": "METALLB_DEPLOYMENT", "value": CONTROLLER},
                {"name": "METALLB_ML_SECRET_NAME", "value": MEMBERS_KEY},
            ],
            **_probes(),
            "resources": requests("10m", "40Mi"),
            "securityContext": CONFINED,
        },
    )


def _speaker(wanted: Wanted) -> Document:
    """Root, with the one right to answer ARP."""
    capabilities = {"add": ["NET_RAW"], "drop": ["ALL"]}
    return {
        "hostNetwork": True,
        "securityContext": SECCOMP,
        "priorityClassName": "system-node-critical",
        "serviceAccountName": SPEAKER,
        "terminationGracePeriodSeconds": 2,
        "tolerations": TOLERATE_ALL,
        "affinity": REAL_NODES,
        "containers": [
            {
                "name": SPEAKER,
                "image": f"quay.io/metallb/speaker:v{wanted.versions.metallb}",
                "args": ["--log-level=info", f"--port={_METRICS_PORT}"],
                "env": [
                    field("METALLB_NODE_NAME", "spec.nodeName"),
                    field("METALLB_POD_NAME", "metadata.name"),
                    field("METALLB_ML_BIND_ADDR", "status.podIP"),
                    {
                        "name": "METALLB_ML_LABELS",
                        "value": ",".join(f"{k}={v}" for k, v in _labels(SPEAKER).items()),
                    },
                    {"name": "METALLB_ML_SECRET_KEY_PATH", "value": "/etc/ml_secret_key"},
                ],
                **_probes("127.0.0.1"),
                "resources": requests("10m", "40Mi"),
                "securityContext": CONFINED | {"capabilities": capabilities},
                "volumeMounts": [
                    mount("members", "/etc/ml_secret_key", read_only=True),
                    mount("excluded", "/etc/metallb", read_only=True),
                ],
            }
        ],
        "volumes": [
            {"name": "members", "secret": {"secretName": MEMBERS_KEY}},
            {"name": "excluded", "configMap": {"name": EXCLUDED}},
        ],
    }


def _probes(host: str = "") -> Document:
    def probe(path: str) -> Document:
        get = {"path": path, "port": _HEALTH_PORT, **({"host": host} if host else {})}
        return {"httpGet": get, "periodSeconds": 5, "failureThreshold": 6}

    return {"livenessProbe": probe("/healthz"), "readinessProbe": probe("/readyz")}


def notices(was: AddonSpec | None, now: AddonSpec | None) -> Iterable[str]:
    """An address that leaves is taken from the Service that has it."""
    if was is None or now is None:
        return
    gone = [text for text in was.addresses if text not in now.addresses]
    if gone:
        yield (
            f"Services of type LoadBalancer with an address of {', '.join(gone)} get another one, "
            "unless it is still in a range"
        )
