"""The ingress tier on masters: TLS in front of the cluster's ingress controller."""

from __future__ import annotations

from stacks.cluster.plan import Node, Plan
from stacks.config.front_doors import IngressSpec
from stacks.config.ports import INGRESS_PORTS

CERTIFICATES = "/etc/kube-ha/ingress"  # a folder: HAProxy takes every file in it, by its names
CONFIG = "/etc/haproxy/ingress.cfg"
HTTP_PORT, HTTPS_PORT = INGRESS_PORTS

_FRAME = """\
# TLS for {cluster} at the VIP: to port {node_port} of the nodes with the ingress controller.
global
  log stderr format short daemon notice
  user haproxy
  group haproxy
  chroot /var/lib/haproxy
  stats socket /run/haproxy/ingress.sock mode 600 level admin
  maxconn {connections}
  hard-stop-after 1h
  # As Mozilla's "intermediate" of 2024: TLS 1.2 with forward secrecy, and 1.3.
  ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets
  ssl-default-bind-ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305

defaults
  mode http
  log global
  maxconn {connections}
  timeout http-request 10s
  timeout connect 2s
  timeout check 3s
  timeout client 60s
  timeout server 60s
  timeout tunnel 1h  # websockets
  timeout http-keep-alive 30s
  retries 3
  option redispatch 1  # a retry asks another node

frontend http
  bind {vip}:{http} transparent
  # What issues certificates by HTTP has to be reached without one.
  http-request redirect scheme https code 308 unless {{ path_beg /.well-known/acme-challenge/ }}
  default_backend controller

frontend https
  bind {vip}:{https} transparent ssl crt {certificates}/ alpn h2,http/1.1
  default_backend controller

# Which host and path is whose is the controller's business.
backend controller
  balance leastconn
  retry-on conn-failure empty-response
  http-request disable-l7-retry unless METH_GET  # what changes nothing may be asked of another node
{told}
  default-server inter 2s fastinter 1s fall 2 rise 2{proxy}
{servers}
"""

# This is the edge: no proxy stands before it, so what a client says in their name is a lie that the
# controller would believe. With "_" too: what reads names as CGI does takes it for "-".
_OF_PROXIES = (
    *("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Prefix"),
    *("X-Forwarded-Proto", "X-Forwarded-Scheme", "X-Forwarded-Server", "X-Forwarded-Ssl"),
    *("X-Forwarded-Uri", "X-Original-Forwarded-For", "X-Original-Url", "X-Real-Ip", "X-Scheme"),
)
_TOLD = """\
{deleted}
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Host %[req.hdr(Host)]
  http-request set-header X-Forwarded-Proto https if {{ ssl_fc }}
  http-request set-header X-Forwarded-Proto http if ! {{ ssl_fc }}""".format(
    deleted="\n".join(
        f"  http-request del-header {name}"
        for said in _OF_PROXIES
        for name in dict.fromkeys((said, said.replace("-", "_")))
    )
)

_UNIT = """\
[Unit]
Description=TLS for what runs in the cluster (kube-ha)
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
ExecStart=/usr/sbin/haproxy -Ws -f {config} -p /run/kube-ha-ingress.pid
ExecReload=/usr/sbin/haproxy -Ws -f {config} -c -q
ExecReload=/bin/kill -USR2 $MAINPID
KillMode=mixed
Restart=always
SuccessExitStatus=143

[Install]
WantedBy=multi-user.target
"""


def config(plan: Plan) -> str:
    """HAProxy's file, the same on every master. Certificates lie beside it."""
    wanted, vip = plan.spec.front_doors.ingress, plan.spec.front_doors.vip
    if wanted is None or vip is None:
        msg = "the config has no frontDoors.ingress"
        raise ValueError(msg)
    return _FRAME.format(
        cluster=plan.spec.cluster.name,
        vip=vip.address,
        told=_TOLD,
        http=HTTP_PORT,
        https=HTTPS_PORT,
        certificates=CERTIFICATES,
        connections=plan.spec.load_balancing.max_connections,
        node_port=wanted.node_port,
        proxy=" send-proxy-v2 check-send-proxy" if wanted.proxy_protocol else "",
        servers="\n".join(
            f"  server {node.name} {node.address}:{wanted.node_port} check tcp-ut 20s"
            for node in backends(plan, wanted)
        ),
    )


def backends(plan: Plan, wanted: IngressSpec) -> list[Node]:
    """Nodes that take workload, of the pools that are named, or of all."""
    takers = (node for node in plan.nodes if "worker" in node.roles)
    asked = (node for node in takers if not wanted.pools or node.pool in wanted.pools)
    return sorted(asked, key=lambda node: node.turn)


def unit() -> str:
    """Apart from the API's HAProxy: neither's load, reload or mistake is the other's."""
    return _UNIT.format(config=CONFIG)
