"""Checks of what is sent to machines: the settings of a phase travel in one command, of 8 KB.

How much there is shows only when it is written out, so these checks look at the plan of a config
that is right in everything else. Sizes are in bytes, never under the real ones.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from stacks import names
from stacks.files import apiserver, kubeadm
from stacks.plan import ETCD_CLIENT_PORT, Node, Plan
from stacks.problems import Problem
from stacks.spec import TaintSpec

STDIN_LIMIT = 8192  # bytes of one command; a stdin stands in the state twice
OTHER_VALUES = 500  # names of values, of cluster and node, sums, a master's taint: at most 450
_SUM = 16  # of what a node should be


def problems(plan: Plan) -> list[Problem]:
    """What would not fit: a master's settings, the list of all nodes."""
    return [*_of_masters(plan), *_of_nodes(plan)]


def master_sizes(plan: Plan) -> tuple[int, int]:
    """What the biggest command of a master takes without the audit policy, and the policy."""
    # Masters differ by name, address and taint alone, and writing YAML takes its time: one will do.
    longest = max(plan.masters, key=lambda node: len(node.name) + len(node.address))
    audited = plan.spec.control_plane.audit.enabled
    return (
        OTHER_VALUES + _quoted(kubeadm.init(plan, longest)),
        _quoted(apiserver.audit_policy(plan)) if audited else 0,
    )


def _of_masters(plan: Plan) -> list[Problem]:
    settings, policy = master_sizes(plan)
    size, room = settings + policy, STDIN_LIMIT - settings
    if size <= STDIN_LIMIT:
        return []
    if plan.spec.control_plane.audit.policy is not None and room > 0:
        text = f"takes {policy} bytes on a master, where {room} are left; use fewer, wider rules"
        return [Problem("controlPlane.audit.policy", text)]
    text = (
        f"takes {size} bytes on a master, {STDIN_LIMIT} fit; shorten apiServerArgs, "
        "controllerManagerArgs, schedulerArgs or certSans"
    )
    return [Problem("controlPlane", text)]


def _of_nodes(plan: Plan) -> list[Problem]:
    size = nodes_size(plan)
    if size <= STDIN_LIMIT:
        return []
    if nodes_size(plan, with_exceptions=False) <= STDIN_LIMIT:
        text = (
            f"the list of nodes takes {size} bytes with these exceptions, {STDIN_LIMIT} fit; "
            "put nodes with the same labels and taints in a pool of their own"
        )
        return [Problem("nodes", text)]
    text = (
        f"the list of nodes takes {size} bytes, {STDIN_LIMIT} fit; use names that count "
        "(worker-1, worker-2, ...), which are listed as one, and fewer or shorter labels and taints"
    )
    return [Problem("pools", text)]


def nodes_size(plan: Plan, *, with_exceptions: bool = True) -> int:
    """What the command takes that lists all nodes: by pool, by their labels, by their taints."""
    pools: dict[str, list[str]] = {}
    labels: dict[str, list[str]] = {}
    taints: dict[str, list[str]] = {}
    for node in plan.nodes:
        if node.in_kubernetes:
            pool = plan.spec.pools[node.pool]
            own_labels = (
                dict(node.labels) if with_exceptions else {**pool.labels, **node.zone_label}
            )
            own_taints = node.taints if with_exceptions else pool.taints
            pools.setdefault(f"{node.pool} {'0' * _SUM}", []).append(node.name)
            labels.setdefault(_label_words(node, own_labels), []).append(node.name)
            taints.setdefault(_taint_words(own_taints), []).append(node.name)
    lists = sum(_lines_size(groups) for groups in (pools, labels, taints))
    members = sum(len(f"{node.name}={node.address} ") for node in plan.etcd)
    endpoints = sum(len(f"https://{node.address}:{ETCD_CLIENT_PORT},") for node in plan.etcd)
    return OTHER_VALUES + lists + members + endpoints


def _label_words(node: Node, labels: Mapping[str, str]) -> str:
    role = "control-plane" if node.is_master else "worker"
    words = [
        f"node-role.kubernetes.io/{role}=",
        *(f"{key}={value}" for key, value in labels.items()),
    ]
    return " ".join(sorted(words))


def _taint_words(taints: Iterable[TaintSpec]) -> str:
    return " ".join(sorted(f"{taint.key}={taint.value}:{taint.effect}" for taint in taints))


def _lines_size(groups: Mapping[str, list[str]]) -> int:
    """A line for each group: its words, its names, a character between and one behind."""
    return sum(len(words) + len(names.ranges(group)) + 2 for words, group in groups.items())


def _quoted(text: str) -> int:
    """Bytes of a text in shell syntax."""
    return len(shlex.quote(text).encode())
