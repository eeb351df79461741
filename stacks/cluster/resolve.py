"""From a config to the plan of its cluster: everything that follows, resolved."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from stacks.catalogue.entry import Wanted
from stacks.cluster import fence, inventory, sizing, user_addons
from stacks.cluster import outside as outside_files
from stacks.cluster.outside import Sums
from stacks.cluster.plan import Bastion, Mirror, Node, Plan, Ssh
from stacks.cluster.user_addons import Addon
from stacks.config import defaults
from stacks.config.fields import SPOT_LABEL, DefaultsLevel
from stacks.config.machines import SshSpec
from stacks.config.pools import HostSpec, PoolSpec, TaintSpec
from stacks.config.sizing import Size
from stacks.config.spec import Spec
from stacks.providers import registry
from stacks.providers.places import Place
from stacks.releases import versions
from stacks.releases.versions import Versions


def plan(
    said: Spec,
    *,
    level: DefaultsLevel | None = None,
    size: Size | None = None,
    sets: Versions | None = None,
    addons: tuple[Addon, ...] | None = None,
    outside: Sums | None = None,
    root: Path = user_addons.HERE,
) -> Plan:
    """Everything that follows from a config that load() accepted, resolved.

    `level` is that of the defaults of the cluster that exists, `size` the one its settings are
    made for; None: it is new. `sets` are the component versions of a plan of the past, `addons`
    what its add-ons were, `outside` what other files held; default: those of the lock, and what is
    in the files that the config names. `root`: what relative paths start from.
    """
    present = inventory.present(said)
    spec = sizing.settled(defaults.settled(said, level), sizing.nodes(said, present), size)
    nodes = tuple(_node(spec, place) for place in present)
    away = tuple(_node(spec, place) for place in inventory.away(spec))
    in_turn = sorted(nodes, key=lambda node: node.turn)
    masters = tuple(node for node in in_turn if node.is_master)
    chosen = sets or _versions(spec)
    etcd = tuple(node for node in in_turn if node.is_etcd)
    balancers = tuple(node for node in in_turn if node.is_load_balancer)
    wanted = _wanted(spec, chosen, masters, etcd, balancers)
    return Plan(
        spec=spec,
        versions=chosen,
        mirror=_mirror(spec),
        nodes=nodes,
        away=away,
        etcd=etcd,
        masters=masters,
        workers=tuple(node for node in nodes if node.is_worker),
        load_balancers=balancers,
        etcd_stacked=all(node.is_etcd for node in masters),
        addons=user_addons.read(wanted, root) if addons is None else addons,
        outside=outside_files.read(spec, root) if outside is None else outside,
        fenced=fence.given_up(spec, away),
    )


def _wanted(
    spec: Spec,
    versions: Versions,
    masters: Sequence[Node],
    etcd: Sequence[Node],
    balancers: Sequence[Node],
) -> Wanted:
    """What add-ons of the catalogue are made of."""
    vip = spec.front_doors.vip
    return Wanted(
        spec=spec,
        versions=versions,
        masters=len(masters),
        etcd=len(etcd) if etcd == masters else 0,
        keepalived=vip is not None and vip.failover == "keepalived" and not balancers,
        holders=tuple(node.address for node in balancers or masters) if vip is not None else (),
    )


def _versions(spec: Spec) -> Versions:
    cluster = spec.cluster
    return versions.for_kubernetes(
        cluster.kubernetes, etcd=cluster.etcd, containerd=cluster.containerd
    )


def _node(spec: Spec, place: Place) -> Node:
    pool = spec.pools[place.pool]
    exception = spec.nodes.get(place.name)
    node = Node(
        name=place.name,
        pool=place.pool,
        ordinal=place.ordinal,
        roles=tuple(sorted(pool.roles)),
        address=place.address,
        arch=pool.arch,
        zone=place.zone,
        ssh=way(spec.machines.ssh, place.host) if place.host is not None else None,
        labels=(),
        taints=_taints(pool, exception.taints if exception else ()),
        state=place.state,
        generation=place.generation,
        drain=exception.drain if exception else False,
        keep_pods_s=exception.keep_pods_s if exception else None,
    )
    spot = {SPOT_LABEL: "true"} if pool.spot else {}
    labels = pool.labels | (exception.labels if exception else {}) | node.zone_label | spot
    return dataclasses.replace(node, labels=tuple(sorted(labels.items())))


def _taints(pool: PoolSpec, own: tuple[TaintSpec, ...]) -> tuple[TaintSpec, ...]:
    """The pool's taints and the node's own; for the same key and effect the node's value counts."""
    # Pods that fit elsewhere go elsewhere, and none waits where there are no others.
    spot = TaintSpec(key=SPOT_LABEL, value="true", effect="PreferNoSchedule")
    all_ = (*pool.taints, *own, *((spot,) if pool.spot else ()))
    merged = {(taint.key, taint.effect): taint for taint in all_}
    return tuple(merged[mark] for mark in sorted(merged))


def way(ssh: SshSpec, host: HostSpec) -> Ssh:
    """How a machine that is listed is reached."""
    return Ssh(
        address=host.ssh_address or host.address,
        user=host.user or ssh.user,
        port=host.port or ssh.port,
        host_key=host.host_key,
        private_key_file=ssh.private_key_file,
        agent=ssh.agent,
        bastion=_bastion(ssh),
    )


def _bastion(ssh: SshSpec) -> Bastion | None:
    bastion = ssh.bastion
    if bastion is None:
        return None
    return Bastion(
        address=bastion.address,
        port=bastion.port,
        user=bastion.user,
        host_key=bastion.host_key,
        # With neither a file of its own nor one for the machines, the agent serves the bastion too.
        private_key_file=bastion.private_key_file or ssh.private_key_file,
    )


def _mirror(spec: Spec) -> Mirror | None:
    """What the config names, else one that comes with the machines."""
    said = spec.mirror or registry.of(spec).mirror(spec)
    if said is None:
        return None
    return Mirror(url=said.url, registry=said.registry, manifest=said.manifest)
