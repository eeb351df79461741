"""What a stack gives to people and to other programs."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi import Input, Output
from pulumi_command import remote

from components import last_applied
from components.cluster import Cluster, ClusterArgs
from components.machines.api_door import ApiDoor
from components.pki.authority import Pki
from stacks.cluster import rotation
from stacks.cluster.certificates import ETCD_DOOR, administrator
from stacks.cluster.plan import API_ADDRESS, Plan
from stacks.config.network import CHECK_TIMEOUT_S, CHECKS_TO_FALL
from stacks.config.ports import API_PORT, ETCD_CLIENT_PORT
from stacks.edits import memory
from stacks.render import kubeconfig


def export(cluster: Cluster, args: ClusterArgs, before: Mapping[str, object] | None) -> None:
    """Stack outputs: kubeconfig, ssh, backupKey (all secret), etcdClient (secret too), endpoint,
    loadBalancer, dnsRecords, nodes, readme, and applied; once the seed was replaced, backupKeys by
    its generation.

    `applied` is the memory, that of `before` as long as the gate has not passed; `ssh` tells how
    machines are reached, `clusterId` what they are marked with.
    """
    plan = args.plan
    pulumi.export("kubeconfig", kubeconfig_of(args))
    pulumi.export("readme", readme(plan))
    pulumi.export("endpoint", endpoint_of(args))
    pulumi.export("loadBalancer", load_balancer(plan))
    pulumi.export("dnsRecords", dns_records(plan, cluster.door))
    pulumi.export("clusterId", args.pki.cluster_id)
    # Opens snapshots of etcd where no machine of the cluster is left.
    pulumi.export("backupKey", Output.secret(args.pki.backup_key()))
    if rotation.has_begun(plan.spec.pki.rotation.seed):
        pulumi.export("backupKeys", Output.secret(args.pki.backup_keys()))
    if plan.spec.front_doors.etcd:
        pulumi.export("etcdClient", Output.secret(_etcd_client(args.pki, plan)))
    pulumi.export("nodes", nodes(plan))
    pulumi.export(last_applied.SSH, Output.secret(_ssh(cluster)))
    pulumi.export(last_applied.OUTPUT, applied(cluster, args, before))


def applied(
    cluster: Cluster, args: ClusterArgs, before: Mapping[str, object] | None
) -> Output[str | None]:
    """The memory of this plan, that of `before` as long as the gate has not passed; secret."""
    known = memory.of(args.plan, args.before)
    wanted = args.pki.endings().apply(lambda found: {**known, memory.ENDINGS: found})
    return last_applied.remember(wanted, cluster.proved, before)


def readme(plan: Plan) -> str:
    """Markdown about this cluster, for whoever finds the stack."""
    rows = [
        f"| {node.name} | {', '.join(node.roles)} | {node.address} | {node.pool} |"
        for node in plan.nodes
    ]
    versions = plan.versions
    return "\n".join(
        [
            f"# Cluster {plan.spec.cluster.name}",
            "",
            f"Kubernetes {versions.kubernetes}, etcd {versions.etcd}, containerd "
            f"{versions.containerd}. The API is at {_where(plan)}.",
            "",
            "| node | roles | address | pool |",
            "|---|---|---|---|",
            *rows,
            "",
            "`pulumi stack output kubeconfig --show-secrets` gives an administrator's kubeconfig, "
            "with a context for each way to the API. Every change is an edit of this stack's "
            "config, then `pulumi preview --diff` and `pulumi up`.",
            "",
        ]
    )


def endpoint_of(args: ClusterArgs) -> Input[str]:
    """URL of the API for clients outside; an output where only an update knows the address."""
    if args.plan.is_at_balancer and args.api_address is not None:
        return Output.concat("https://", args.api_address, f":{API_PORT}")
    return f"https://{args.plan.endpoint}"


def _where(plan: Plan) -> str:
    at_balancer = f"the address in output `{API_ADDRESS}`, port {API_PORT}"
    return at_balancer if plan.is_at_balancer else f"https://{plan.endpoint}"


def dns_records(plan: Plan, door: ApiDoor | None) -> list[dict[str, object]]:
    """Records of the API's name, which the user makes, or the stack; none where nobody looks."""
    if plan.spec.front_doors.dns == "none":
        return []
    name = plan.endpoint.rpartition(":")[0]
    values: object = Output.all(*door.addresses) if door else list(plan.door_addresses)
    return [{"name": name, "type": "ALIAS" if door and door.alias else "A", "values": values}]


