"""What machines add to a report: journals, logs of phases, etcd's and the cluster's own words."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from operations.engine.stack import Stack
from operations.observe.observation import Look
from operations.ssh import client
from stacks.cluster.plan import Node

HOUR_S = 3600
FILE_BYTES = 192 * 1024  # the end of each log
LINE = 4000  # characters of a line
MOST_NODES = 40
_LIMIT_S = 180
_AT_ONCE = 8
_GZIP = 16 + zlib.MAX_WBITS
_OF_MACHINE = ("facts", "phases", "warnings")
_OF_MASTER = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_OF_CLUSTER = ("nodes", "pods", "events", "workloads", "requests")
_UNITS = ("etcd", "kube-ha-etcd-guard", "kube-ha-backup", "kubelet", "containerd", "haproxy")
_MORE_UNITS = ("keepalived", "kube-ha-approver", "kube-ha-ingress", "kube-ha-resume")


@dataclass(frozen=True, slots=True)
class Taken:
    """Texts by path, and why others are not there, by node."""

    files: Mapping[str, str]
    left_out: Mapping[str, str]


def take(found: Stack, seen: Look) -> Taken:
    """Ask those that answered the look, up to 40: who differs first, then masters and etcd."""
    reached = [node for node in seen.plan.nodes if seen.findings.machines[node.name].is_reached]
    reached.sort(key=lambda node: (not seen.report.nodes[node.name], _rank(node)))
    left = {
        name: machine.trouble
        for name, machine in seen.findings.machines.items()
        if not machine.is_reached
    }
    left |= {node.name: f"a report is of {MOST_NODES} nodes" for node in reached[MOST_NODES:]}
    asked = reached[:MOST_NODES]
    teller = next((node.name for node in asked if node.is_master), "")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda node: _of_node(found, node, tells=node.name == teller), asked)
        told = dict(zip(asked, answers, strict=True))
    files: dict[str, str] = {}
    for node, (texts, trouble) in told.items():
        files |= texts
        if trouble:
            left[node.name] = trouble
    return Taken(files, left)


def _rank(node: Node) -> int:
    return 0 if node.is_etcd or node.is_master else 1


def _of_node(found: Stack, node: Node, *, tells: bool) -> tuple[dict[str, str], str]:
    """Texts by path, and why some or all of them are missing."""
    names = {
        name: f"nodes/{node.name}/{name}.txt" for name in (*_OF_MACHINE, *_UNITS, *_MORE_UNITS)
    }
    if node.is_master:
        names |= {name: f"nodes/{node.name}/{name}.txt" for name in _OF_MASTER}
    if node.is_etcd:
        names["members"] = f"nodes/{node.name}/members.txt"
    if tells:
        names |= {name: f"cluster/{name}.txt" for name in _OF_CLUSTER}
    values = {
        **found.identity(node),
        "ASK": " ".join(names),
        "SINCE_S": str(HOUR_S),
        "BYTES": str(FILE_BYTES),
    }
    answer = client.run(found.targets[node.name], "report", values, limit_s=_LIMIT_S)
    texts = parsed(answer.text, names)
    if answer.status == 0 and answer.text.endswith("end"):
        return texts, ""
    why = "its answer was cut off" if "\t" in answer.last_line else answer.last_line[:200]
    return texts, f"not all of it: {why}"


def parsed(answer: str, names: Mapping[str, str]) -> dict[str, str]:
    """Texts by path of what a machine printed: each name once, none that was not asked for."""
    texts: dict[str, str] = {}
    for row in (line.split("\t") for line in answer.splitlines()):
        path = names.get(row[1]) if len(row) == 3 and row[0] == "file" else None
        if path is not None and path not in texts:
            text = _text(row[2])
            if text:
                texts[path] = text
    return texts


def _text(packed: str) -> str:
    """As printable ASCII, and no longer than it may be, whatever the machine says."""
    try:
        raw = zlib.decompressobj(_GZIP).decompress(
            base64.b64decode(packed, validate=True), FILE_BYTES
        )
    except (ValueError, zlib.error):
        return "this machine's answer cannot be read\n"
    lines = client.plain(raw.decode(errors="replace")).split("\n")
    return "\n".join(line if len(line) <= LINE else f"{line[:LINE]} [cut off]" for line in lines)
