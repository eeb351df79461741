"""What the clouds have in common: names, networks in reach, checks that each of them makes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Network

from stacks.config.clouds import CloudSpec
from stacks.config.fields import Role
from stacks.config.machines import MachinesSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers.resources import Value
from stacks.providers.site import Balancer, Group, Site

USER = "ops"  # made by cloud-init; may sudo
DATA = "/var/lib/kube-ha"  # where the disk of machines with etcd is mounted
LOCAL = "127.0.0.1"  # where a tunnel to the bastion begins
FIRST_OFFSET = 6  # addresses below are the provider's, the bastion's and the load balancer's
BASTION_OFFSET, BALANCER_OFFSET = 4, 5
NOWHERE = IPv4Network("198.18.0.0/15")  # kept for benchmarks (RFC 2544); the config names none
SSH_PORT = 22


def idle(spec: Spec, *, filters: bool = True) -> Iterator[Problem]:
    """Settings of machines that are not made in a cloud.

    `filters`: the cloud keeps machines from each other, so they need no firewall of their own.
    """
    machines = spec.machines
    usual = MachinesSpec(provider="lab")
    given = {
        "machines.lab": machines.lab != usual.lab,
        "machines.ssh": machines.ssh != usual.ssh,
        "machines.onRelease": machines.on_release != usual.on_release,
        "machines.containers": machines.containers,
    }
    text = f"does nothing on {machines.provider}, where machines and keys are made; leave it out"
    for path, said in given.items():
        if said:
            yield Problem(path, text)
    if machines.firewall is not None and filters:
        text = f"is for machines in no cloud; {machines.provider} has rules, which the stack makes"
        yield Problem("machines.firewall", f"{text}: leave it out")


def same_names(path: str, entries: Sequence[str], name: Callable[[str], str]) -> Iterator[Problem]:
    """Entries of a list that become resources of one name, which the engine refuses halfway."""
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        earlier = first.setdefault(name(entry), index)
        if earlier != index:
            same = f"has the last word of {path}[{earlier}], by which its resource is named"
            text = "is there twice" if entry == entries[earlier] else same
            yield Problem(f"{path}[{index}]", f"{entry} {text}; leave one out")


def too_little(roles: Collection[Role]) -> str:
    """Why a machine of 1 GiB of memory or less does not do; empty: it does, for it has no role."""
    if not roles:
        return ""
    what = "an API server and etcd" if "master" in roles else "a node"
    return f"has 1 GiB of memory or less, too little for {what}; take a bigger one"


def policy_name(arn: str) -> str:
    """What a policy of the machines' role is called in the name of its resource."""
    return arn.rpartition("/")[2].lower()


def role_name(role: str) -> str:
    """The same of a role of the machines' service account."""
    return role.rpartition("/")[2].lower().replace(".", "-")


def subject(account: str) -> str:
    """Whom tokens of a service account, `namespace/name`, are about."""
    namespace, _, name = account.partition("/")
    return f"system:serviceaccount:{namespace}:{name}"


def pods_of(account: str) -> str:
    """Name of what is made for its pods: no other name has a slash, and no namespace a dot."""
    return f"pods/{account.replace('/', '.')}"


def bastion_name(cloud: CloudSpec) -> str:
    """What the bastion is called behind the cluster's name.

    That of a tunnel is another machine: a change of access makes it before the old one goes.
    """
    return "tunnel" if cloud.access == "tunnel" else "bastion"


def api_clients(cloud: CloudSpec) -> tuple[str, ...]:
    """Networks outside from which the API is let in."""
    return cloud.api_from or cloud.ssh_from


def balancer_clients(cloud: CloudSpec, kind: Balancer) -> tuple[Group, ...]:
    """Of machines, who may come to a load balancer that has a group of its own.

    An internal one is reached from its network alone: one of the masters asks it before the API's
    name leads there, and people come by the bastion.
    """
    if kind != "internal":
        return ()
    return ("node",) if cloud.access == "public" else ("bastion", "node")


def zones(spec: Spec, known: Collection[str] | None) -> tuple[str, ...]:
    """Zones that machines may be made in, sorted; `known`: those that can be, None: all."""
    named = {zone for pool in spec.pools.values() for zone in pool.zones}
    named |= {node.zone for node in spec.nodes.values() if node.zone}
    return tuple(sorted(named if known is None else named & set(known)))


def short_name(cluster: str, what: str, *, limit: int) -> str:
    """`<cluster>-<what>`, cut to `limit` characters; what is cut still makes a difference."""
    name = f"{cluster}-{what}"
    if len(name) <= limit:
        return name
    mark = hashlib.sha256(cluster.encode()).hexdigest()[:6]
    return f"{cluster[: limit - len(what) - 8].rstrip('-')}-{mark}-{what}"


def zone_name(cluster: str, domain: str) -> str:
    """Name of a DNS zone at Google, of at most 63 characters: one of its own for each domain."""
    return short_name(cluster, f"zone-{hashlib.sha256(domain.encode()).hexdigest()[:6]}", limit=63)


def leads(site: Site, balancer: Value, addresses: Mapping[str, Value]) -> tuple[Value, ...]:
    """Where the API's name leads, whether the stack makes its record or not.

    `balancer`: address of an external load balancer, `addresses`: by which machines are reached.
    """
    if balancer is not None:
        return (balancer,)
    return site.api_addresses or tuple(addresses[name] for name in site.masters)
