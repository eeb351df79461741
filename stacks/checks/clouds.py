"""Checks of machines made in a cloud: what the provider would refuse, or place badly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from stacks.cluster import clouds
from stacks.config import ports
from stacks.config.clouds import DEFAULT_TUNNEL_PORT, CloudSpec
from stacks.config.fields import PRESENT
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.networks import registry as networks
from stacks.providers import registry
from stacks.providers.cloud import same_names
from stacks.providers.places import Place, offset
from stacks.providers.provider import Cloud, Said

_NAME_LIMIT = 63  # of most names at Google (RFC 1035)
_LONGEST_SUFFIX = len("-etcd-disk")


def problems(spec: Spec, places: Sequence[Place]) -> list[Problem]:
    """Everything about clouds that makes the config unusable."""
    wanted, out = registry.of(spec).NAME, []
    for name in registry.CLOUDS:
        section = getattr(spec.machines, name)
        if section is not None and name != wanted:
            out.append(Problem(f"machines.{name}", f"is for provider {name}; leave it out"))
        if section is None and name == wanted:
            out.append(Problem(f"machines.{name}", f"is missing; provider {name} needs it"))
    cloud = registry.cloud(spec)
    said = cloud.said(spec) if cloud else None
    if cloud is None or said is None:
        return [*out, *_elsewhere(spec)]
    return [
        *out,
        *_access(spec),
        *_lacking(spec),
        *_controller(spec),
        *_pools(spec, cloud, said),
        *_addresses(spec, cloud),
        *_quorum(spec, places),
        *_balancer(spec, places),
        *_hardware(spec, cloud),
        *_bastion(spec, cloud),
        *_labels(spec),
        *_node_rules(spec),
        *_sources(spec),
    ]


def warnings(spec: Spec, places: Sequence[Place]) -> list[Problem]:
    """Kubelets that wait for what nobody brings; what an account may lack."""
    cloud = registry.cloud(spec)
    if cloud is None or clouds.settings(spec) is None:
        return []
    return [*cloud.warnings(spec, places), *_no_controller(spec)]


def _no_controller(spec: Spec) -> list[Problem]:
    if not clouds.has_controller(spec) or spec.addons:
        return []
    text = (
        "is external, and no add-on brings a cloud controller manager: until one runs, new nodes "
        "take no pods, and the gate fails; see addons"
    )
    return [Problem(f"{clouds.path(spec)}.cloudController", text)]


def _controller(spec: Spec) -> Iterator[Problem]:
    cloud = clouds.settings(spec)
    signed = spec.kubelet.serving_certificates != "self-signed"
    if clouds.has_controller(spec) and cloud is not None and cloud.access == "public" and signed:
        text = (
            "is external, and machines have public addresses: kubelets would ask for certificates "
            "for addresses that no config knows; set kubelet.servingCertificates: self-signed, or "
            "take another access, where the cloud has one"
        )
        yield Problem(f"{clouds.path(spec)}.cloudController", text)


def _elsewhere(spec: Spec) -> Iterator[Problem]:
    """Settings of clouds beside machines that are in none."""
    if clouds.in_cloud(spec):
        return
    names = ", ".join(registry.CLOUDS)
    selling = ", ".join(name for name, cloud in registry.CLOUDS.items() if cloud.SPOT)
    for name, pool in spec.pools.items():
        given = {
            "machineType": pool.machine_type,
            "diskGib": pool.disk_gib,
            "etcdDiskGib": pool.etcd_disk_gib,
            "spot": pool.spot or None,
        }
        for key, value in given.items():
            if value is not None:
                of = selling if key == "spot" else names
                yield Problem(f"pools.{name}.{key}", f"is for providers {of}; leave it out")


def _access(spec: Spec) -> Iterator[Problem]:
    cloud, where = clouds.settings(spec), clouds.path(spec)
    if cloud is not None:
        yield from _way_in(cloud, where)
    if networks.backend(spec).needs_layer_2:
        text = "needs one layer 2, which no network of a cloud is; use vxlan"
        yield Problem("network.backend", f"{spec.network.backend} {text}")


def _lacking(spec: Spec) -> Iterator[Problem]:
    """Keys of all clouds that this one does not have."""
    section = clouds.settings(spec)
    if section is None:
        return
    for key, why in section.LACKS.items():
        field = type(section).model_fields[key]
        if why and getattr(section, key) != field.default:
            yield Problem(f"{clouds.path(spec)}.{field.alias}", f"{why}; leave it out")
        for name, pool in spec.pools.items():
            if why and getattr(pool, key, None) is not None:
                yield Problem(f"pools.{name}.{field.alias}", f"{why}; leave it out")


def _way_in(cloud: CloudSpec, where: str) -> Iterator[Problem]:
    if cloud.access == "tunnel" and cloud.api_port == cloud.tunnel_port:
        yield Problem(f"{where}.apiPort", "is tunnelPort too; take another one")
    if cloud.access != "tunnel":
        if not cloud.ssh_from:
            text = "is empty; name the networks that you and the CI system come from"
            yield Problem(f"{where}.sshFrom", text)
        if cloud.tunnel_port != DEFAULT_TUNNEL_PORT:
            text = f"is for access tunnel, and access is {cloud.access}; leave it out"
            yield Problem(f"{where}.tunnelPort", text)
        return
    if cloud.ssh_from:
        text = "lets nobody in: with access tunnel there is no SSH from outside; leave it out"
        yield Problem(f"{where}.sshFrom", text)
    if cloud.api_load_balancer == "external" and not cloud.api_from:
        text = (
            "is missing: without sshFrom nobody would reach the external load balancer; name the "
            "networks that clients come from, and the one that runs pulumi"
        )
        yield Problem(f"{where}.apiFrom", text)


def _pools(spec: Spec, cloud: Cloud, said: Said) -> Iterator[Problem]:
    for name, pool in spec.pools.items():
        if not pool.zones:
            text = f"is missing; name zones of {said.region}, better three of them"
            yield Problem(f"pools.{name}.zones", text)
        longest = f"{spec.cluster.name}-{name}-{pool.count or 1}"
        if len(longest) + _LONGEST_SUFFIX > _NAME_LIMIT:
            text = f"machines would be called {longest}; use a shorter name, of the cluster too"
            yield Problem(f"pools.{name}", text)
        if pool.spot and not cloud.SPOT:
            text = f"is for clouds that sell such machines, and {cloud.NAME} has none; leave it out"
            yield Problem(f"pools.{name}.spot", text)
    named = [(f"pools.{name}.zones", z) for name, pool in spec.pools.items() for z in pool.zones]
    named += [(f"nodes.{name}.zone", node.zone) for name, node in spec.nodes.items() if node.zone]
    (form, example), known = cloud.zone_form(said.region), cloud.zones(spec)
    for path, zone in named:
        if not re.fullmatch(form, zone):
            text = f"{zone} is not a zone of region {said.region}; write it as"
            yield Problem(path, f"{text} {example!r}")
        elif known is not None and zone not in known:
            where = f"{clouds.path(spec)}.subnets.{zone}"
            yield Problem(path, f"{zone} has no subnet; add {where}")


def _addresses(spec: Spec, cloud: Cloud) -> Iterator[Problem]:
    """First and last machine of each pool within every subnet; pools apart from each other."""
    taken: list[tuple[str, int, int]] = []
    for name, pool in sorted(spec.pools.items()):
        if not pool.count:
            continue
        first = offset(pool) + 1
        last = first + pool.count - 1
        path = f"pools.{name}.addressOffset"
        least = cloud.first_offset(spec)
        if first < least:
            yield Problem(path, f"{first - 1} is too small; at least {least - 1}")
        for zone in pool.zones:
            network = cloud.subnet(spec, zone)
            # Both keep the last address, Google the last but one too.
            if network is not None and last > network.num_addresses - 3:
                text = f"machine {pool.count} would be address {last} of {network}"
                text = f"{text}; lower it, or make {cloud.subnet_words(zone)} wider"
                yield Problem(path, text)
                break
        for other, start, end in taken:
            if first <= end and start <= last:
                text = f"numbers {first} to {last} meet the addresses of pool {other}"
                yield Problem(path, f"{text}; move it by {end - first + 1}")
        taken.append((name, first, last))


def _quorum(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """Three members or more are there to outlive a zone."""
    cloud = clouds.settings(spec)
    present = [p for p in places if p.state in PRESENT]
    members = [place for place in present if "etcd" in spec.pools[place.pool].roles]
    if cloud is None or cloud.few_zones or len(members) < 3:
        return
    zone, count = Counter(place.zone for place in members).most_common(1)[0]
    if zone is None:
        return  # no zones at all; said by _pools
    may_go = (len(members) - 1) // 2
    if count > may_go:
        text = (
            f"{zone} would hold {count} of {len(members)} etcd members, and its loss stop etcd; "
            f"name {-(-len(members) // may_go)} zones or more, or accept it with "
            f"{clouds.path(spec)}.fewZones: true"
        )
        yield Problem(f"pools.{members[0].pool}.zones", text)


def _balancer(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    masters = sum("master" in spec.pools[place.pool].roles for place in places)
    kind, endpoint = clouds.balancer(spec, masters), spec.cluster.endpoint
    cloud = registry.cloud(spec)
    has_dns = cloud is not None and bool(cloud.DNS_ZONE)
    host, _, port = (endpoint or "").partition(":")
    if kind != "none" and port and int(port) != ports.API_PORT:
        text = f"the load balancer listens on {ports.API_PORT}; leave the port {port} out"
        yield Problem("cluster.endpoint", text)
    if spec.front_doors.vip is not None:
        text = "no network of a cloud carries an address that moves by itself; leave it out for"
        way = f"{clouds.path(spec)}.apiLoadBalancer"
        yield Problem("frontDoors.vip", f"{text} {way}")
    if kind == "external" and spec.front_doors.dns == "unmanaged":
        text = "the external load balancer's address is only known once it is made; write"
        way = "managed, or none" if has_dns else "none"
        yield Problem("frontDoors.dns", f"{text} {way} and see the stack's output apiAddress")
    if kind == "external" and host and not re.search(r"[a-z]", host):
        text = (
            f"{host} is not known to be the load balancer's address before that is made; leave it "
            "out, and clients go by the stack's output apiAddress, or write a name: make a DNS "
            "record of it for that output"
        )
        way = ", or have it made by frontDoors.dns: managed" if has_dns else ""
        yield Problem("cluster.endpoint", text + way)


def _hardware(spec: Spec, cloud: Cloud) -> Iterator[Problem]:
    form, example = cloud.TYPE
    for name, pool in spec.pools.items():
        found = clouds.machine_type(spec, pool)
        path = f"{f'pools.{name}' if pool.machine_type else clouds.path(spec)}.machineType"
        arch = "arm64" if cloud.ARM.fullmatch(found) else "amd64"
        if not form.fullmatch(found):
            yield Problem(path, f"{found} is not a type of {cloud.NAME}; write it as {example!r}")
        elif arch != pool.arch:
            text = f"{found} is a machine of {arch}, the pool says {pool.arch}"
            yield Problem(f"pools.{name}.arch", f"{text}; set arch, or another machineType")
        elif reason := cloud.unfit(found, pool.roles):
            yield Problem(path, f"{found} {reason}")


def _node_rules(spec: Spec) -> Iterator[Problem]:
    cloud, where = clouds.settings(spec), f"{clouds.path(spec)}.nodeRules"
    rules = cloud.node_rules if cloud is not None else ()
    if rules and networks.of(spec).OPEN:
        text = "is all open with this network.plugin; leave it out, or say network.own.ports"
        yield Problem(where, text)
    for index, one in enumerate(rules):
        if one.ports and one.protocol not in ("tcp", "udp"):
            yield Problem(f"{where}[{index}].ports", f"{one.protocol} has none; leave it out")
        if one in rules[:index]:
            yield Problem(f"{where}[{index}]", "is there twice; leave one out")


def _sources(spec: Spec) -> Iterator[Problem]:
    cloud = clouds.settings(spec)
    if cloud is None:
        return
    listed = {
        "sshFrom": cloud.ssh_from,
        "apiFrom": cloud.api_from,
        "nodePortsFrom": cloud.node_ports_from,
        "ingressFrom": cloud.ingress_from,
    }
    if cloud.ingress_from and spec.front_doors.ingress is None:
        text = "is for frontDoors.ingress, which is missing; leave it out"
        yield Problem(f"{clouds.path(spec)}.ingressFrom", text)
    for field, ranges in listed.items():
        yield from same_names(f"{clouds.path(spec)}.{field}", ranges, str)


def _bastion(spec: Spec, cloud: Cloud) -> Iterator[Problem]:
    said, (form, example) = clouds.settings(spec), cloud.TYPE
    if said is None or said.bastion_machine_type is None:
        return
    path, type_ = f"{clouds.path(spec)}.bastionMachineType", said.bastion_machine_type
    if said.access == "public":
        yield Problem(path, "is for a bastion, which access public has not; leave it out")
    elif not form.fullmatch(type_):
        yield Problem(path, f"{type_} is not a type of {cloud.NAME}; write it as {example!r}")
    elif reason := cloud.unfit(type_, ()):
        yield Problem(path, f"{type_} {reason}")


# With the stack's own tags the program finds its machines.
_MOST_LABELS = 40  # of 50 tags on AWS, of 64 labels at Google
_OWN_LABELS = ("name", "kube-ha-cluster", "kube-ha-node", "kube-ha-stack")


def _labels(spec: Spec) -> Iterator[Problem]:
    cloud = clouds.settings(spec)
    own = {each.OWN_LABELS for each in registry.CLOUDS.values() if each.OWN_LABELS}
    begins = ("kube-ha-", *sorted(own))
    where = f"{clouds.path(spec)}.labels"
    if cloud is not None and len(cloud.labels) > _MOST_LABELS:
        text = f"are {len(cloud.labels)}, and a cloud takes {_MOST_LABELS} beside those of its own"
        yield Problem(where, text)
    for key in cloud.labels if cloud is not None else ():
        if not key[:1].isalpha():
            text = f"`{key}` is not a key of a label: one begins with a letter; choose another"
            yield Problem(where, text)
        if key in _OWN_LABELS or key.startswith(begins):
            text = f"`{key}` belongs to this program or to the cloud; choose another key"
            yield Problem(where, text)
