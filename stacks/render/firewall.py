"""The firewall of one machine in no cloud: a table of nftables, made of who talks to whom.

It filters what comes to the machine itself: what is forwarded is the pod network's.
components/scripts/firewall-rules.sh reads its lines: sets, rules, and the two that it puts between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, collapse_addresses

from stacks.cluster import firewall
from stacks.cluster.plan import Node, Plan
from stacks.config import ports
from stacks.config.firewall import FirewallSpec
from stacks.networks import registry as networks
from stacks.providers.site import Group, Rule
from stacks.render import ingress

RULES = "/etc/kube-ha/firewall.nft"
_SSH_PORT = 22
# nft is given all of it at once: the old table goes and the new one comes in one transaction.
_FRAME = """\
# kube-ha: what this machine lets in
table inet kube-ha
delete table inet kube-ha
table inet kube-ha {{
{sets}
  chain lets-in {{
{rules}
  }}
  chain input {{
    type filter hook input priority filter; policy accept;
    iifname "lo" accept
    ct state established,related accept
    jump lets-in
    counter drop
  }}
}}
"""
# Before networks are up, so that nothing is open for a moment at boot. After the system's own
# rules, which begin by deleting all there are.
_UNIT = f"""\
# kube-ha: stopping it opens the machine
[Unit]
Description=What this machine of kube-ha lets in
DefaultDependencies=no
Wants=network-pre.target
Before=network-pre.target
After=local-fs.target nftables.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f {RULES}
ExecReload=/usr/sbin/nft -f {RULES}
ExecStop=/usr/sbin/nft delete table inet kube-ha

[Install]
WantedBy=sysinit.target
"""


def unit() -> str:
    """What loads it at each boot."""
    return _UNIT


def rules(plan: Plan, node: Node) -> str:
    """The table of a machine, as `nft -f` takes it."""
    said = plan.spec.machines.firewall or FirewallSpec()
    lines = dict.fromkeys(
        [*_of_any(node, said), *_between(plan, node), *_outside(plan, node, said)]
    )
    used = [group for group in _groups(plan) if any(f"@{group} " in line for line in lines)]
    return _FRAME.format(
        sets="\n".join(_set(plan, group) for group in used),
        rules="\n".join(f"    {line}" for line in lines),
    )


def _of_any(node: Node, said: FirewallSpec) -> Iterator[str]:
    """What every machine needs, whatever its roles are."""
    yield 'meta l4proto { icmp, ipv6-icmp } accept comment "icmp"'
    yield 'udp sport 67 udp dport 68 accept comment "dhcp"'
    yield 'udp dport 546 accept comment "dhcp"'
    ssh = node.ssh.port if node.ssh else _SSH_PORT
    yield f'{_sources(said.ssh_from)}tcp dport {ssh} accept comment "ssh"'


def _between(plan: Plan, node: Node) -> Iterator[str]:
    """From machines of the cluster, by their addresses; pods come by their own or their node's."""
    own = firewall.groups(node.roles)
    for rule in _rules(plan):
        if rule.to in own and rule.protocol != "icmp":
            port = _ssh_ports(node, rule)
            for group in rule.groups:
                yield f'ip saddr @{group} {port}accept comment "{rule.name}"'
    if node.in_kubernetes:
        # metrics-server, wherever it runs: its packets have the address of its node, or its own.
        for source in ("@node", plan.spec.cluster.pod_cidr):
            yield f'ip saddr {source} tcp dport 10250 accept comment "kubelet-nodes"'
    if node.is_master:
        pods = plan.spec.cluster.pod_cidr
        yield f'ip saddr {pods} tcp dport {ports.API_PORT} accept comment "api-pods"'


def _rules(plan: Plan) -> Iterator[Rule]:
    yield from firewall.between_machines(plan)
    if networks.of(plan.spec).OPEN:
        yield Rule(name="nodes-all", protocol="all", ports=None, to="node", groups=("node",))
    if plan.doorkeepers and not plan.holders:  # something of the user's moves the VIP
        holder: Group = "loadbalancer" if plan.load_balancers else "master"
        yield Rule(name="vrrp", protocol="vrrp", ports=None, to=holder, groups=(holder,))


def _ssh_ports(node: Node, rule: Rule) -> str:
    """The rule's packets; SSH is at the port that this machine has for it."""
    if rule.name == firewall.SSH_PEERS and node.ssh:
        return f"tcp dport {node.ssh.port} "
    return _packets(rule.protocol, rule.ports)


def _outside(plan: Plan, node: Node, said: FirewallSpec) -> Iterator[str]:
    """From those who are no machines of the cluster."""
    vip = plan.spec.front_doors.vip
    doors = [ports.API_PORT] if node.is_master else []
    if vip is not None and plan.listens(node):
        doors.append(vip.port)
        if said.api_from:
            for source in ("@machine", plan.spec.cluster.pod_cidr):
                yield f'ip saddr {source} tcp dport {vip.port} accept comment "vip"'
    for port in doors:
        yield f'{_sources(said.api_from)}tcp dport {port} accept comment "api-clients"'
    if node in plan.ingress:
        span = f"{{ {ingress.HTTP_PORT}, {ingress.HTTPS_PORT} }}"
        yield f'tcp dport {span} accept comment "ingress"'
    if node.in_kubernetes and any(one.name == "bgp" for one in networks.tunnels(plan.spec)):
        peers = [peer.address for peer in plan.spec.network.bgp_peers]
        if peers:
            yield f'{_sources(peers)}tcp dport 179 accept comment "bgp"'
    for one in said.more:
        first, _, last = (one.ports or "").partition("-")
        span_ = (int(first), int(last or first)) if first else None
        yield f'{_sources(one.from_)}{_packets(one.protocol, span_)}accept comment "more"'


def _packets(protocol: str, span: tuple[int, int] | None) -> str:
    """What of a packet has to match, with a blank behind."""
    if protocol in ("tcp", "udp"):
        first, last = span or (1, 65535)
        return f"{protocol} dport {first if first == last else f'{first}-{last}'} "
    number = {"vrrp": 112, "ipip": 4, "esp": 50}
    return f"ip protocol {number[protocol]} " if protocol in number else ""


def _sources(networks_: Iterable[str]) -> str:
    """Whose packets, with a blank behind; nothing: anybody's."""
    # Without those that lie in others: nft refuses sets that overlap.
    listed = [*collapse_addresses(IPv4Network(one) for one in networks_)]
    if not listed or listed[0].prefixlen == 0:
        return ""
    return f"ip saddr {{ {', '.join(map(str, listed))} }} "


def _groups(plan: Plan) -> tuple[Group, ...]:
    return tuple(sorted({group for node in plan.nodes for group in firewall.groups(node.roles)}))


def _set(plan: Plan, group: Group) -> str:
    """Addresses of all machines of a group, absent ones too; those that count as one range."""
    numbers = sorted(
        int(IPv4Address(node.address))
        for node in plan.nodes
        if group in firewall.groups(node.roles)
    )
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    listed = ", ".join(
        "-".join(str(IPv4Address(number)) for number in dict.fromkeys(span)) for span in spans
    )
    return f"  set {group} {{ type ipv4_addr; flags interval; elements = {{ {listed} }}; }}"
