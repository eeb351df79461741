"""Checks of what is sent to machines: the settings of a phase travel in one command, of 8 KB.

How much there is shows only when it is written out, so these checks look at the plan of a config
that is right in everything else. Sizes are in bytes, never under the real ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping

from stacks.cluster import artifacts, clouds, names, rotation
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Mirror, Node, Plan
from stacks.config.pools import TaintSpec
from stacks.config.ports import ETCD_CLIENT_PORT
from stacks.config.problems import Problem
from stacks.phases import downloads as phase_downloads
from stacks.phases import manifests
from stacks.phases.master import of_master
from stacks.phases.node import of_node
from stacks.phases.scripts import STDIN_LIMIT
from stacks.render import approver

OTHER_VALUES = 500  # names of values, of cluster and node, sums, a master's taint: at most 450
_CA_CERTIFICATE = 700
_LITTLE = 512  # a text of less is not what fills a command
_APPROVER = 1500  # what may approve, beside the addresses
_PROVIDER_ID = 180  # the longest names that Google takes
_SUM = 16  # of what a node should be


def problems(plan: Plan) -> list[Problem]:
    """What would not fit: settings of a master, of any node, the list of nodes, their addresses."""
    of_nodes = _of_nodes(plan) or _of_addresses(plan)
    return [*_of_masters(plan), *_of_machines(plan), *of_nodes, *_of_addons(plan)]


def master_sizes(plan: Plan) -> dict[str, int]:
    """Bytes of each value in the biggest command that makes a master; `OTHER` is all the rest."""
    # Masters differ by name, address and taint alone, and writing YAML takes its time: one will do.
    longest = max(plan.masters, key=lambda node: len(node.name) + len(node.address))
    other = OTHER_VALUES + _of_cloud(plan)
    return {"OTHER": other, **_sizes(of_master(plan, longest))}


def machine_sizes(plan: Plan) -> dict[str, int]:
    """As master_sizes, of the command that makes a machine a node."""
    # Masters fetch more than workers.
    first = plan.masters[0]
    downloads = phase_downloads.downloads(first)
    files = artifacts.files(dataclasses.replace(plan, mirror=None), first.arch)
    lines = sum(_line_size(plan.mirror, name, files[name]) for name in downloads)
    lines += sum(
        _image_size(plan, name)
        for name in phase_downloads.node_images(plan, first)
        if plan.mirror is not None or name in files
    )
    authorities = len(rotation.generations(plan.spec.pki.rotation.kubernetes))
    other = OTHER_VALUES + _CA_CERTIFICATE * authorities + lines + _of_cloud(plan)
    sizes = {"OTHER": other, **_sizes(of_node(plan, first))}
    # The same addresses twice, for containerd and for downloads.
    sizes["CONTAINERD_PROXY"] += sizes.pop("PROXY_ENV")
    return sizes


def _of_cloud(plan: Plan) -> int:
    """Of what the cloud knows the machine by."""
    return _PROVIDER_ID if clouds.has_controller(plan.spec) else 0


def _line_size(mirror: Mirror | None, name: str, file: File) -> int:
    """Of one download: name, address, sum."""
    if mirror is None:
        return len(f"{name} {file.url} published:{file.published}\n")
    return (
        len(f"{name} {artifacts.at_mirror(mirror, file.url)} \n") + 2 * hashlib.sha256().digest_size
    )


def _image_size(plan: Plan, name: str) -> int:
    """Of one image: name, reference, digest."""
    image = artifacts.images(plan)[name.removeprefix(artifacts.IMAGE)]
    return len(f"{name} {image.ref} sha256:\n") + 2 * hashlib.sha256().digest_size


# What the user writes may fill a command: value -> config path, and how to need less.
_MASTER_TEXTS = {
    "AUDIT_POLICY": ("controlPlane.audit.policy", "use fewer, wider rules"),
    "OIDC_CA": ("controlPlane.oidc.ca", "give the root of the provider's certificate alone"),
    "AUTHENTICATION": (
        "controlPlane.oidcIssuers",
        "give the root of each provider's certificate alone, or fewer providers",
    ),
    "AUDIT_WEBHOOK": (
        "controlPlane.audit.webhook.ca",
        "give the root of the collector's certificate alone",
    ),
    "ADMISSION_CONFIG": (
        "controlPlane.podSecurity.exemptNamespaces",
        "label namespaces (pod-security.kubernetes.io/enforce) in place of exempting them",
    ),
}
_MACHINE_TEXTS = {
    "REGISTRY_HOSTS": ("runtime.registryMirrors", "name fewer registries and mirrors"),
    "CONTAINERD_PROXY": ("proxy.noProxy", "name domains and networks in place of hosts"),
    "FIREWALL": ("machines.firewall", "name fewer, wider networks"),
}


def _of_masters(plan: Plan) -> list[Problem]:
    sizes, texts = master_sizes(plan), dict(_MASTER_TEXTS)
    if plan.spec.control_plane.audit.policy is None:
        del texts["AUDIT_POLICY"]
    text = (
        f"takes {sum(sizes.values())} bytes on a master, {STDIN_LIMIT} fit; shorten apiServerArgs, "
        "controllerManagerArgs, schedulerArgs or certSans"
    )
    return _too_big(sizes, texts, "on a master", Problem("controlPlane", text))


def _of_machines(plan: Plan) -> list[Problem]:
    sizes = machine_sizes(plan)
    text = f"takes {sum(sizes.values())} bytes on every node, {STDIN_LIMIT} fit; use fewer masters"
    return _too_big(sizes, _MACHINE_TEXTS, "on every node", Problem("pools", text))


def _too_big(
    sizes: Mapping[str, int], texts: Mapping[str, tuple[str, str]], where: str, otherwise: Problem
) -> list[Problem]:
    """The biggest of the user's texts, if the rest would fit without it."""
    size = sum(sizes.values())
    if size <= STDIN_LIMIT:
        return []
    biggest = max(texts, key=lambda name: sizes.get(name, 0))
    room = STDIN_LIMIT - size + sizes[biggest]
    if room <= 0 or sizes[biggest] < _LITTLE:
        return [otherwise]
    path, way = texts[biggest]
    text = f"takes {sizes[biggest]} bytes {where}, where {room} are left; {way}"
    return [Problem(path, text)]


