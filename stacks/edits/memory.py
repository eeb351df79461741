"""What a stack remembers of its last success: the config that was applied, and by which program.

`of` makes it, plain JSON without secrets; `read` gives it back, whatever version of this program
wrote it. What is compared with it: transition.py (may the cluster become the plan?) and
explain/changes.py (what will happen to which node?).
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from stacks.cluster import absent, clouds, digests, fence, user_addons
from stacks.cluster.plan import Node, Plan
from stacks.cluster.resolve import plan
from stacks.cluster.user_addons import Addon, KubernetesObject
from stacks.config import defaults, parse
from stacks.config.fields import DefaultsLevel, Section
from stacks.config.spec import Spec
from stacks.config.values import VERSION
from stacks.edits import components, endings, released
from stacks.edits.endings import Ending
from stacks.edits.released import Released
from stacks.phases import desired, system_addons
from stacks.phases import scripts as phase_scripts
from stacks.providers import registry
from stacks.releases.versions import Versions

ENDINGS = "certificates"  # what endings.first makes, which only an update knows
FORMAT = 2  # a change of the meaning needs another number
_OLDEST = 1  # remembered machines and fixed fields only


class UnreadableMemoryError(ValueError):
    """A memory that no version of this program wrote; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    pool: str
    roles: tuple[str, ...]
    address: str
    fingerprint: str | None  # of the host key
    arch: str | None = None  # None: an old version of this program did not remember it
    generation: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    kubernetes: str
    fixed: Mapping[str, object]  # values by config path of what never changes
    machines: Mapping[str, Machine]  # by node name
    away: Mapping[str, Machine]  # given up and decommissioned ones
    plan: Plan | None  # None: an old version of this program wrote it, without the config
    scripts: Mapping[str, str]  # sum by phase
    # Of what the config does not say: that of the day when the cluster was made.
    level: DefaultsLevel
    # By pool: sum of each value of its first node; by "": sum of each add-on's manifest.
    rendered: Mapping[str, Mapping[str, str]]
    released: Mapping[str, Released]  # adopted machines that left, and keep their data
    # The first leaf and the first CA that end; nothing where no success has told yet.
    endings: tuple[Ending, ...] = ()
    # By absent node, the Kubernetes version of the last success that it was part of.
    absent: Mapping[str, str] = field(default_factory=dict)


def of(plan: Plan, before: Memory | None = None) -> dict[str, object]:
    """What to remember of a success: plain JSON values, read back by `read`.

    `before`: what was remembered until then.
    """
    then, known = (before.plan, before.released) if before else (None, {})
    gone = released.after(then, known, plan)
    missed = (before.absent, before.kubernetes) if before else ({}, plan.versions.kubernetes)
    settings = plan.spec.model_dump(mode="json", by_alias=True, exclude={"pools", "nodes"})
    # A thousand hosts: what they do not say is left out.
    lists = plan.spec.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, include={"pools", "nodes"}
    )
    return {
        "format": FORMAT,
        "config": {**settings, **lists},
        "versions": components.as_memory(plan),
        "scripts": scripts(),
        "rendered": rendered(plan),
        **({"addons": user_addons.as_memory(plan.addons)} if plan.addons else {}),
        **({"outside": dict(plan.outside)} if plan.outside else {}),
        **({"fenced": fence.as_memory(plan)} if plan.fenced else {}),
        **({"released": released.dumped(gone)} if gone else {}),
        **absent.as_memory(plan, *missed),
    }


def _addons_of(found: object) -> tuple[Addon, ...]:
    out = []
    for name, held in sorted(_items(found)):
        parts = dict(_items(held))
        listed = parts.get("objects")
        words = [str(line).split(" ") for line in listed] if isinstance(listed, list) else []
        out.append(
            Addon(
                name=name,
                files=tuple(_files_of(parts.get("files"))),
                objects=tuple(KubernetesObject(*line) for line in words if len(line) == 3),
            )
        )
    return tuple(out)


def _files_of(found: object) -> Iterator[tuple[str, str]]:
    """Paths with their sums; versions of kube-ha before remembered them without their order."""
    for pair in found if isinstance(found, list) else _items(found):
        if isinstance(pair, (list, tuple)) and len(pair) == 2:
            yield str(pair[0]), str(pair[1])


