"""From the last successful config of a stack to the wanted one: allowed, or refused with the way.

`memory` is what a stack remembers of a success; `check` compares it with a plan. After a failed up
the cluster lies between both, so each rule must hold from either end.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stacks import versions
from stacks.plan import Node, Plan
from stacks.problems import Problem

FORMAT = 1  # of the memory; a change of its meaning needs another number

# Config path -> how to get what the user wants, since the cluster cannot be changed into it.
_NEW_CLUSTER = "make a new stack with the new value and move the workload over"
_FIXED = {
    "cluster.name": "names of machines and certificates are made of it",
    "cluster.podCidr": "running pods have addresses of it",
    "cluster.serviceCidr": "Services and the API's certificates have addresses of it",
    "cluster.dnsDomain": "running pods look names up in it",
    "machines.provider": "machines cannot change their kind",
    "machines.lab.subnet": "machines have their addresses of it",
    "network.plugin": "running pods are wired by it",
    "controlPlane.encryptSecrets": "Secrets lie in etcd in the form it chose",
    "pki.caValidityHours": "another lifetime makes other CAs, which no member would trust",
}


class TransitionError(ValueError):
    """Why a running cluster cannot become the plan, as (config path, way out) pairs."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{path}: {text}" for path, text in problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    pool: str
    roles: tuple[str, ...]
    address: str
    fingerprint: str | None  # of the host key


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    kubernetes: str
    fixed: Mapping[str, object]
    machines: Mapping[str, _Machine]


def memory(plan: Plan) -> dict[str, object]:
    """What to remember of a success: plain JSON values without secrets, read back by `check`."""
    pools: dict[str, dict[str, object]] = {}
    for node in plan.nodes:
        pool = pools.setdefault(node.pool, {"roles": list(node.roles), "machines": {}})
        machines = pool["machines"]
        if isinstance(machines, dict):
            machines[node.name] = _identity_of(node)
    return {
        "format": FORMAT,
        "kubernetes": plan.spec.cluster.kubernetes,
        "fixed": _fixed(plan),
        "pools": pools,
    }


def _identity_of(node: Node) -> str:
    """`address` or `address SHA256:...`, short because the state holds it for every node."""
    key = node.ssh.host_key if node.ssh else None
    return node.address if key is None else f"{node.address} {fingerprint(key)}"