def _of_nodes(plan: Plan) -> list[Problem]:
    size = nodes_size(plan)
    if size <= STDIN_LIMIT:
        return []
    if nodes_size(plan, with_exceptions=False) <= STDIN_LIMIT:
        text = (
            f"the list of nodes takes {size} bytes with these exceptions, {STDIN_LIMIT} fit; "
            "put nodes with the same labels and taints in a pool of their own"
        )
        return [Problem("nodes", text)]
    text = (
        f"the list of nodes takes {size} bytes, {STDIN_LIMIT} fit; use names that count "
        "(worker-1, worker-2, ...), which are listed as one, and fewer or shorter labels and taints"
    )
    return [Problem("pools", text)]


def _of_addresses(plan: Plan) -> list[Problem]:
    size = addresses_size(plan)
    if size <= STDIN_LIMIT:
        return []
    text = (
        f"the addresses of nodes, by which kubelets get certificates, take {size} bytes, "
        f"{STDIN_LIMIT} fit; give nodes whose names count addresses that count, or that lie near "
        "each other, or set kubelet.servingCertificates: self-signed"
    )
    return [Problem("pools", text)]


def _of_addons(plan: Plan) -> Iterator[Problem]:
    for addon in plan.addons:
        size = OTHER_VALUES + sum(_sizes(manifests.manifests(plan, addon)).values())
        if size > STDIN_LIMIT:
            text = (
                f"the list of its {len(addon.files)} files takes {size} bytes, {STDIN_LIMIT} fit; "
                "write several documents into one file, or make two add-ons of it"
            )
            yield Problem(f"addons.{addon.name}", text)


def addresses_size(plan: Plan) -> int:
    """What the command takes that brings the addresses of all nodes into the cluster."""
    lines = approver.table(plan).splitlines()
    # Lines of a text in YAML are indented.
    return OTHER_VALUES + _APPROVER + sum(len(line) + 5 for line in lines)


def nodes_size(plan: Plan, *, with_exceptions: bool = True) -> int:
    """What the command takes that lists all nodes: by pool, by their labels, by their taints."""
    pools: dict[str, list[str]] = {}
    labels: dict[str, list[str]] = {}
    taints: dict[str, list[str]] = {}
    for node in plan.nodes:
        if node.in_kubernetes:
            pool = plan.spec.pools[node.pool]
            own_labels = (
                dict(node.labels) if with_exceptions else {**pool.labels, **node.zone_label}
            )
            own_taints = node.taints if with_exceptions else pool.taints
            pools.setdefault(f"{node.pool} {'0' * _SUM}", []).append(node.name)
            labels.setdefault(_label_words(node, own_labels), []).append(node.name)
            taints.setdefault(_taint_words(own_taints), []).append(node.name)
    lists = sum(_lines_size(groups) for groups in (pools, labels, taints))
    members = sum(len(f"{node.name}={node.address} ") for node in plan.etcd)
    endpoints = sum(len(f"https://{node.address}:{ETCD_CLIENT_PORT},") for node in plan.etcd)
    return OTHER_VALUES + lists + members + endpoints


def _label_words(node: Node, labels: Mapping[str, str]) -> str:
    role = "control-plane" if node.is_master else "worker"
    words = [
        f"node-role.kubernetes.io/{role}=",
        *(f"{key}={value}" for key, value in labels.items()),
    ]
    return " ".join(sorted(words))


def _taint_words(taints: Iterable[TaintSpec]) -> str:
    return " ".join(sorted(f"{taint.key}={taint.value}:{taint.effect}" for taint in taints))


def _lines_size(groups: Mapping[str, list[str]]) -> int:
    """A line for each group: its words, its names, a character between and one behind."""
    return sum(len(words) + len(names.ranges(group)) + 2 for words, group in groups.items())


def _sizes(values: Mapping[str, str]) -> dict[str, int]:
    """Bytes of each value as an assignment in shell syntax."""
    return {name: len(f"{name}={shlex.quote(text)}\n".encode()) for name, text in values.items()}
