"""Which images the specs need, and which of them a node of this cluster can pull."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from operations.engine.engine import StackError
from operations.engine.kubectl import Kubectl

_TABLE = Path(__file__).with_name("images.yaml")
NAMESPACE = "kube-ha-conformance"
_POD = "images"
_REFUSED = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable")
_PULLED = ("CreateContainer", "RunContainer", "CrashLoop")
_LIMIT_S = 600
# A first refusal may be the network's hiccup; kubelets try again within 10 s.
_PATIENCE_S = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Images by name: those of most specs, and those of some, with the names of these specs."""

    all: tuple[str, ...]
    specs: Mapping[str, re.Pattern[str]]
    apart: re.Pattern[str]  # references that none of these specs needs

    def of(self, refs: Iterable[str], specs: Iterable[str]) -> dict[str, str]:
        """Name by reference, of the images among `refs` that these specs need."""
        wanted = {*self.all}
        wanted |= {
            name
            for name, pattern in self.specs.items()
            if any(pattern.search(spec) for spec in specs)
        }
        named = ((ref, name_of(ref)) for ref in refs if not self.apart.search(ref))
        return {ref: name for ref, name in named if name in wanted}

    def lacking(self, spec: str, missing: Mapping[str, str]) -> str:
        """Why this spec cannot run where these references cannot be pulled; empty: it can."""
        for ref, why in sorted(missing.items()):
            pattern = self.specs.get(name_of(ref))
            if pattern and pattern.search(spec):
                return f"image {ref} cannot be pulled: {why}"
        return ""


def read() -> Needs:
    found = yaml.safe_load(_TABLE.read_text())
    specs = {name: re.compile("|".join(listed)) for name, listed in found["specs"].items()}
    apart = re.compile("|".join(found["apart"]))
    return Needs(all=tuple(found["all"]), specs=specs, apart=apart)


def name_of(ref: str) -> str:
    """`registry.k8s.io/e2e-test-images/agnhost:2.63.0` is `agnhost`."""
    return ref.rpartition("/")[2].partition(":")[0]


def missing(kubectl: Kubectl, refs: Sequence[str]) -> dict[str, str]:
    """Why a node cannot pull it, by reference, of those that cannot be pulled.

    A pod with a container of each asks, as the specs' own pods will. Raises StackError.
    """
    kubectl.text("delete", "namespace", NAMESPACE, "--ignore-not-found", limit_s=120)
    kubectl.text("apply", "--filename", "-", stdin=json.dumps(_asking(refs)))
    try:
        return _answers(kubectl, refs)
    finally:
        kubectl.text("delete", "namespace", NAMESPACE, "--wait=false")


def _answers(kubectl: Kubectl, refs: Sequence[str]) -> dict[str, str]:
    start = time.monotonic()
    found: dict[str, str | None] = dict.fromkeys(refs)
    status: Mapping[str, object] = {}
    while (spent := time.monotonic() - start) < _LIMIT_S:
        words = ("--namespace", NAMESPACE, "get", "pod", _POD, "--output", "json")
        status = json.loads(kubectl.text(*words)).get("status", {})
        found |= _judged(status, refs, final=spent > _PATIENCE_S)
        if None not in found.values():
            return {ref: why for ref, why in found.items() if why}
        time.sleep(1)
    if status.get("phase") == "Pending" and not status.get("containerStatuses"):
        raise StackError(
            f"no node took a pod in {_LIMIT_S} s; last seen: {status.get('conditions')}\n"
            "  do: see that a node without taints is Ready (make status)"
        )
    return {ref: why or f"not there in {_LIMIT_S} s" for ref, why in found.items() if why != ""}


def _judged(
    status: Mapping[str, object], refs: Sequence[str], *, final: bool
) -> dict[str, str | None]:
    """By reference: empty where it is there, why not, None where that is still open."""
    listed = status.get("containerStatuses")
    out: dict[str, str | None] = {}
    for one in listed if isinstance(listed, list) else ():
        ref = refs[int(one["name"].removeprefix("image-"))]
        state = one.get("state", {})
        waiting = state.get("waiting", {})
        reason = str(waiting.get("reason", ""))
        if reason in _REFUSED:
            out[ref] = _cause(waiting.get("message") or reason, ref) if final else None
        else:  # once it was pulled, what it was told to start turns out not to exist
            came = (
                one.get("imageID")
                or reason.startswith(_PULLED)
                or {"running", "terminated"} & {*state}
            )
            out[ref] = "" if came else None
    return out


def _cause(message: str, ref: str) -> str:
    """The end of a chain of errors, each of which names the image."""
    return " ".join(message.rpartition(ref)[2].strip('": ').split())[-160:]


def _asking(refs: Sequence[str]) -> dict[str, object]:
    containers = [
        {"name": f"image-{number}", "image": ref, "command": ["/kube-ha/there-is-none"]}
        for number, ref in enumerate(refs)
    ]
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            "labels": {"pod-security.kubernetes.io/enforce": "privileged"},
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _POD, "namespace": NAMESPACE},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": containers,
        },
    }
    return {"apiVersion": "v1", "kind": "List", "items": [namespace, pod]}