def load_balancer(plan: Plan) -> dict[str, object]:
    """What a load balancer of the user's has to know: TCP to these, TLS is not ended there.

    Milliseconds and counts are those of our own HAProxy: with them it notices a master that ends
    while that one still answers.
    """
    said = plan.spec.load_balancing
    return {
        "protocol": "tcp",
        "backends": [
            {"name": node.name, "address": node.address, "port": API_PORT} for node in plan.masters
        ],
        "healthCheck": {
            "protocol": "https",
            "path": "/readyz",
            "port": API_PORT,
            "status": 200,
            "intervalMs": said.check_interval_ms,
            "timeoutMs": 1000 * CHECK_TIMEOUT_S,
            "fall": CHECKS_TO_FALL,
            "rise": 2,
        },
        "idleTimeoutHours": said.idle_timeout_h,
    }


def nodes(plan: Plan) -> dict[str, dict[str, object]]:
    """Roles, address and versions by node name."""
    return {
        node.name: {
            "roles": list(node.roles),
            "address": node.address,
            "versions": ({"kubernetes": plan.versions.kubernetes} if node.in_kubernetes else {})
            | ({"etcd": plan.versions.etcd} if node.is_etcd else {}),
        }
        for node in plan.nodes
    }


def _etcd_client(pki: Pki, plan: Plan) -> Output[dict[str, str]]:
    """What a program on one of the chosen nodes needs: endpoint, and PEM texts."""
    leaf, door = pki.leafs[ETCD_DOOR.name], plan.spec.front_doors.etcd
    return Output.all(
        endpoint=f"https://127.0.0.1:{door.port if door else ETCD_CLIENT_PORT}",
        ca=pki.bundle("etcd"),
        certificate=leaf.cert,
        key=leaf.key,
    )


def kubeconfig_of(args: ClusterArgs) -> Output[str]:
    """An administrator's, with a context for each way to the API; secret."""
    pki, plan = args.pki, args.plan
    admin = pki.leafs[administrator(plan).name]
    at = args.api_address if plan.is_at_balancer else None
    known = Output.all(ca=pki.bundle("kubernetes"), cert=admin.cert, key=admin.key, at=at)
    return Output.secret(
        known.apply(
            lambda of: kubeconfig.admin(plan, of["ca"], of["cert"], of["key"], balancer=of["at"])
        )
    )


def _ssh(cluster: Cluster) -> Output[dict[str, dict[str, object]]]:
    """By node name: host, port, user, privateKey, hostKey, as the commands use them.

    With a jump host before it, the same of that one as `bastion`.
    """
    known = {}
    for name, machine in cluster.machines.items():
        facts = _hop(machine.connection)
        jump = machine.connection.proxy
        # A mapping in its place comes from no provider of machines here.
        if isinstance(jump, remote.ProxyConnectionArgs):
            facts["bastion"] = Output.all(**_hop(jump))
        known[name] = Output.all(**facts)
    return Output.all(**known)


def _hop(
    connection: remote.ConnectionArgs | remote.ProxyConnectionArgs,
) -> dict[str, Input[object]]:
    return {
        "host": connection.host,
        "port": connection.port,
        "user": connection.user,
        "privateKey": connection.private_key,
        "hostKey": connection.host_key,
    }
