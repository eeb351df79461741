"""Nodes as the API lists them, made from rows of what their kubelets and masters wrote there."""

from __future__ import annotations

import json
from collections.abc import Sequence

TOLD = ("applied", "ready", "begun", "failed")


def one(name: str, **written: str) -> dict[str, object]:
    """A Node; what is written by name: ready, cordoned, kubelet, runtime, machine, address; all else is an annotation of kube-ha."""
    annotations = {f"kube-ha.io/{key}": text for key, text in written.items() if text}
    for key in ("ready", "cordoned", "kubelet", "runtime", "machine", "address"):
        annotations.pop(f"kube-ha.io/{key}", None)
    ready = written.get("ready", "")
    address = written.get("address", "")
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"unschedulable": True} if written.get("cordoned") == "true" else {},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}] if ready else [],
            "addresses": [{"type": "InternalIP", "address": address}] if address else [],
            "nodeInfo": {
                "kubeletVersion": written.get("kubelet", ""),
                "containerRuntimeVersion": written.get("runtime", ""),
                "machineID": written.get("machine", ""),
            },
        },
    }


def listed(*nodes: dict[str, object]) -> str:
    return json.dumps({"kind": "NodeList", "items": nodes})


def listing(rows: Sequence[str], fields: Sequence[str] = TOLD) -> str:
    """Rows `name|field|...` as a list of Nodes."""
    found = []
    for row in rows:
        name, *values = row.split("|")
        found.append(one(name, **dict(zip(fields, values, strict=False))))
    return listed(*found)
