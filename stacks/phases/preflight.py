"""What phase `preflight` is told: what a machine has to be and to reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from stacks.catalogue import registry as catalogue
from stacks.cluster import clouds
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Node, Plan
from stacks.config import ports
from stacks.networks import registry
from stacks.phases import downloads
from stacks.providers.cloud import DATA
from stacks.render import ingress


def preflight(
    plan: Plan, node: Node, files: Mapping[str, File], *, settled: Collection[str] = ()
) -> dict[str, str]:
    """Values of the preflight phase; `make preflight` runs it with the same ones.

    `settled`: nodes of a cluster that lives. One of them may be down while others join.
    """
    first = "kubelet" if node.in_kubernetes else "etcd"
    # Nothing is fetched to a load balancer but packages.
    sources = [] if node.is_load_balancer else [files[first].url]
    if plan.mirror and node.in_kubernetes:
        sources.append(f"{plan.mirror.registry}/v2/")
    peers, enough = _peers(plan, node, settled)
    vip, modules = plan.spec.front_doors.vip, registry.backend(plan.spec).modules
    known = registry.of(plan.spec).FILESYSTEMS
    more = [name for name in modules if name != "vxlan"]
    return {
        "ROLES": " ".join(node.roles),
        "ADDRESS": node.address,
        "ARCH": node.arch,
        "PORTS": " ".join(str(port) for port in sorted(_ports(plan, node))),
        "PEERS": " ".join(peers),
        **({"PEERS_ENOUGH": str(enough)} if enough else {}),
        "SOURCES": " ".join(sources),
        "VXLAN": "1" if "vxlan" in modules else "",
        **({"MODULES": " ".join(more)} if more and node.in_kubernetes else {}),
        **({"FILESYSTEMS": " ".join(known)} if known and node.in_kubernetes else {}),
        "MTU": _mtu(plan) if node.in_kubernetes else "",
        **({"VIP_INTERFACE": vip.interface} if vip and node in plan.holders else {}),
        "MIN_CPUS": "2" if node.is_master else "1",
        "MIN_MEMORY_MIB": "1700" if node.is_master else "900" if node.in_kubernetes else "400",
        "MIN_DISK_GIB": "8" if node.in_kubernetes else "4",
        **({"MOUNT": DATA} if clouds.in_cloud(plan.spec) and node.is_etcd else {}),
        **downloads.proxy(plan),
    }


def _peers(plan: Plan, node: Node, settled: Collection[str]) -> tuple[list[str], int]:
    """Whom the machine has to reach, and how many of them will do; 0: all.

    Everybody dials masters and members; nobody has to reach all workers. A load balancer may stand
    where nothing of the cluster is to be reached but the API. Where there is none yet nothing
    listens but the SSH server.
    """
    masters = [other for other in plan.masters if not other.is_absent]
    if node.is_load_balancer:
        peers = [f"{other.address}:{ports.API_PORT}" for other in masters]
        return peers, len(peers) // 2 + 1 if settled else 0
    doors = [(other, ports.API_PORT) for other in masters]
    if node.is_etcd:
        doors += [(o, ports.ETCD_PEER_PORT) for o in plan.etcd if not o.is_absent]
    there = [f"{other.address}:{port}" for other, port in doors if other.name in settled]
    if there:
        return there, len(there) // 2 + 1
    known = {other.name: other for other in (*plan.masters, *plan.etcd) if other.name != node.name}
    others = sorted(known.values(), key=lambda one: (one.pool, one.ordinal, one.name))
    peers = [f"{one.address}:{one.ssh.port if one.ssh else 22}" for one in others]
    # Where SSH goes another way its server need not listen here: who refuses has been reached.
    is_apart = any(one.ssh and one.ssh.address != one.address for one in others)
    return peers, len(peers) if is_apart else 0


def _ports(plan: Plan, node: Node) -> set[int]:
    vip = plan.spec.front_doors.vip
    etcd = plan.spec.front_doors.etcd
    return {
        *ports.of_roles(node.roles),
        *registry.local_ports(plan.spec, node.roles),
        *catalogue.local_ports(plan.spec, node.roles),
        *([vip.port] if vip and plan.listens(node) else []),
        *((ingress.HTTP_PORT, ingress.HTTPS_PORT) if node in plan.ingress else ()),
        *([etcd.port] if etcd and node.pool in etcd.pools else []),
    }


def _mtu(plan: Plan) -> str:
    """What an interface has to take for the packets of pods, in bytes; empty: any will do."""
    mtu = plan.spec.network.mtu
    return "" if mtu is None else str(mtu + registry.backend(plan.spec).overhead)
