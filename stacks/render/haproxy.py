"""/etc/haproxy/haproxy.cfg: the door to the API that every node has of its own."""

from __future__ import annotations

from stacks.cluster.plan import Node, Plan
from stacks.config.network import CHECK_TIMEOUT_S, CHECKS_TO_FALL
from stacks.config.ports import API_PORT, ETCD_CLIENT_PORT, LOCAL_API_PORT
from stacks.config.sizing import SMALLEST

_FAST_INTERVAL_MS = 1000  # between the checks of a master that is about to change sides

# Reasons stand here: the text lies in the state twice, for every node.
# balance random: by turns, the first connection of all nodes would go to the first master.
# allbackups, of servers that are not checked: should all checks fail (an expired CA, a wrong
# clock), the API stays reachable.
# use-server: on a master its own API server comes first, so that its kubelet asks none that is
# older than itself while versions roll; once a check of it or a connection to it fails, others
# answer. At the VIP all share the work.
# observe: where checks are far apart, a connection that fails brings the next one forward.
_FRAME = """\
# The Kubernetes API of {cluster} at 127.0.0.1:{port}: {reach}.
global
  log stderr format short daemon notice
  user haproxy
  group haproxy
  chroot /var/lib/haproxy
  stats socket /run/haproxy/admin.sock mode 600 level admin
  maxconn {connections}
  hard-stop-after 1h  # a reload leaves old connections alone, but not for ever

defaults
  mode tcp
  log global
  maxconn {connections}
  timeout connect 2s
  timeout check {timeout}
  timeout client {idle}  # watches and exec sessions are silent for hours
  timeout server {idle}
  retries 3
  option redispatch 1  # every retry asks another master
  option srvtcpka
  srvtcpka-idle 10s
  srvtcpka-intvl 5s
  srvtcpka-cnt 3

listen kubernetes-api
  bind 127.0.0.1:{port}{vip}
  balance random
  option httpchk
  http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host kubernetes
  http-check expect status 200
  default-server check-ssl ca-file /etc/kube-ha/ca.crt verify required verifyhost kubernetes \
inter {interval} fastinter {fast} fall {fall} rise 2{observe}
{own}{checked}
  option allbackups
{unchecked}
"""

_OWN_FIRST = "  use-server {name} if {{ dst 127.0.0.1 }}\n"
_OBSERVE = " observe layer4 error-limit 1 on-error fastinter"

# TLS goes through to the member, with the client's own certificate. A member whose port is closed
# is left, and what was connected to it connects anew.
_ETCD = """
listen etcd
  bind 127.0.0.1:{port}
  balance random
  default-server inter {interval} fastinter {fast} fall {fall} rise 2 \
on-marked-down shutdown-sessions
{members}
"""


def local_api(plan: Plan, node: Node) -> str:
    """The API of all masters at 127.0.0.1:3446; at the VIP too, on machines where it may be.

    One text for all nodes but masters and machines that may have the VIP.

    tcp-ut is on each server line because HAProxy ignores it in default-server; it cuts sessions
    to a master that vanished after 20 s. Sessions of a master whose check fails are left alone:
    a draining API server still answers what it has accepted.
    """
    return _api(plan, node) + _etcd(plan, node)


def _etcd(plan: Plan, node: Node) -> str:
    """Members of etcd at 127.0.0.1, where the config wants that; else empty."""
    wanted, checks = plan.spec.front_doors.etcd, plan.spec.load_balancing
    if wanted is None or node.pool not in wanted.pools:
        return ""
    return _ETCD.format(
        port=wanted.port,
        interval=_duration(checks.check_interval_ms),
        fast=_duration(min(checks.check_interval_ms, _FAST_INTERVAL_MS)),
        fall=CHECKS_TO_FALL,
        members="\n".join(
            f"  server {member.name} {member.address}:{ETCD_CLIENT_PORT} check tcp-ut 20s"
            for member in plan.etcd
        ),
    )


def _api(plan: Plan, node: Node) -> str:
    wanted = plan.spec.load_balancing
    vip = plan.spec.front_doors.vip if plan.listens(node) else None
    own_first = node.is_master and len(plan.masters) > 1
    reach = "its own API server first" if own_first else "one file for all nodes"
    servers = [(node.name, f"{node.address}:{API_PORT}") for node in plan.masters]
    return _FRAME.format(
        cluster=plan.spec.cluster.name,
        port=LOCAL_API_PORT,
        reach="and at the VIP" if vip else reach,
        # transparent: on each of them, whichever has the address just now.
        vip=f"\n  bind {vip.address}:{vip.port} transparent" if vip else "",
        connections=wanted.max_connections,
        idle=f"{wanted.idle_timeout_h}h",
        timeout=f"{CHECK_TIMEOUT_S}s",
        interval=_duration(wanted.check_interval_ms),
        fast=_duration(min(wanted.check_interval_ms, _FAST_INTERVAL_MS)),
        fall=CHECKS_TO_FALL,
        observe="" if plan.spec.sizing.nodes == SMALLEST else _OBSERVE,
        own=_OWN_FIRST.format(name=node.name) if own_first else "",
        checked="\n".join(f"  server {name} {at} check tcp-ut 20s" for name, at in servers),
        unchecked="\n".join(
            f"  server {name}-unchecked {at} backup tcp-ut 20s" for name, at in servers
        ),
    )


def _duration(milliseconds: int) -> str:
    whole = milliseconds % 1000 == 0
    return f"{milliseconds // 1000}s" if whole else f"{milliseconds}ms"
