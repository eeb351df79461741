"""Differences in what machines are members of: Kubernetes, etcd, load balancers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from operations.observe import etcd_clusters
from operations.observe.expected import Expected
from operations.observe.facts import KubernetesNode, Member
from operations.observe.hints import AGAIN, RAISE, Difference
from operations.observe.probe import Findings
from stacks.cluster.plan import Node, Plan
from stacks.config.ports import ETCD_PEER_PORT


def of_node(node: Node, wanted: Expected, findings: Findings) -> Iterator[Difference]:
    """How the cluster knows this node; told for machines that cannot be reached too."""
    cluster = findings.cluster
    if cluster is None or not node.in_kubernetes:
        return
    yield from _kubernetes_node(node, wanted, findings)
    if node.is_master and node.address not in cluster.endpoints:
        text = f"its API server {node.address} is not an endpoint of the Service kubernetes"
        do = "see why its kube-apiserver does not serve (journalctl -u kubelet there)"
        yield Difference(kind="endpoint", subject=node.address, text=text, do=do)


def _kubernetes_node(node: Node, wanted: Expected, findings: Findings) -> Iterator[Difference]:
    known = findings.cluster.nodes.get(node.name) if findings.cluster else None
    if known is None:
        text = f"there is no Node {node.name} in the cluster"
        yield Difference(kind="node", subject=node.name, text=text, do=AGAIN)
        return
    if not known.is_ready:
        do = f"kubectl describe node {node.name} tells why"
        yield Difference(kind="not-ready", subject=node.name, text="Node is not Ready", do=do)
    if known.is_cordoned and node.state == "active":
        text = "Node is cordoned, and not in maintenance by the config"
        do = f"kubectl uncordon {node.name}, or say nodes.{node.name}.state: maintenance"
        yield Difference(kind="cordoned", subject=node.name, text=text, do=do)
    if not known.is_cordoned and node.state == "maintenance":
        text = "Node is in maintenance by the config, and not cordoned"
        yield Difference(kind="cordoned", subject=node.name, text=text, do=RAISE)
    yield from _progress(node, wanted, known)
    for name, says in (("kubelet", known.kubelet), ("containerd", known.runtime)):
        version, runs = wanted.programs[name], says.rpartition("/")[2].lstrip("v")
        if runs not in ("", version):
            text = f"the {name} that runs is {runs}, planned is {version}"
            yield Difference(kind="version", subject=name, text=text, do=RAISE)


def _progress(node: Node, wanted: Expected, known: KubernetesNode) -> Iterator[Difference]:
    """What the node itself says of its last change: lib.sh, begin, announce and tell_failure."""
    failed = failure(known)
    if failed:
        text = f"its last change failed: {failed}"
        yield Difference(
            kind="failed", subject=node.name, text=text, do="fix that and run pulumi up"
        )
    elif known.begun:
        text = "a change of it has begun, and has not come to its end"
        yield Difference(kind="unfinished", subject=node.name, text=text, do=AGAIN)
    elif wanted.applied and known.applied != wanted.applied:
        text = "has not announced that it applied this configuration"
        yield Difference(kind="applied", subject=node.name, text=text, do=AGAIN)


def failure(known: KubernetesNode) -> str:
    """Why the node's last change failed, with the time; empty where it did not."""
    # The first word, what was to be applied, means nothing to people.
    return known.failed.partition(" ")[2]


def of_member(plan: Plan, node: Node, findings: Findings) -> Iterator[Difference]:
    """The etcd member and the API server of a machine that was reached."""
    found = findings.machines[node.name].machine
    if found is None:
        return
    if node.is_etcd:
        runs = "etcd" in found.units and found.units["etcd"].active == "active"
        yield from etcd_clusters.of_machine(node, findings)
        if found.etcd is None and runs:
            text = f"its etcd does not answer: {found.etcd_error}"
            do = "journalctl -u etcd there tells why"
            yield Difference(kind="etcd", subject="status", text=text, do=do)
        if found.etcd is not None and found.etcd.leader == 0:
            do = "bring the other members back: this one alone has no quorum"
            yield Difference(kind="etcd", subject="leader", text="its etcd knows no leader", do=do)
        yield from _membership(node, members(findings))
    if node.is_master and found.readyz != "ok":
        text = f"its API server is not ready: {found.readyz or 'no answer'}"
        do = f"journalctl -u kubelet there tells why; {RAISE}"
        yield Difference(kind="api-server", subject="readyz", text=text, do=do)


def members(findings: Findings) -> tuple[Member, ...] | None:
    """etcd's members by the first of our cluster that has a quorum behind it; None: none has."""
    ours = etcd_clusters.ours(findings)
    for found in findings.machines.values():
        if etcd_clusters.is_foreign(found.machine, ours):
            continue
        if found.machine is not None and found.machine.members is not None:
            return found.machine.members
    return None


def peer_url(node: Node) -> str:
    return f"https://{node.address}:{ETCD_PEER_PORT}"


def _membership(node: Node, listed: Sequence[Member] | None) -> Iterator[Difference]:
    if listed is None:
        return
    row = next((member for member in listed if member.peer_url == peer_url(node)), None)
    if row is None:
        text = "is not an etcd member"
    elif not row.name:
        text = "was added to etcd, and has never started as a member"
    elif row.is_learner:
        text = "is an etcd learner, without a vote"
    else:
        return
    yield Difference(kind="etcd-member", subject=node.name, text=text, do=AGAIN)