def scripts() -> dict[str, str]:
    """Sums of the scripts of this program by phase."""
    return {
        phase: phase_scripts.script_sum(phase)
        for phase in (*phase_scripts.NODE_PHASES, *phase_scripts.CLUSTER_PHASES)
    }


def other_scripts(before: Memory) -> frozenset[str]:
    """Phases whose script is another one in this version of the program."""
    now = scripts()
    return frozenset(name for name, total in before.scripts.items() if now.get(name) != total)


def other_values(before: Memory) -> dict[str, frozenset[str]]:
    """By pool, or "" for add-ons: what this version makes otherwise of the same config."""
    again = rendered(before.plan) if before.plan else {}
    return {
        pool: frozenset(name for name, total in sums.items() if again[pool].get(name) != total)
        for pool, sums in before.rendered.items()
        if pool in again
    }


def rendered(plan: Plan) -> dict[str, dict[str, str]]:
    """By pool, sums of the values that this program makes for its first node; by "", of add-ons.

    Rendered again from the same config by another version of this program, they tell what the
    program, and not the user, has changed.
    """
    first: dict[str, Node] = {}
    for node in plan.nodes:
        first.setdefault(node.pool, node)
    sums = {
        pool: {
            f"{phase} {name}": digests.digest(text)[:8]
            for phase, values in desired.of_phases(plan, node).items()
            for name, text in values.items()
        }
        for pool, node in first.items()
    }
    addons = {name: digests.digest(text)[:8] for name, text in system_addons.addons(plan).items()}
    return {"": addons, **sums}


def fixed(plan: Plan) -> dict[str, object]:
    """Values by config path of what is chosen when a cluster is made."""
    spec = plan.spec
    return {
        "cluster.name": spec.cluster.name,
        "cluster.podCidr": spec.cluster.pod_cidr,
        "cluster.serviceCidr": spec.cluster.service_cidr,
        "cluster.dnsDomain": spec.cluster.dns_domain,
        "machines.provider": registry.of(spec).NAME,
        **_of_sections(spec),
        "network.plugin": spec.network.plugin,
        "network.nodeCidrMask": spec.network.node_cidr_mask,
        "network.kubeProxyReplacement": spec.network.kube_proxy_replacement,
        "network.blockSize": spec.network.block_size,
        "controlPlane.encryptSecrets": spec.control_plane.encrypt_secrets,
        "pki.caValidityHours": spec.pki.ca_validity_hours,
    }


def _of_sections(spec: Spec) -> dict[str, object]:
    """What each provider's section says of its own kind; None beside machines of another."""
    out: dict[str, object] = {}
    wanted = registry.of(spec)
    for name, each in registry.all_().items():
        section = getattr(spec.machines, name, None) if each is wanted else None
        said = section.model_dump(by_alias=True) if isinstance(section, Section) else {}
        out |= {f"machines.{name}.{key}": said.get(key) for key in each.FIXED}
    return out


def machines(nodes: Iterable[Node]) -> dict[str, Machine]:
    """What machines are known by, by node name."""
    return {
        node.name: Machine(
            pool=node.pool,
            roles=node.roles,
            address=node.address,
            fingerprint=fingerprint(node.ssh.host_key) if node.ssh and node.ssh.host_key else None,
            arch=node.arch,
            generation=node.generation,
        )
        for node in nodes
    }


