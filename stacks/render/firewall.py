"""What one machine in no cloud lets in: rules of nftables, made of who talks to whom.

They stand in a chain that components/scripts/firewall.sh writes, between what every machine lets in
and the rule that drops the rest. Machines know each other by networks, so one that comes changes no
other's rules. Ports of a pod network are open whichever backend it has: another one meets them so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Network, collapse_addresses

from stacks.cluster import firewall
from stacks.cluster.plan import Node, Plan
from stacks.config import ports
from stacks.config.firewall import FirewallSpec, LetInSpec
from stacks.networks import registry as networks

Span = tuple[int, int]  # first and last port
# Whom, what protocol, which ports; None: all of the protocol.
_Open = tuple[Sequence[str], str, Span | None]

RULES = "/etc/kube-ha/firewall.rules"
_SSH_PORT = 22
_ALL: Span = (1, 65535)
_BGP: Span = (179, 179)
ANYBODY = ("0.0.0.0/0",)
_NUMBERS = {"vrrp": 112, "ipip": 4, "esp": 50}
# Of a machine's own pods, whose packets come by their own addresses. Others come by their node's.
_OF_PODS = frozenset({"api", "kubelet", firewall.NODE_PORTS, "node-ports-udp"})


def rules(plan: Plan, node: Node, said: FirewallSpec) -> str:
    """A rule a line: of each group of networks one for each protocol."""
    found: dict[tuple[str, str], list[Span]] = {}
    for sources, protocol, those in (*_of_machines(plan, node, said), *_others(plan, node, said)):
        if sources:
            found.setdefault((_from(sources), protocol), []).append(those or _ALL)
    return "\n".join(
        f"{source}{_packets(protocol, spans)}accept" for (source, protocol), spans in found.items()
    )


def _of_machines(plan: Plan, node: Node, said: FirewallSpec) -> Iterator[_Open]:
    """From machines of the cluster, and from the pods of this one."""
    own, pods = firewall.groups(node.roles), (plan.spec.cluster.pod_cidr,)
    for rule in firewall.between_machines(plan):
        if rule.to not in own or rule.protocol == "icmp":
            continue
        those = _ssh(node) if rule.name == firewall.SSH_PEERS else rule.ports
        yield said.networks, rule.protocol, those
        if rule.name in _OF_PODS:
            yield pods, rule.protocol, those
    network = networks.of(plan.spec)
    for one in network.TUNNELS:
        if one.to in own:
            yield said.networks, one.protocol, (one.port, one.port)
    if network.OPEN and node.in_kubernetes:
        yield said.networks, "all", None
    if node.is_master or node.is_load_balancer:
        # Whether there is a VIP or not: those who had it hear those who are to have it.
        yield said.networks, "vrrp", None
    if (vip := plan.spec.front_doors.vip) and plan.listens(node):
        yield from ((of, "tcp", (vip.port, vip.port)) for of in (said.networks, pods))


def _others(plan: Plan, node: Node, said: FirewallSpec) -> Iterator[_Open]:
    """From those who are no machines of the cluster."""
    yield said.ssh_from, "tcp", _ssh(node)
    if node.is_master:
        yield said.api_from, "tcp", (ports.API_PORT, ports.API_PORT)
    if (vip := plan.spec.front_doors.vip) and plan.listens(node):
        yield said.api_from, "tcp", (vip.port, vip.port)
        for port in ports.INGRESS_PORTS if plan.ingress else ():
            yield ANYBODY, "tcp", (port, port)
    if node.in_kubernetes:
        peers = [f"{peer.address}/32" for peer in plan.spec.network.bgp_peers]
        yield peers, "tcp", _BGP
    for one in said.more:
        yield one.from_ or ANYBODY, one.protocol, span(one)


def span(said: LetInSpec) -> Span:
    """The ports that an entry of machines.firewall.more names."""
    first, _, last = (said.ports or f"{_ALL[0]}-{_ALL[1]}").partition("-")
    return int(first), int(last or first)


def _ssh(node: Node) -> Span:
    port = node.ssh.port if node.ssh else _SSH_PORT
    return port, port


def _from(sources: Iterable[str]) -> str:
    """Whose packets, with a blank behind; nothing: anybody's, by IPv6 too."""
    # Without those that lie in others: nft refuses sets that overlap.
    listed = [*collapse_addresses(IPv4Network(one) for one in sources)]
    if listed[0].prefixlen == 0:
        return ""
    return f"ip saddr {_set(map(str, listed))} "


def _packets(protocol: str, spans: Iterable[Span]) -> str:
    """What of a packet has to match, with a blank behind."""
    if protocol in _NUMBERS:
        return f"ip protocol {_NUMBERS[protocol]} "
    if protocol == "all":
        return ""
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    listed = (str(first) if first == last else f"{first}-{last}" for first, last in merged)
    return f"{protocol} dport {_set(listed)} "


def _set(words: Iterable[str]) -> str:
    listed = [*words]
    return listed[0] if len(listed) == 1 else f"{{ {', '.join(listed)} }}"
