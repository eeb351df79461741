"""/etc/haproxy/haproxy.cfg: the door to the API that every node has of its own."""

from __future__ import annotations

from stacks.plan import API_PORT, LOCAL_API_PORT, Plan

_FRAME = """\
# The Kubernetes API of {cluster} at 127.0.0.1:{port}: one file for all nodes.
global
  log stderr format short daemon notice
  user haproxy
  group haproxy
  chroot /var/lib/haproxy
  stats socket /run/haproxy/admin.sock mode 600 level admin
  maxconn 4000
  hard-stop-after 1h  # a reload leaves old connections alone, but not for ever

defaults
  mode tcp
  log global
  maxconn 4000
  timeout connect 2s
  timeout check 3s
  timeout client 24h  # watches and exec sessions are silent for hours
  timeout server 24h
  retries 3
  option redispatch 1  # every retry asks another master
  option srvtcpka
  srvtcpka-idle 10s
  srvtcpka-intvl 5s
  srvtcpka-cnt 3

listen kubernetes-api
  bind 127.0.0.1:{port}
  balance random  # by turns, the first connection of all nodes would go to the first master
  option httpchk
  http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host kubernetes
  http-check expect status 200
  default-server check-ssl ca-file /etc/kube-ha/ca.crt verify required verifyhost kubernetes \
inter 2s fastinter 1s fall 2 rise 2
{checked}
  # Not checked: should all checks fail (an expired CA, a wrong clock), the API stays reachable.
  option allbackups
{unchecked}
"""


def local_api(plan: Plan) -> str:
    """The API of all masters at 127.0.0.1:3446, on every node the same.

    tcp-ut is on each server line because HAProxy ignores it in default-server; it cuts sessions
    to a master that vanished after 20 s. Sessions of a master whose check fails are left alone:
    a draining API server still answers what it has accepted.
    """
    servers = [(node.name, f"{node.address}:{API_PORT}") for node in plan.masters]
    return _FRAME.format(
        cluster=plan.spec.cluster.name,
        port=LOCAL_API_PORT,
        checked="\n".join(f"  server {name} {at} check tcp-ut 20s" for name, at in servers),
        unchecked="\n".join(
            f"  server {name}-unchecked {at} backup tcp-ut 20s" for name, at in servers
        ),
    )