def fingerprint(host_key: str) -> str:
    """A public key's fingerprint as `ssh-keygen -l` prints it."""
    digest = hashlib.sha256(base64.b64decode(host_key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def read(previous: Mapping[str, object]) -> Memory:
    """The memory, typed. Raises UnreadableMemoryError when it is not what `of` wrote."""
    if previous.get("format") == _OLDEST:
        return _read_oldest(previous)
    config = previous.get("config")
    if previous.get("format") != FORMAT or not isinstance(config, Mapping):
        raise UnreadableMemoryError(f"format {previous.get('format')!r}")
    try:
        said = plan(
            parse.remembered(_as_it_was(config)),
            sets=_versions(previous.get("versions")),
            addons=_addons_of(previous.get("addons")),
            outside=tuple(_texts(previous.get("outside")).items()),
        )
        # An old version of this program knew those alone that its config named.
        if "fenced" in previous:
            fenced = fence.of_memory(dict(_items(previous["fenced"])))
            said = dataclasses.replace(said, fenced=fenced)
        left_out = _texts(previous.get("absent"))
        said = absent.of_memory(said, left_out, str(previous.get("acting", "")))
    except ValueError as error:
        raise UnreadableMemoryError(str(error)) from None
    names = Counter(node.name for node in (*said.nodes, *said.away))
    if twice := [name for name, times in names.items() if times > 1]:
        raise UnreadableMemoryError(f"two machines are called {twice[0]}")
    if clouds.in_cloud(said.spec) and clouds.settings(said.spec) is None:
        raise UnreadableMemoryError(f"{clouds.path(said.spec)} is not in its config")
    return Memory(
        kubernetes=said.versions.kubernetes,
        fixed=_compared(fixed(said), config),
        machines=machines(said.nodes),
        away=machines(said.away),
        plan=said,
        level=said.spec.cluster.defaults or defaults.OLDEST,
        scripts=_texts(previous.get("scripts")),
        rendered={pool: _texts(sums) for pool, sums in _items(previous.get("rendered"))},
        released=released.read(previous.get("released")),
        endings=endings.read(previous.get(ENDINGS)),
        absent=left_out,
    )


# What clusters were like whose program had no such field yet, where today's default is another.
_BEFORE_THE_FIELD: Mapping[tuple[str, str], object] = {
    ("kubelet", "servingCertificates"): "self-signed",
    ("cluster", "defaults"): defaults.OLDEST,
    ("sizing", "nodes"): 100,
}


def _as_it_was(config: Mapping[str, object]) -> dict[str, object]:
    said = dict(config)
    for (section, key), value in _BEFORE_THE_FIELD.items():
        held = said.get(section, {})
        if isinstance(held, Mapping):
            said[section] = {key: value, **held}
    return said


def _compared(values: Mapping[str, object], config: Mapping[str, object]) -> dict[str, object]:
    """Without those that the previous config did not hold: that program had no such field."""
    return {path: value for path, value in values.items() if _holds(config, path.split("."))}


def _holds(config: Mapping[str, object], keys: list[str]) -> bool:
    value: object = config
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return False
        value = value[key]
    return True


# Every program kept these, and upgrades are judged by them.
_ALWAYS_KEPT = {"kubernetes": "Kubernetes", "etcd": "etcd", "containerd": "containerd"}


def _versions(found: object) -> Versions:
    known = _texts(found)
    for name in _ALWAYS_KEPT:
        _require_version(name, known.get(name))
    return components.of_memory(known)


def _require_version(name: str, text: str | None) -> None:
    if text is None or not VERSION.fullmatch(text):
        raise UnreadableMemoryError(f"no {_ALWAYS_KEPT[name]} version")


def _texts(found: object) -> dict[str, str]:
    return {key: str(value) for key, value in _items(found)}


def _items(found: object) -> Iterator[tuple[str, object]]:
    if isinstance(found, Mapping):
        for key, value in found.items():
            yield str(key), value


def _read_oldest(previous: Mapping[str, object]) -> Memory:
    known, pools, version = (previous.get(key) for key in ("fixed", "pools", "kubernetes"))
    if not isinstance(known, Mapping) or not isinstance(pools, Mapping):
        raise UnreadableMemoryError(f"format {_OLDEST} without pools")
    _require_version("kubernetes", version if isinstance(version, str) else None)
    found = dict(pair for pool, entry in pools.items() for pair in _machines(str(pool), entry))
    return Memory(
        kubernetes=str(version),
        fixed=dict(known),
        machines=found,
        away={},
        plan=None,
        level=defaults.OLDEST,
        scripts={},
        rendered={},
        released={},
    )


def _machines(pool: str, entry: object) -> Iterator[tuple[str, Machine]]:
    roles = entry.get("roles") if isinstance(entry, Mapping) else None
    listed = entry.get("machines") if isinstance(entry, Mapping) else None
    if not isinstance(roles, list | tuple) or not isinstance(listed, Mapping):
        raise UnreadableMemoryError(f"pool {pool!r}")
    for name, identity in listed.items():
        address, _, key = str(identity).partition(" ")
        yield (
            str(name),
            Machine(
                pool=pool,
                roles=tuple(str(role) for role in roles),
                address=address,
                fingerprint=key or None,
            ),
        )
