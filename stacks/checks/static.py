"""Checks across the fields of one config: everything that can be known before any machine is asked.

Each function looks at one subject and returns its problems; the order of `problems` is that of the
config.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping

from stacks.checks import (
    addresses,
    clouds,
    control_plane,
    firewall,
    front_doors,
    known_flags,
    networks,
    object_store,
    outside,
    pools,
    ports,
    refusals,
    rollout,
    serving_certificates,
    settings,
    user_addons,
    weak,
    zones,
)
from stacks.cluster import inventory
from stacks.config.fields import Role
from stacks.config.pools import NodeSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import registry
from stacks.providers.places import Place
from stacks.releases import versions


def problems(spec: Spec) -> list[Problem]:
    """Everything that makes the config unusable."""
    places = inventory.places(spec)
    return [
        *_kubernetes(spec),
        *networks.problems(spec),
        *registry.of(spec).problems(spec, places),
        *pools.problems(spec),
        *zones.problems(spec, places),
        *addresses.problems(spec, places),
        *front_doors.problems(spec, places),
        *firewall.problems(spec, inventory.present(spec)),
        *ports.problems(spec, places),
        *ports.bastion_problems(spec),
        *outside.problems(spec),
        *clouds.problems(spec, places),
        *_host_keys(spec, places),
        *_duplicates(spec, places),
        *_exceptions(spec, places),
        *serving_certificates.problems(spec, places),
        *settings.problems(spec),
        *rollout.problems(spec),
        *user_addons.said_problems(spec),
        *refusals.problems(spec.allow),
    ]


def warnings(spec: Spec) -> list[Problem]:
    """What is allowed and seldom meant."""
    places = inventory.places(spec)
    out = [
        *pools.warnings(spec),
        *zones.warnings(spec, inventory.present(spec)),
        *clouds.warnings(spec, places),
        *object_store.warnings(spec),
        *control_plane.warnings(spec),
        *known_flags.warnings(spec),
        *addresses.warnings(places),
        *rollout.warnings(spec),
        *weak.warnings(spec, inventory.present(spec)),
    ]
    out += [
        Problem(place.path, f"{place.name}: the host key is not checked (insecureIgnoreHostKey)")
        for place in places
        if place.host is not None and place.host.host_key is None
    ]
    return out


def _host_keys(spec: Spec, places: Iterable[Place]) -> list[Problem]:
    """Keys that nothing connects by: a pinned one is asked for by the word that it begins with."""
    keys = {f"{p.path}.hostKey": p.host.host_key for p in places if p.host is not None}
    if spec.machines.ssh.bastion is not None:
        keys["machines.ssh.bastion.hostKey"] = spec.machines.ssh.bastion.host_key
    text = (
        "an RSA key is asked for with SHA-1 (ssh-rsa), which OpenSSH 8.8 and newer refuses; "
        "write the machine's ECDSA or Ed25519 key, as `make hostkeys` shows it"
    )
    return [Problem(path, text) for path, key in keys.items() if key and key.startswith("ssh-rsa ")]


def _kubernetes(spec: Spec) -> list[Problem]:
    try:
        versions.for_kubernetes(spec.cluster.kubernetes)
    except versions.UnknownVersionError as error:
        return [Problem("cluster.kubernetes", str(error))]
    out = []
    for component, said in _chosen(spec):
        there = versions.fitting(spec.cluster.kubernetes, component)
        if said not in there:
            text = f"{said!r} is none that fits Kubernetes {spec.cluster.kubernetes} in"
            way = f"artifacts/lock.yaml; it has {', '.join(there)}"
            out.append(Problem(f"cluster.{component}", f"{text} {way}"))
    return out


def _chosen(spec: Spec) -> Iterator[tuple[versions.Component, str]]:
    if spec.cluster.etcd is not None:
        yield "etcd", spec.cluster.etcd
    if spec.cluster.containerd is not None:
        yield "containerd", spec.cluster.containerd


def _duplicates(spec: Spec, places: Iterable[Place]) -> list[Problem]:
    """Names, addresses and host keys belong to one machine each."""
    out = []
    seen: dict[tuple[str, str], Place] = {}
    for place in places:
        marks = [("name", place.name)]
        if place.host is not None:  # lab addresses are compared pool by pool
            marks.append(("address", place.address))
            if place.host.host_key is not None:
                marks.append(("hostKey", place.host.host_key))
        marks += _certificates(spec, place)
        for field, value in marks:
            first = seen.setdefault((field, value), place)
            if first is not place:
                path = place.path if place.host is None else f"{place.path}.{field}"
                if field == "certificate":
                    text = f"{place.name} would have a certificate {value}, as {first.name} has"
                    out.append(Problem(place.path, f"{text}; choose another name"))
                    continue
                what = f"{value!r}" if field != "hostKey" else "this key"
                out.append(Problem(path, f"{what} is taken by {first.name} ({first.path})"))
    return out


# What is put behind a node's name to name its certificates; cluster/certificates.py makes them.
_SUFFIXES: Mapping[Role, tuple[str, ...]] = {
    "etcd": ("etcd-server", "etcd-peer", "etcd-client"),
    "loadbalancer": ("load-balancer",),
    "master": (
        *("apiserver", "apiserver-kubelet-client", "front-proxy-client", "apiserver-etcd-client"),
    ),
    "worker": (),
}


def _certificates(spec: Spec, place: Place) -> list[tuple[str, str]]:
    """Names of resources: master `a` and member `a-apiserver` would both have one."""
    roles = spec.pools[place.pool].roles
    return [
        ("certificate", f"{place.name}-{suffix}") for role in roles for suffix in _SUFFIXES[role]
    ]


def _exceptions(spec: Spec, places: Iterable[Place]) -> list[Problem]:
    """Every key of `nodes` names a Kubernetes node, and says something about it."""
    known = {place.name: place.pool for place in places}
    out = []
    for name, node in spec.nodes.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {_some(known)}"
            out.append(Problem(f"nodes.{name}", f"no node has this name; {hint}"))
        elif (what := pools.NO_NODE.get(spec.pools[known[name]].roles)) and (
            node.labels or node.taints or node.drain or node.keep_pods_s
        ):
            text = (
                f"{what} is not a Kubernetes node; labels, taints, drain and keepPodsS do nothing"
            )
            out.append(Problem(f"nodes.{name}", text))
        out += pools.node_labels(f"nodes.{name}", node.labels, node.taints)
        out += _maintenance(name, node)
    return out


def _maintenance(name: str, node: NodeSpec) -> Iterator[Problem]:
    """What becomes of the pods of a node in maintenance."""
    if node.state != "maintenance":
        if node.drain:
            yield Problem(f"nodes.{name}.drain", "needs state: maintenance")
        if node.keep_pods_s:
            yield Problem(f"nodes.{name}.keepPodsS", "needs state: maintenance")
    elif node.drain and node.keep_pods_s:
        text = "does nothing with drain, which evicts the pods; take one of the two out"
        yield Problem(f"nodes.{name}.keepPodsS", text)


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "") if listed else "no nodes"
