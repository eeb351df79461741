"""The network of machines on Hetzner Cloud, and who is let in from outside of it."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.providers.hcloud.scope import Scope, number
from stacks.providers.resources import Ref, Resource, Value
from stacks.providers.site import Group, Machine, Rule

SUBNET = Ref("subnet")
# Groups that anybody outside may reach. A firewall sees what comes by the public interface, and
# nothing of the private network, so rules between groups of machines have nothing to be said to.
_GROUPS: tuple[Group, ...] = ("machine", "master", "node")


def network(scope: Scope) -> Iterator[Resource]:
    """A private network with one subnet, in which all locations of the network zone are."""
    said = scope.said
    yield Resource("network", "network", "hcloud.Network").of(
        name=scope.site.cluster, ip_range=said.cidr, labels=scope.labels
    )
    yield Resource(SUBNET.name, "network", "hcloud.NetworkSubnet").of(
        network_id=number("network"),
        type="cloud",
        network_zone=said.network_zone,
        ip_range=said.cidr,
    )


def firewalls(scope: Scope) -> Iterator[Resource]:
    """One of each group, also where it lets in nobody: it comes to no machine that is there."""
    for group in _GROUPS:
        rules = [_let_in(rule) for rule in scope.site.rules if rule.to == group and rule.ranges]
        yield Resource(_firewall(group), "firewall", "hcloud.Firewall").of(
            name=scope.called(group), rules=rules, labels=scope.labels
        )


def firewalls_of(machine: Machine) -> list[Value]:
    """Numbers of those that a machine is behind: what none of them lets in is dropped."""
    return [number(_firewall(group)) for group in _GROUPS if group in machine.groups]


def _firewall(group: Group) -> str:
    return f"{group}-doors"


def _let_in(rule: Rule) -> dict[str, Value]:
    first, last = rule.ports or (1, 65535)
    return {
        "direction": "in",
        "protocol": rule.protocol,
        "port": str(first) if first == last else f"{first}-{last}",
        "source_ips": rule.ranges,
        "description": rule.name,
    }
