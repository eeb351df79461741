"""Warnings of what is allowed and leaves a cluster open, fragile, or without a place for pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network

from stacks.cluster import clouds
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers.places import Place

_WORLD = 1 << 24  # a network of this many addresses or more is not an office


def warnings(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """`places`: the nodes that are to be there."""
    yield from _open_doors(spec)
    yield from _endpoint(spec, places)
    yield from _backups(spec)
    yield from _workers(spec, places)


def _open_doors(spec: Spec) -> Iterator[Problem]:
    cloud = clouds.settings(spec)
    for network in cloud.ssh_from if cloud is not None else ():
        if IPv4Network(network).num_addresses >= _WORLD:
            text = f"lets {network} try keys and flaws of sshd; name the networks you come from"
            yield Problem(f"{clouds.path(spec)}.sshFrom", text)


def _endpoint(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    masters = [place for place in places if "master" in spec.pools[place.pool].roles]
    host = (spec.cluster.endpoint or "").partition(":")[0]
    for place in masters:
        if place.address == host and len(masters) > 1:
            text = (
                f"{host} is {place.name} alone: with it clients outside lose the API, whatever the "
                f"other {len(masters) - 1} do; name a VIP, a load balancer or a DNS name of all"
            )
            yield Problem("cluster.endpoint", text)


def _backups(spec: Spec) -> Iterator[Problem]:
    backup = spec.etcd.backup
    if backup.every_hours == 0:
        text = "is 0: nothing saves etcd but changes of the control plane and `make backup`"
        yield Problem("etcd.backup.everyHours", text)
    if not backup.encrypt:
        text = "is false: whoever reads a snapshot reads every Secret of the cluster"
        yield Problem("etcd.backup.encrypt", text)


def _workers(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    working = [place for place in places if "worker" in spec.pools[place.pool].roles]
    if working and all(place.state != "active" for place in working):
        what = "in maintenance"
        if any(place.state == "absent" for place in working):
            what = "in maintenance or absent"
        text = f"all {len(working)} workers are {what}: new pods find no node"
        yield Problem("nodes", text)
    if len(working) > 1 and all(spec.pools[place.pool].spot for place in working):
        text = (
            f"all {len(working)} workers are spot machines, which the cloud may take away at once; "
            "a pool without spot keeps what has to run"
        )
        yield Problem("pools", text)
    nodes = [place for place in places if {"master", "worker"} & set(spec.pools[place.pool].roles)]
    if nodes and all(_evicts(spec, place) for place in nodes):
        text = (
            "every node has a taint with NoExecute or NoSchedule: CoreDNS, which tolerates none of "
            "yours, runs nowhere, and no pod finds a name; leave a node without"
        )
        yield Problem("pools", text)


def _evicts(spec: Spec, place: Place) -> bool:
    own = spec.nodes.get(place.name)
    taints = [*spec.pools[place.pool].taints, *(own.taints if own else ())]
    # CoreDNS tolerates the one of masters.
    return any(
        taint.effect != "PreferNoSchedule" and not taint.key.startswith("node-role.kubernetes.io/")
        for taint in taints
    )
