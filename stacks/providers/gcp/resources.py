"""What there is of a cluster on Google Cloud, as plain data: by name, what it is made of.

Not what Google is sent: enough to see, without an engine, what comes, changes and goes.
"""

from __future__ import annotations

from collections.abc import Iterator

from stacks.config.clouds import GcpSpec
from stacks.providers import cloud
from stacks.providers.site import Machine, Part, Site, dns_zone


def resources(site: Site) -> Iterator[Part]:
    """Everything around the machines of a cluster, then they."""
    said = site.spec.machines.gcp
    if said is not None:
        yield from _around(site, said)
        for machine in site.machines:
            yield from _machine(site, said, machine)


def _around(site: Site, said: GcpSpec) -> Iterator[Part]:
    network, subnet = said.network or "made", said.subnetwork or ("made", said.cidr)
    labels = tuple(said.labels.items())
    yield "gcp", "account", ()
    if said.network is None:
        yield "network", "network", ()
    if said.subnetwork is None:
        yield "subnet", "network", (network, said.cidr)
        if said.access != "public":
            yield "router", "network", network
            yield "nat", "network", ()
    for rule in site.rules:
        yield f"{rule.name}-let-in", "firewall", (rule, network)
    yield "account", "account", ()
    for role in said.service_account_roles:
        yield f"account-{cloud.role_name(role)}", "account", role
    if said.access != "public":
        name = cloud.bastion_name(said)
        yield name, "bastion", (said.bastion_machine_type, labels)
        if said.access != "tunnel":
            yield f"{name}-address", "bastion", labels
    if site.balancer != "none":
        yield from _balancer(site, (network, subnet), labels)
    yield from dns_zone(site, (network, labels))


def _balancer(site: Site, where: tuple[object, object], labels: object) -> Iterator[Part]:
    kind, zones = site.balancer, site.zones_of_masters
    for zone in zones:
        yield f"masters-{zone}", "load balancer", where[0]
    yield f"api-{kind}-check", "load balancer", ()
    yield f"api-{kind}-service", "load balancer", zones
    yield f"api-{kind}", "load balancer", (labels, where if kind == "internal" else ())
    if kind == "external":
        yield "api-external-address", "load balancer", labels


def _machine(site: Site, said: GcpSpec, machine: Machine) -> Iterator[Part]:
    labels, name = tuple(said.labels.items()), machine.name
    protected = machine.is_etcd and said.deletion_protection
    yield f"{name}-machine", "machines", (labels, protected, machine.groups)
    if machine.is_etcd:
        yield f"{name}-etcd-disk", "machines", (machine.etcd_disk_gib, labels)
    if said.access == "public":
        yield f"{name}-address", "machines", labels
    if machine.is_master and site.balancer != "none":
        yield f"{name}-balanced", "load balancer", ()
