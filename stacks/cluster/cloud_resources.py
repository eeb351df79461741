"""What a plan has in a cloud, as plain data: by name, its group and what it is made of.

Not what the provider is sent: enough to see, without an engine, what comes, changes and goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from stacks.cluster import api_record, cloud_machines, clouds, firewall
from stacks.cluster.plan import Node, Plan
from stacks.config.clouds import AwsSpec, GcpSpec

Group = Literal[
    "network", "firewall", "load balancer", "account", "bastion", "machines", "DNS zone"
]
Part = tuple[str, Group, object]  # name behind the cluster's, group, what it is made of


def of_plan(plan: Plan, nodes: Iterable[str]) -> dict[str, tuple[Group, object]]:
    """Of the plan, and of these of its nodes. Empty where machines are made in no cloud."""
    aws, gcp = plan.spec.machines.aws, plan.spec.machines.gcp
    names = set(nodes)
    kept = [node for node in plan.nodes if node.name in names]
    parts: list[Part] = []
    if plan.spec.machines.provider == "aws" and aws is not None:
        parts = [
            *_aws_around(plan, aws),
            *(part for node in kept for part in _aws_machine(plan, aws, node)),
        ]
    elif plan.spec.machines.provider == "gcp" and gcp is not None:
        parts = [
            *_gcp_around(plan, gcp),
            *(part for node in kept for part in _gcp_machine(plan, gcp, node)),
        ]
    return {name: (group, made_of) for name, group, made_of in parts}


def _aws_around(plan: Plan, said: AwsSpec) -> Iterator[Part]:
    tags, vpc = tuple(said.labels.items()), said.vpc_id or ("made", said.cidr)
    zones = clouds.zones(plan.spec)
    if said.vpc_id is None:
        yield from _aws_network(said, zones, tags)
    bastion = ("bastion",) if said.access != "public" else ()
    for group in ("machine", "control", "etcd", "master", "node", *bastion):
        yield f"{group}-doors", "firewall", (vpc, tags)
    for name, made_of in _aws_rules(plan):
        yield name, "firewall", (made_of, vpc, tags)
    for group in ("machine", *bastion):
        yield f"{group}-out", "firewall", (vpc, tags)
    yield from _aws_account("nodes", said.policies, tags)
    yield "etcd-apart", "account", tags
    if bastion:
        yield from _aws_bastion(plan, said, vpc, tags)
    if plan.balancer != "none":
        yield from _aws_balancer(plan, said, vpc, tags)
    yield from _zone(plan, (vpc, tags))


def _aws_network(said: AwsSpec, zones: tuple[str, ...], tags: object) -> Iterator[Part]:
    for name in ("vpc", "internet", "public-routes"):
        yield name, "network", (said.cidr, tags)
    yield "public-route", "network", said.cidr
    for zone in zones:
        subnet = said.subnets[zone]
        made = (said.cidr, subnet.cidr)
        yield f"subnet-{zone}", "network", (made, tags)
        if subnet.public_cidr is not None:
            public = (said.cidr, subnet.public_cidr)
            yield f"public-{zone}", "network", (public, tags)
            yield f"public-{zone}-routed", "network", public
        if said.access == "public":
            yield f"subnet-{zone}-routed", "network", (made, "public")
            continue
        yield f"nat-{zone}-address", "network", tags
        yield f"nat-{zone}", "network", (said.cidr, subnet.public_cidr, tags)
        yield f"subnet-{zone}-routes", "network", (said.cidr, tags)
        yield f"subnet-{zone}-routed", "network", (made, "inside")
        yield f"subnet-{zone}-route", "network", (said.cidr, subnet.public_cidr)


def _aws_rules(plan: Plan) -> Iterator[tuple[str, object]]:
    for rule in firewall.rules(plan):
        made_of = (rule.protocol, rule.ports, rule.to)
        for group in rule.groups:
            yield f"{rule.name}-from-{group}", made_of
        for text in rule.ranges:
            yield f"{rule.name}-from-{_word(text)}", made_of


def _aws_account(whose: str, policies: Iterable[str], tags: object) -> Iterator[Part]:
    yield f"{whose}-role", "account", tags
    yield f"{whose}-profile", "account", tags
    for policy in policies:
        yield f"{whose}-{policy.rpartition('/')[2].lower()}", "account", policy


def _aws_bastion(plan: Plan, said: AwsSpec, vpc: object, tags: object) -> Iterator[Part]:
    name = clouds.bastion_name(said)
    yield name, "bastion", (vpc, tags)
    if said.access == "tunnel":
        arn = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
        yield from _aws_account(name, (arn,), tags)
    else:
        yield f"{name}-address", "bastion", tags


def _aws_balancer(plan: Plan, said: AwsSpec, vpc: object, tags: object) -> Iterator[Part]:
    kind, zones = plan.balancer, clouds.zones(plan.spec)
    stands = [
        (
            said.subnets[z].cidr,
            said.subnets[z].public_cidr,
            said.subnets[z].id,
            said.subnets[z].public_id,
        )
        for z in zones
    ]
    inner = stands if kind == "external" else [(one[0], one[2]) for one in stands]
    made_of = (kind, vpc, inner, tags)
    yield f"api-{kind}", "load balancer", made_of
    yield f"api-{kind}-listener", "load balancer", (kind, vpc, tags)
    yield f"api-{kind}-targets", "load balancer", (kind, vpc, tags)
    if kind == "external":
        for zone in zones:
            yield f"api-{zone}-address", "load balancer", tags
    yield "balancer-doors", "firewall", (vpc, tags)
    yield "balancer-out", "firewall", (vpc, tags)
    yield "api-from-balancer", "firewall", (vpc, tags)
    for text in clouds.api_clients(said):
        yield f"balancer-from-{_word(text)}", "firewall", (vpc, tags)
    if api_record.zone(plan.spec) is not None and kind == "internal":
        yield "balancer-from-masters", "firewall", (vpc, tags)


def _aws_machine(plan: Plan, said: AwsSpec, node: Node) -> Iterator[Part]:
    tags, vpc = tuple(said.labels.items()), said.vpc_id or ("made", said.cidr)
    protected = node.is_etcd and said.deletion_protection
    groups = firewall.groups(node.roles)
    yield f"{node.name}-machine", "machines", (tags, vpc, protected, groups)
    if cloud_machines.hardware(plan, node).etcd_disk_gib is not None:
        yield f"{node.name}-etcd-disk", "machines", tags
        yield f"{node.name}-etcd-disk-attached", "machines", ()
    if said.access == "public":
        yield f"{node.name}-machine-address", "machines", tags
    if node.is_master and plan.balancer != "none":
        yield f"{node.name}-balanced-{plan.balancer}", "load balancer", vpc


def _gcp_around(plan: Plan, said: GcpSpec) -> Iterator[Part]:
    network, subnet = said.network or "made", said.subnetwork or ("made", said.cidr)
    labels = tuple(said.labels.items())
    if said.network is None:
        yield "network", "network", ()
    if said.subnetwork is None:
        yield "subnet", "network", (network, said.cidr)
        if said.access != "public":
            yield "router", "network", network
            yield "nat", "network", ()
    checks = ("asked",) if plan.balancer != "none" else ()
    for rule in firewall.rules(plan, health_checks=checks):
        kind = plan.balancer if rule.name == "api-health" else ""
        yield f"{rule.name}-let-in", "firewall", (rule, network, kind)
    yield "account", "account", ()
    for role in said.service_account_roles:
        yield f"account-{role.rpartition('/')[2].lower().replace('.', '-')}", "account", role
    if said.access != "public":
        name = clouds.bastion_name(said)
        yield name, "bastion", labels
        if said.access != "tunnel":
            yield f"{name}-address", "bastion", labels
    if plan.balancer != "none":
        yield from _gcp_balancer(plan, (network, subnet), labels)
    yield from _zone(plan, (network, labels))


def _gcp_balancer(plan: Plan, where: tuple[object, object], labels: object) -> Iterator[Part]:
    kind, zones = plan.balancer, sorted({node.zone for node in plan.masters if node.zone})
    for zone in zones:
        yield f"masters-{zone}", "load balancer", where[0]
    yield f"api-{kind}-check", "load balancer", ()
    yield f"api-{kind}-service", "load balancer", zones
    yield f"api-{kind}", "load balancer", (labels, where if kind == "internal" else ())
    if kind == "external":
        yield "api-external-address", "load balancer", labels


def _gcp_machine(plan: Plan, said: GcpSpec, node: Node) -> Iterator[Part]:
    labels = tuple(said.labels.items())
    protected = node.is_etcd and said.deletion_protection
    yield f"{node.name}-machine", "machines", (labels, protected, firewall.groups(node.roles))
    if cloud_machines.hardware(plan, node).etcd_disk_gib is not None:
        yield f"{node.name}-etcd-disk", "machines", labels
    if said.access == "public":
        yield f"{node.name}-address", "machines", labels
    if node.is_master and plan.balancer != "none":
        yield f"{node.name}-balanced", "load balancer", ()


def _zone(plan: Plan, where: object) -> Iterator[Part]:
    said = api_record.zone(plan.spec)
    if said is not None and not said.id:
        yield f"zone-{said.domain.replace('.', '-')}", "DNS zone", where


def _word(cidr: str) -> str:
    return cidr.replace(".", "-").replace("/", "-")
