"""keepalived on masters or load balancers: which of them has the virtual IP."""

from __future__ import annotations

from ipaddress import IPv4Address

from stacks.cluster.plan import Node, Plan
from stacks.config.front_doors import VipSpec

VRRP_FILE = "/etc/kube-ha/vrrp.conf"  # by which holders know each other
# Below /etc: keepalived runs nothing from a path that others than root may write to, and on some
# machines /usr/local is the group's.
CHECK = "/etc/kube-ha/vip-check"
# Seconds. A machine that dies is missed after three adverts and less than one more, HAProxy after
# two checks: keepalived's own backup timers, RFC 3768 6.1.
ADVERT_S = 1
FALL = 2

_FRAME = """\
# kube-ha: the virtual IP {vip} of {cluster}, on one machine at a time.
global_defs {{
  router_id {node}
  enable_script_security
  script_user root
}}

# HAProxy of this machine alone, never the API behind it: moving the address would mend nothing.
vrrp_script haproxy {{
  script "{check} haproxy"
  interval 1
  timeout 5
  fall {fall}
  rise 2
}}

# A machine that was taken out of the cluster hears no adverts any more, and must not take the
# address for it. Only the cluster's clear word counts; an API that does not answer changes nothing.
vrrp_script member {{
  script "{check} member {who}"
  interval 2
  timeout 30
  fall 1
  rise 2
}}

vrrp_instance {instance} {{
  state BACKUP
  nopreempt
  interface {interface}
  virtual_router_id {router_id}
  priority {priority}
  advert_int {advert}
  unicast_src_ip {address}
  unicast_peer {{
{peers}
  }}
  authentication {{
    auth_type PASS
    include {password}
  }}
  virtual_ipaddress {{
    {vip}/32 dev {interface}
  }}
  track_script {{
    haproxy
    member
  }}
}}
"""

_DROP_IN = """\
[Unit]
After=haproxy.service
StartLimitIntervalSec=0

[Service]
# Whoever comes back from the dead asks the cluster first whether it still belongs to it.
ExecStartPre={check} start {who}
# A process that was killed would leave the address behind, while another machine takes it too.
ExecStopPost=-/usr/bin/env ip address del {vip}/32 dev {interface}
Restart=always
RestartSec=2
"""


def holder(plan: Plan, node: Node) -> str:
    """keepalived.conf of one of those that can hold it.

    With a single one its peer is itself: from a list without anybody keepalived falls back to
    multicast, and the step to a second master would take the address away for seconds.
    """
    vip = _wanted(plan)
    return _FRAME.format(
        vip=vip.address,
        cluster=plan.spec.cluster.name,
        node=node.name,
        who=_who(node),
        check=CHECK,
        fall=FALL,
        instance=plan.spec.cluster.name,
        interface=vip.interface,
        router_id=vip.router_id,
        priority=priority(node.address),
        advert=ADVERT_S,
        address=node.address,
        peers="\n".join(f"    {address}" for address in peers(plan, node) or ["127.0.0.1"]),
        password=VRRP_FILE,
    )


def drop_in(plan: Plan, node: Node) -> str:
    """What keepalived's own unit lacks."""
    vip = _wanted(plan)
    door = f" {vip.address}:{vip.port}" if node.is_load_balancer else ""
    return _DROP_IN.format(
        check=CHECK, who=f"{_who(node)}{door}", vip=vip.address, interface=vip.interface
    )


def peers(plan: Plan, node: Node) -> list[str]:
    """Addresses of the others that can hold it.

    Load balancers tell masters too: where their pool leaves the config, masters stand by before it
    gives the address up, and take it at its last word.
    """
    listening = plan.masters if node.is_load_balancer else ()
    others = [other for other in plan.holders if other.name != node.name]
    return [other.address for other in (*others, *listening)]


def _who(node: Node) -> str:
    """By what the cluster knows the machine: its Node, or its entry in the list of holders."""
    return f"{node.name} {node.generation}" if node.is_load_balancer else node.name


def priority(address: str) -> int:
    """VRRP priority of a machine, 100 to 249, by its address alone.

    So who comes and goes changes that of no other. Neighbours differ by 13 at least, which is 50 ms
    of waiting: two that miss the holder at the same moment do not both take over. Equal ones are
    told apart by their addresses (RFC 3768 6.4).
    """
    return 100 + int(IPv4Address(address)) * 13 % 150


def _wanted(plan: Plan) -> VipSpec:
    vip = plan.spec.front_doors.vip
    if vip is None:
        msg = "the config has no frontDoors.vip"
        raise ValueError(msg)
    return vip