def of_balancer(plan: Plan, node: Node, findings: Findings) -> Iterator[Difference]:
    """What the HAProxy of a machine that was reached has for masters."""
    found = findings.machines[node.name].machine
    runs = (
        found is not None and "haproxy" in found.units and found.units["haproxy"].active == "active"
    )
    if found is None or not runs:
        return
    if found.balancer_error:
        text = f"its HAProxy does not tell its state: {found.balancer_error}"
        yield Difference(kind="balancer", subject="haproxy", text=text, do=RAISE)
        return
    masters = {master.name for master in plan.masters}
    for name in sorted(masters ^ found.balancer.keys()):
        how = "does not know master" if name in masters else "still knows"
        text = f"the HAProxy that runs {how} {name}"
        yield Difference(kind="balancer", subject=name, text=text, do=RAISE)
    for name in sorted(masters & found.balancer.keys()):
        state = found.balancer[name]
        # A master that does not serve is told once, and not by every node.
        if not state.startswith("UP") and serves(name, findings):
            text = f"its HAProxy finds {name} {state}, which serves"
            do = "see that this machine reaches port 6443 of that one (firewall, routes)"
            yield Difference(kind="balancer", subject=name, text=text, do=do)


def serves(name: str, findings: Findings) -> bool:
    """Whether a master was reached and says that its API server is ready."""
    found = findings.machines[name].machine
    return found is not None and found.readyz == "ok"


def holders(plan: Plan, findings: Findings) -> tuple[str, ...]:
    """Names of the machines that say they have the virtual IP."""
    told = ((node.name, findings.machines[node.name].machine) for node in plan.holders)
    return tuple(name for name, found in told if found is not None and found.has_vip)


def _virtual_ip(plan: Plan, findings: Findings) -> Iterator[Difference]:
    """One machine has it, and no other."""
    found, vip = holders(plan, findings), plan.vip
    if not plan.holders or len(found) == 1:
        return
    reached = all(findings.machines[node.name].machine is not None for node in plan.holders)
    if not found and not reached:
        return  # who has it may be one that was not reached, which is told
    where = f"is on {', '.join(found)} at once" if found else "is on no machine"
    do = "journalctl -u keepalived there tells why"
    if found:
        do += "; is protocol 112 (VRRP) let through between them?"
    yield Difference(kind="virtual-ip", subject=vip, text=f"virtual IP {vip} {where}", do=do)


def of_cluster(plan: Plan, findings: Findings) -> Iterator[Difference]:
    """What belongs to no node of the plan."""
    yield from _virtual_ip(plan, findings)
    listed = members(findings)
    wanted = {peer_url(node) for node in plan.etcd}
    if listed is None:
        text = "no etcd member tells of a quorum"
        do = "start the members that have data; journalctl -u etcd there tells why one does not run"
        yield Difference(kind="etcd-quorum", subject="etcd", text=text, do=do)
    for member in listed or ():
        if member.peer_url not in wanted:
            name = member.name or "without a name"
            text = f"etcd member {name} at {member.peer_url} is {_not_wanted(plan, name)}"
            do = f"{RAISE}: it is removed when the others keep a quorum"
            yield Difference(kind="etcd-member", subject=member.peer_url, text=text, do=do)
    if findings.cluster is None:
        text = f"no master tells about the cluster: {findings.trouble}"
        do = "see that the masters run; kubectl get --raw /readyz there tells what is wrong"
        yield Difference(kind="api", subject="api", text=text, do=do)
        return
    yield from _strangers(plan, findings)
    if not findings.cluster.has_settings:
        text = "ConfigMap kubeadm-config or kubelet-config is missing in namespace kube-system"
        yield Difference(kind="settings", subject="kubeadm-config", text=text, do=RAISE)


def _not_wanted(plan: Plan, name: str) -> str:
    """Why a name is not a member: the config does not have it, or not as one."""
    state = next((node.state for node in plan.away if node.name == name), None)
    return f"{state} by the config" if state else "not in the config"


def _strangers(plan: Plan, findings: Findings) -> Iterator[Difference]:
    cluster = findings.cluster
    if cluster is None:
        return
    known = {node.name for node in plan.nodes if node.in_kubernetes}
    for name in sorted(cluster.nodes.keys() - known):
        text = f"Node {name} is in the cluster, but {_not_wanted(plan, name)}"
        do = f"say in the config that it is wanted, or {RAISE}: it is drained and deleted"
        if cluster.asked and name not in cluster.asked:
            text += ", and was never asked for by this stack"
            do = f"find out who made it; kubectl delete node {name} takes it out, no up does"
        yield Difference(kind="stranger", subject=name, text=text, do=do)
    addresses = {node.address for node in plan.masters}
    for address in sorted(cluster.endpoints - addresses):
        text = f"API server {address} is an endpoint of the Service kubernetes, but no master"
        do = "stop that kube-apiserver: it writes to the same etcd"
        yield Difference(kind="endpoint", subject=address, text=text, do=do)
