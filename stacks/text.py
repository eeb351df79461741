"""The plan and its problems in words."""

from __future__ import annotations

from collections.abc import Sequence

from stacks import api_name
from stacks.plan import Node, Plan


def plan(plan: Plan) -> str:
    """The plan: cluster, then one line per node."""
    spec, sets = plan.spec, plan.versions
    topology = "on the masters" if plan.etcd_stacked else "on machines of its own"
    lines = [
        f"cluster {spec.cluster.name}: Kubernetes {sets.kubernetes}, etcd {sets.etcd} {topology}, "
        f"containerd {sets.containerd}, network {spec.network.plugin}",
        f"pods {spec.cluster.pod_cidr}, services {spec.cluster.service_cidr}, "
        f"DNS {plan.dns_service_ip}, API outside {plan.endpoint}",
        *([_records(plan)] if spec.front_doors.dns != "none" else []),
        f"artefacts from {plan.mirror.url if plan.mirror else 'upstream'}",
        f"{size(plan)}:",
    ]
    rows = [_row(node) for node in plan.nodes]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  " + "  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(lines) + "\n"


def _records(plan: Plan) -> str:
    name = plan.endpoint.rpartition(":")[0]
    if api_name.zone(plan.spec) is not None:
        return f"record of type A that the stack makes: {name} -> {api_name.words(plan)}"
    return f"records of type A that you make: {name} -> {', '.join(plan.door_addresses)}"


def size(plan: Plan) -> str:
    """How many nodes there are of each role."""
    balancers = len(plan.load_balancers)
    return (
        f"{len(plan.masters)} masters, {len(plan.etcd)} etcd members, {len(plan.workers)} workers"
        + (f", {balancers} load balancers" if balancers else "")
    )


def _row(node: Node) -> tuple[str, ...]:
    access = f"{node.ssh.user}@{node.address}:{node.ssh.port}" if node.ssh else node.address
    extra = [f"{key}={value}" for key, value in node.labels]
    if node.zone and not node.zone_label:
        extra.append(f"zone={node.zone}")  # no Kubernetes node has it as a label
    extra += [f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints]
    return (node.name, "+".join(node.roles), access, node.arch, " ".join(extra))


def problems(where: str, found: Sequence[tuple[str, str]]) -> str:
    """Every problem on a line of its own, below a line that counts them."""
    count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
    return f"{where}: {count}, nothing was touched\n" + _listed(found)


def problems_markdown(where: str, found: Sequence[tuple[str, str]]) -> str:
    """The same for a comment in a pull request."""
    count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
    lines = [f"**{where} is refused: {count}. Nothing is touched.**", ""]
    lines += [f"- `{path}`: {text}" if path else f"- {text}" for path, text in found]
    return "\n".join(lines) + "\n"


def warnings(found: Sequence[tuple[str, str]]) -> str:
    """Every warning on a line of its own; empty without any."""
    return "".join(f"warning: {path}: {text}\n" for path, text in found)


def _listed(found: Sequence[tuple[str, str]]) -> str:
    return "".join(f"  {path}: {text}\n" if path else f"  {text}\n" for path, text in found)
