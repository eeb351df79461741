"""Checks of pools: roles, counts, hosts, labels, taints, and what a cluster needs of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from stacks.cluster import clouds, inventory
from stacks.config.fields import SPOT_LABEL, Role
from stacks.config.pools import PoolSpec, TaintSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import registry
from stacks.providers.provider import Provider

# Roles of machines that Kubernetes does not know as nodes -> what to call one.
NO_NODE: Mapping[tuple[Role, ...], str] = {
    ("etcd",): "an etcd machine",
    ("loadbalancer",): "a load balancer",
}
MAX_MEMBERS = 7  # above it each write waits for more disks than it gains in safety

# Labels that kubelet and kubeadm give: another value would be taken back, or break what reads them.
_GIVEN = {
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node-role.kubernetes.io/control-plane",
}

# Of Kubernetes' own controllers: they would take it off again, or wait forever for who does.
_OWN_TAINTS = {
    *(f"node.kubernetes.io/{name}" for name in ("not-ready", "unreachable", "unschedulable")),
    *(f"node.kubernetes.io/{name}-pressure" for name in ("memory", "disk", "pid")),
    *(f"node.kubernetes.io/{name}" for name in ("network-unavailable", "out-of-service")),
    *(f"node.cloudprovider.kubernetes.io/{name}" for name in ("uninitialized", "shutdown")),
    "DeletionCandidateOfClusterAutoscaler",
    "ToBeDeletedByClusterAutoscaler",
}


def problems(spec: Spec) -> list[Problem]:
    """What is wrong in single pools, and what their sum lacks."""
    out: list[Problem] = []
    for name, pool in spec.pools.items():
        path = f"pools.{name}"
        out += _roles(path, pool.roles)
        out += _machines(path, pool, registry.of(spec))
        out += node_labels(path, pool.labels, pool.taints)
        if pool.spot and set(pool.roles) != {"worker"}:
            text = (
                "is for pools with the role worker alone: the cloud takes such machines away, with "
                "etcd's data and the API; leave it out, or give workers a pool of their own"
            )
            out.append(Problem(f"{path}.spot", text))
        what = NO_NODE.get(pool.roles)
        if what and (pool.labels or pool.taints):
            text = f"{what} is not a Kubernetes node; leave out labels and taints"
            out.append(Problem(f"{path}.{'labels' if pool.labels else 'taints'}", text))
    sizes = _sizes(spec)
    for role in ("etcd", "master"):
        if sizes[role] == 0:
            text = f"no machine has role {role}; give it to a pool of at least 1, better 3 machines"
            out.append(Problem("pools", text))
    out += _load_balancers(spec)
    members = sizes["etcd"]
    if members > MAX_MEMBERS:
        text = f"{members} etcd members are more than {MAX_MEMBERS}; use 3 or 5"
        out.append(Problem("pools", text))
    return out


def _load_balancers(spec: Spec) -> list[Problem]:
    """They are there to hold the VIP: no VIP, or nobody left to hold it, is a mistake."""
    out = []
    pools = [name for name, pool in spec.pools.items() if "loadbalancer" in pool.roles]
    if spec.front_doors.vip is None:
        text = (
            "loadbalancer does nothing without the VIP, which such machines hold; write "
            "frontDoors.vip, or leave the pool out"
        )
        if clouds.in_cloud(spec):
            text = (
                "loadbalancer needs a VIP, which no network of a cloud carries; leave the pool out "
                f"for {clouds.path(spec)}.apiLoadBalancer"
            )
        return [Problem(f"pools.{name}.roles", text) for name in pools]
    places = [place for place in inventory.places(spec) if place.pool in pools]
    if spec.front_doors.vip.failover == "own":
        text = "maintenance does nothing where you move the VIP; take the address away from it"
        resting = [place for place in places if place.state == "maintenance"]
        out += [Problem(f"nodes.{place.name}.state", text) for place in resting]
    active = [place for place in places if place.state == "active"]
    if pools and not active:
        text = (
            "no machine with role loadbalancer is active, so nobody would hold the VIP "
            f"{spec.front_doors.vip.address}; keep one, or take the pool out and masters hold it"
        )
        out.append(Problem(f"pools.{pools[0]}", text))
    return out


def warnings(spec: Spec) -> Iterable[Problem]:
    """Member counts that buy nothing, and clusters without a place for workload."""
    sizes = _sizes(spec)
    members = sizes["etcd"]
    if members and members % 2 == 0:
        lost = (members - 1) // 2
        text = (
            f"{members} etcd members survive the loss of {lost}, no more than {members - 1} do; "
            f"use {members - 1} or {members + 1}"
        )
        yield Problem("pools", text)
    if sizes["master"] == 2 and members > 2:
        yield Problem("pools", "2 masters: planned work on one leaves a single one; use 3")
    if sizes["loadbalancer"] == 1:
        text = "1 machine with role loadbalancer: with it the VIP is lost; use 2"
        yield Problem("pools", text)
    if sizes["worker"] == 0:
        yield Problem(
            "pools", "no machine has role worker; only pods that tolerate masters will run"
        )


def _sizes(spec: Spec) -> Counter[Role]:
    """How many machines of the cluster have each role."""
    return Counter(
        role for place in inventory.present(spec) for role in set(spec.pools[place.pool].roles)
    )


def _roles(path: str, roles: tuple[Role, ...]) -> list[Problem]:
    """A master with role worker takes workload; etcd shares a machine with masters only."""
    out = []
    if not roles:
        out.append(
            Problem(f"{path}.roles", f"is empty; give at least one of {', '.join(get_args(Role))}")
        )
    if len(set(roles)) != len(roles):
        out.append(Problem(f"{path}.roles", f"[{', '.join(roles)}] names a role twice"))
    if "loadbalancer" in roles and set(roles) != {"loadbalancer"}:
        text = (
            "loadbalancer stands alone: such a machine is not a node of Kubernetes, and "
            "what clients "
            "outside reach shares nothing with what runs in the cluster; masters hold the VIP "
            "where there is no such pool"
        )
        out.append(Problem(f"{path}.roles", text))
    elif "etcd" in roles and "worker" in roles and "master" not in roles:
        text = (
            "etcd and worker: pods would slow the disk that every write of the cluster waits for; "
            "give etcd machines of its own, or share masters' ([etcd, master])"
        )
        out.append(Problem(f"{path}.roles", text))
    return out


def _machines(path: str, pool: PoolSpec, provider: Provider) -> list[Problem]:
    """Machines that are made are counted, others are listed."""
    out = []
    if provider.MADE:
        if pool.hosts is not None:
            text = f"is for provider adopt; {provider.PLACE} write count"
            out.append(Problem(f"{path}.hosts", text))
        if pool.count is None:
            text = f"is missing; {provider.MAKER} makes this many machines"
            out.append(Problem(f"{path}.count", text))
        return out
    if pool.count is not None:
        out.append(
            Problem(f"{path}.count", "is for machines that are made; adopted machines are in hosts")
        )
    if pool.hosts is None and pool.hosts_file is None:
        out.append(Problem(f"{path}.hosts", "is missing; list the machines to adopt"))
    if pool.address_offset is not None:
        text = "is for machines that are made; adopted machines have their own address"
        out.append(Problem(f"{path}.addressOffset", text))
    return out


def node_labels(path: str, labels: Mapping[str, str], taints: Iterable[TaintSpec]) -> list[Problem]:
    """No label that Kubernetes gives by itself; no taint twice."""
    out = [
        Problem(f"{path}.labels", f"`{key}` is given by Kubernetes itself; leave it out")
        for key in labels
        if key in _GIVEN
    ]
    if SPOT_LABEL in labels:
        out.append(Problem(f"{path}.labels", f"`{SPOT_LABEL}` is given by spot of a pool"))
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        if taint.key in _OWN_TAINTS:
            text = f"`{taint.key}` is put on and taken off by Kubernetes itself; use another key"
            out.append(Problem(f"{path}.taints[{index}]", text))
        if (taint.key, taint.effect) in seen:
            text = f"{taint.key}:{taint.effect} is there twice; a node has one value for it"
            out.append(Problem(f"{path}.taints[{index}]", text))
        seen.add((taint.key, taint.effect))
    return out
