"""Checks of flags and feature gates against what the programs themselves know.

One that a program does not take ends it: with one master the API is gone until it is taken back.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from stacks.checks import flags as check_flags
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.config.values import short
from stacks.releases import known_flags
from stacks.releases.known_flags import Known
from stacks.releases.versions import UnknownVersionError, for_kubernetes

_SECTIONS = {
    "apiServerArgs": "kube-apiserver",
    "controllerManagerArgs": "kube-controller-manager",
    "schedulerArgs": "kube-scheduler",
}
# Flags that name a file or folder, by the type and the words in their name.
_OF_FILE = re.compile(
    r"(^|-)(file|kubeconfig|config|config-file|manifest)$|filepath|^tls-sni-cert-key$"
)
# What kubeadm mounts into all three.
_MOUNTED = ("/etc/kubernetes/pki/", "/etc/ssl/certs/", "/etc/ca-certificates/", "/dev/null")
_GOAWAY_MOST = 0.02


def problems(spec: Spec) -> Iterator[Problem]:
    """Flags and gates that are not there, locked, or do not take their value."""
    yield from _controllers(spec)
    known = _known(spec)
    if known is None:
        return
    for section, flags in _given(spec).items():
        for flag, value in flags.items():
            if flag not in check_flags.OWNED[section]:
                text = _flag(known, _SECTIONS[section], flag, value)
                if text:
                    yield Problem(f"controlPlane.{section}.{flag}", text)
    version = ".".join(spec.cluster.kubernetes.split(".")[:2])
    for gate, on in spec.control_plane.feature_gates.items():
        text = _gate(known, version, gate, on=on)
        if text:
            yield Problem(f"controlPlane.featureGates.{gate}", text)
    for gate, on in spec.kubelet.feature_gates.items():
        text = _gate(known, version, gate, on=on, kubelet=True)
        if not text and gate == "RotateKubeletServerCertificate" and not on:
            text = _ROTATES if spec.kubelet.serving_certificates != "self-signed" else ""
        if text:
            yield Problem(f"kubelet.featureGates.{gate}", text)


_ROTATES = (
    "is what kubelet.servingCertificates needs, and without it the kubelet does not start; leave "
    "it out, or set kubelet.servingCertificates: self-signed"
)


def warnings(spec: Spec) -> Iterator[Problem]:
    """Flags and gates of a version whose programs nobody has asked."""
    given = [*filter(None, _given(spec).values())]
    gates = spec.control_plane.feature_gates or spec.kubelet.feature_gates
    if (given or gates) and _known(spec) is None:
        text = (
            f"flags and feature gates of Kubernetes {spec.cluster.kubernetes} are not known here, "
            "so they were not checked; one that is not there ends the API server"
        )
        yield Problem("controlPlane", text)


def _known(spec: Spec) -> Known | None:
    try:
        for_kubernetes(spec.cluster.kubernetes)
    except UnknownVersionError:
        return None  # said by checks
    return known_flags.of(spec.cluster.kubernetes)


def _given(spec: Spec) -> dict[str, Mapping[str, str]]:
    said = spec.control_plane
    return {
        "apiServerArgs": said.api_server_args,
        "controllerManagerArgs": said.controller_manager_args,
        "schedulerArgs": said.scheduler_args,
    }


def _flag(known: Known, program: str, flag: str, value: str) -> str:
    there = known.flags[program]
    kind = there.get(flag)
    if kind is None:
        near = difflib.get_close_matches(flag, there, n=1, cutoff=0.7)
        hint = f"; did you mean {near[0]!r}?" if near else "; see its --help"
        return f"{program} has no such flag{hint}"
    if kind in ("string", "namedCertKey") and _OF_FILE.search(flag):
        if value and not value.startswith(_MOUNTED):
            return f"{short(value)} is on no master, for nothing brings it there; leave it out"
        return ""
    text = known_flags.wrong(kind, known.choices.get(flag, ()), value)
    if not text and flag == "goaway-chance" and not 0 <= float(value) <= _GOAWAY_MOST:
        text = f"is not within 0 and {_GOAWAY_MOST}"
    return f"{short(value)} {text}" if text else ""


def _gate(known: Known, version: str, name: str, *, on: bool, kubelet: bool = False) -> str:
    gate = known.gates.get(name)
    who = "the kubelet" if kubelet else "the control plane"
    if gate is None or (kubelet and not gate.of_kubelet):
        near = difflib.get_close_matches(name, known.gates, n=1, cutoff=0.8)
        hint = f"; did you mean {near[0]!r}?" if near else "; take it out"
        return f"{who} of Kubernetes {version} has no such feature gate{hint}"
    if gate.locked and on != gate.on:
        word = "on" if gate.on else "off"
        return f"is locked {word} in Kubernetes {version}, and whoever switches it does not start"
    return ""


def _controllers(spec: Spec) -> Iterator[Problem]:
    """Values that are well-formed, and take away what a cluster of this program lives by."""
    said = spec.control_plane
    path = "controlPlane.controllerManagerArgs.controllers"
    listed = [
        word.strip() for word in said.controller_manager_args.get("controllers", "*").split(",")
    ]
    for word in listed:
        if word.startswith("-") and word[1:] in _NEEDED_CONTROLLERS:
            text = f"{word!r} takes away what {_NEEDED_CONTROLLERS[word[1:]]}; take it out"
            yield Problem(path, text)
    if "*" not in listed:
        yield Problem(path, "has no '*', so most controllers would not run; begin with '*'")
    path = "controlPlane.apiServerArgs.runtime-config"
    for word in said.api_server_args.get("runtime-config", "").split(","):
        name, _, value = word.strip().partition("=")
        if value.lower() == "false" and (name in ("api/all", "api/ga") or name in _NEEDED_APIS):
            yield Problem(path, f"{word!r} takes away APIs that the cluster lives by; take it out")


_NEEDED_CONTROLLERS = {
    "bootstrap-signer-controller": "joining nodes find the cluster by",
    "bootstrapsigner": "joining nodes find the cluster by",
    "certificatesigningrequest-approving-controller": "kubelets get their certificates by",
    "certificatesigningrequest-signing-controller": "kubelets get their certificates by",
    "csrapproving": "kubelets get their certificates by",
    "csrsigning": "kubelets get their certificates by",
    "daemon-set-controller": "the pod network and kube-proxy run by",
    "daemonset": "the pod network and kube-proxy run by",
    "deployment": "CoreDNS runs by",
    "deployment-controller": "CoreDNS runs by",
    "endpointslice": "Services have endpoints by",
    "endpointslice-controller": "Services have endpoints by",
    "node-ipam-controller": "nodes get their part of podCidr by",
    "node-lifecycle-controller": "dead nodes are noticed by",
    "nodeipam": "nodes get their part of podCidr by",
    "nodelifecycle": "dead nodes are noticed by",
    "replicaset": "CoreDNS runs by",
    "replicaset-controller": "CoreDNS runs by",
    "root-ca-certificate-publisher-controller": "pods know the API server by",
    "root-ca-cert-publisher": "pods know the API server by",
    "serviceaccount": "pods have an account by",
    "serviceaccount-controller": "pods have an account by",
}
_NEEDED_APIS = (
    "v1",
    *("admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1"),
    *("apps/v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1", "certificates.k8s.io/v1"),
    *("coordination.k8s.io/v1", "discovery.k8s.io/v1", "policy/v1"),
    *("rbac.authorization.k8s.io/v1", "scheduling.k8s.io/v1", "storage.k8s.io/v1"),
)