def fingerprint(host_key: str) -> str:
    """A public key's fingerprint as `ssh-keygen -l` prints it."""
    digest = hashlib.sha256(base64.b64decode(host_key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def check(previous: Mapping[str, object] | None, plan: Plan) -> None:
    """Refuse what would break the cluster of `previous`. None: there is no cluster yet.

    Raises TransitionError with every problem.
    """
    if previous is None:
        return
    before = _read(previous)
    found = [
        *_immutable(before, plan),
        *_kubernetes(before, plan),
        *_identity(before, plan),
        *_members(before, plan),
        *_masters(before, plan),
    ]
    if found:
        raise TransitionError(sorted(set(found)))


def nodes(previous: Mapping[str, object] | None) -> frozenset[str] | None:
    """Names of the nodes of the last success; None before the first. Raises TransitionError."""
    return None if previous is None else frozenset(_read(previous).machines)


def _fixed(plan: Plan) -> dict[str, object]:
    spec = plan.spec
    lab = spec.machines.provider == "lab"
    return {
        "cluster.name": spec.cluster.name,
        "cluster.podCidr": spec.cluster.pod_cidr,
        "cluster.serviceCidr": spec.cluster.service_cidr,
        "cluster.dnsDomain": spec.cluster.dns_domain,
        "machines.provider": spec.machines.provider,
        "machines.lab.subnet": spec.machines.lab.subnet if lab else None,
        "network.plugin": spec.network.plugin,
        "controlPlane.encryptSecrets": spec.control_plane.encrypt_secrets,
        "pki.caValidityHours": spec.pki.ca_validity_hours,
    }


def _immutable(before: _Memory, plan: Plan) -> list[Problem]:
    now = _fixed(plan)
    return [
        Problem(
            path,
            f"cannot change from {_word(before.fixed[path])} to {_word(now[path])}: {reason}; "
            f"set it back to {_word(before.fixed[path])}, or {_NEW_CLUSTER}",
        )
        for path, reason in _FIXED.items()
        # A field that was not remembered yet is new in this program: there is nothing to compare.
        if before.fixed.get(path) is not None
        and now[path] is not None
        and before.fixed[path] != now[path]
    ]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _kubernetes(before: _Memory, plan: Plan) -> list[Problem]:
    old, new = before.kubernetes, plan.spec.cluster.kubernetes
    if old == new:
        return []
    if versions.number(new) < versions.number(old):
        reason = f"{new} is older than {old}, and it cannot read what {old} wrote to etcd"
    else:
        reason = f"this cluster was made with {old}, and stays with it"
    text = (
        f"{reason}; set it back to {old!r}, or make a new stack with {new!r} and move the workload"
    )
    return [Problem("cluster.kubernetes", f"{text} over")]


def _identity(before: _Memory, plan: Plan) -> list[Problem]:
    """A name stands for one machine: same address, host key and roles for life."""
    out = []
    for node in plan.nodes:
        old = before.machines.get(node.name)
        if old is None:
            continue
        path = f"pools.{node.pool}"
        way = (
            "add the machine under a new name and run up, then take the old name out and run up "
            "again"
        )
        if old.address != node.address:
            text = f"{node.name} moves from {old.address} to {node.address}"
            out.append(Problem(path, f"{text}, which is another machine; {way}"))
        shown = _identity_of(node).partition(" ")[2]
        if old.fingerprint and shown and old.fingerprint != shown:
            text = f"{node.name} has host key {shown}, the machine adopted has {old.fingerprint}"
            out.append(Problem(path, f"{text}; put the old key back, or {way}"))
        if old.roles != node.roles:
            roles = f"[{', '.join(old.roles)}] to [{', '.join(node.roles)}]"
            text = f"{node.name} would change roles from {roles}"
            out.append(Problem(path, f"{text}; machines keep their roles: {way}"))
    return out


def _members(before: _Memory, plan: Plan) -> list[Problem]:
    """etcd members leave one per up: quorum is asked for again between them."""
    old = {name for name, machine in before.machines.items() if "etcd" in machine.roles}
    new = {node.name for node in plan.etcd}
    return _leaving(before, sorted(old - new), stay=len(old & new), what="etcd member")


def _masters(before: _Memory, plan: Plan) -> list[Problem]:
    """Masters leave one per up: those that stay carry clients of the leaving one."""
    old = {name for name, machine in before.machines.items() if "master" in machine.roles}
    new = {node.name for node in plan.masters}
    return _leaving(before, sorted(old - new), stay=len(old & new), what="master")


def _leaving(before: _Memory, names: list[str], *, stay: int, what: str) -> list[Problem]:
    if not names:
        return []
    path = f"pools.{before.machines[names[0]].pool}"
    listed = ", ".join(names)
    if stay == 0:
        text = (
            f"no {what} of the running cluster would stay (leaving: {listed}); add the new ones "
            f"and run up, then take out one {what} per up"
        )
        return [Problem(path, text)]
    if len(names) > 1:
        text = f"{listed} would leave at once; take out one {what}, run up, then the next"
        return [Problem(path, text)]
    return []


def _read(previous: Mapping[str, object]) -> _Memory:
    """The memory, typed. Raises TransitionError when it is not what `memory` wrote."""
    found, fixed, pools = previous.get("format"), previous.get("fixed"), previous.get("pools")
    version = previous.get("kubernetes")
    if found != FORMAT or not isinstance(fixed, Mapping) or not isinstance(pools, Mapping):
        raise TransitionError([_unreadable(f"format {found!r}")])
    if not isinstance(version, str):
        raise TransitionError([_unreadable("no Kubernetes version")])
    machines = {
        name: machine
        for pool, entry in pools.items()
        for name, machine in _machines(str(pool), entry)
    }
    return _Memory(kubernetes=version, fixed=dict(fixed), machines=machines)


def _machines(pool: str, entry: object) -> Iterator[tuple[str, _Machine]]:
    if not isinstance(entry, Mapping):
        raise TransitionError([_unreadable(f"pool {pool!r}")])
    roles, machines = entry.get("roles"), entry.get("machines")
    if not isinstance(roles, list | tuple) or not isinstance(machines, Mapping):
        raise TransitionError([_unreadable(f"pool {pool!r}")])
    for name, identity in machines.items():
        address, _, key = str(identity).partition(" ")
        yield (
            str(name),
            _Machine(
                pool=pool,
                roles=tuple(str(role) for role in roles),
                address=address,
                fingerprint=key or None,
            ),
        )


def _unreadable(what: str) -> Problem:
    text = f"what the stack remembers of its last success cannot be read ({what})"
    return Problem("config", f"{text}; run the version of this program that made it")
