"""From the last successful config of a stack to the wanted one: allowed, or refused with the way.

After a failed up the cluster lies between both, so each rule must hold from either end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stacks.checks import refusals
from stacks.checks.refusals import Refusal
from stacks.cluster.plan import Plan
from stacks.config.network import NetworkSpec
from stacks.config.problems import Problem
from stacks.edits import (
    absent,
    addon_secrets,
    api_record,
    clouds,
    firewall,
    membership,
    memory,
    released,
    rotation,
    serving_certificates,
    token_issuers,
    upgrades,
    warnings,
)
from stacks.edits.memory import Memory, UnreadableMemoryError
from stacks.networks import registry as networks
from stacks.providers import registry

# Config path -> how to get what the user wants, since the cluster cannot be changed into it.
_NEW_CLUSTER = "make a new stack with the new value and move the workload over"
_FIXED = {
    "cluster.name": "names of machines and certificates are made of it",
    "cluster.podCidr": "running pods have addresses of it",
    "cluster.serviceCidr": "Services and the API's certificates have addresses of it",
    "cluster.dnsDomain": "running pods look names up in it",
    "machines.provider": "machines cannot change their kind",
    "network.plugin": "running pods are wired by it",
    "network.nodeCidrMask": "nodes have parts of cluster.podCidr of that size",
    "network.kubeProxyReplacement": "rules and programs for Services are in the kernel of every "
    "node, and those of the one do not make way for those of the other",
    "network.blockSize": "nodes have blocks of that size, and pods addresses of them",
    "controlPlane.encryptSecrets": "Secrets are in etcd in the form it chose",
    "pki.caValidityHours": "another lifetime makes other CAs, which no member would trust",
}
# Between these machines stay as they are: another bastion is made, and then the old one goes.
_PRIVATE = frozenset({"bastion", "tunnel"})
# What clusters had before there was a choice, and so do not remember.
_BEFORE_THE_CHOICE: Mapping[str, object] = {
    "network.nodeCidrMask": 24,
    "network.kubeProxyReplacement": False,
    "network.blockSize": 26,
}
_OTHER_NAME = (
    "add the machine under a new name and run up, then take the old name out and run up again"
)


class TransitionError(ValueError):
    """Why a running cluster cannot become the plan, as (config path, way out) pairs."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{path}: {text}" for path, text in problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a reviewer has to see of an edit that is not refused."""

    allowed: tuple[Refusal, ...] = ()
    warnings: tuple[Problem, ...] = ()


def remembered(previous: Mapping[str, object] | None) -> Memory | None:
    """The memory of a stack, None before its first success. Raises TransitionError."""
    if previous is None:
        return None
    try:
        return memory.read(previous)
    except UnreadableMemoryError as error:
        text = f"what the stack remembers of its last success cannot be read ({error})"
        raise TransitionError(
            [Problem("config", f"{text}; run the version of this program that made it")]
        ) from None


def check(before: Memory | None, plan: Plan) -> Verdict:
    """Refuse what would break the cluster of `before`. None: there is no cluster yet.

    Raises TransitionError with every problem that the config does not allow.
    """
    found = [*absent.of_new(before, plan)] if before is None else _refusals(before, plan)
    refused, allowed, idle = refusals.sift(found, plan.spec.allow)
    if refused:
        raise TransitionError(sorted({one.problem() for one in refused}))
    text = "allows nothing in this change; take it out, or it will allow the next of its kind"
    return Verdict(
        allowed=tuple(sorted(allowed)),
        warnings=(
            *clouds.warnings_of(before, plan),
            *released.warnings_of(before.plan if before else None, plan),
            *api_record.warnings_of(before, plan),
            *warnings.of(before, plan),
            *membership.warnings_of(before, plan),
            *absent.warnings_of(plan),
            *(Problem("allow", f"`{word}` {text}") for word in idle),
        ),
    )


def refused(before: Memory, plan: Plan) -> tuple[Refusal, ...]:
    """What stands in the way from a success of `before` to the plan, for all that it allows."""
    return tuple(refusals.sift(_refusals(before, plan), plan.spec.allow)[0])


def _refusals(before: Memory, plan: Plan) -> list[Refusal]:
    return [
        *_immutable(before, plan),
        *upgrades.refusals(before, plan),
        *_identity(before, plan),
        *_renamed(before, plan),
        *membership.refusals_of(before, plan),
        *absent.refusals(before, plan),
        *_cut_off(before, plan),
        *rotation.refusals(before, plan),
        *token_issuers.refusals(before, plan),
        *serving_certificates.refusals(before, plan),
        *firewall.refusals(before, plan),
        *clouds.refusals_of(before, plan),
        *addon_secrets.refusals(before, plan),
    ]


def _fixed() -> dict[str, str]:
    """What no edit changes, by config path, with the reason."""
    of_providers = {
        f"machines.{name}.{key}": why
        for name, provider in registry.all_().items()
        for key, why in provider.FIXED.items()
    }
    return {**_FIXED, **of_providers}


def _immutable(before: Memory, plan: Plan) -> list[Refusal]:
    was, now = {**_BEFORE_THE_CHOICE, **before.fixed}, memory.fixed(plan)
    return [
        Refusal(
            "fixed",
            path,
            path,
            f"cannot change from {_word(was[path])} to {_word(now[path])}: {reason}; "
            f"set it back to {_word(was[path])}, or {_NEW_CLUSTER}",
        )
        for path, reason in _fixed().items()
        # A field that was not remembered yet is new in this program: there is nothing to compare.
        if was.get(path) is not None
        and now[path] is not None
        and was[path] != now[path]
        and not (path.endswith(".access") and {was[path], now[path]} == _PRIVATE)
    ]


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # The engine gives every number back as a float.
    return f"{value:.0f}" if isinstance(value, float) else repr(value)


def _identity(before: Memory, plan: Plan) -> list[Refusal]:
    """A name stands for one machine: same address, processor, host key and roles for life."""
    out = []
    for name, now in memory.machines(plan.nodes).items():
        old, path = before.machines.get(name), f"pools.{now.pool}"
        if old is None or now.generation > old.generation:
            continue
        if old.address != now.address:
            text = f"{name} moves from {old.address} to {now.address}, which is another machine"
            keep = f"or keep the name with nodes.{name}.generation: {old.generation + 1}"
            out.append(Refusal("machine-moved", name, path, f"{text}; {_OTHER_NAME}, {keep}"))
        if old.arch and old.arch != now.arch:
            text = f"{name} turns from {old.arch} to {now.arch}, which is another machine"
            out.append(Refusal("machine-moved", name, path, f"{text}; {_OTHER_NAME}"))
        if old.fingerprint and now.fingerprint and old.fingerprint != now.fingerprint:
            text = f"{name} has host key {now.fingerprint}, the machine adopted has"
            way = f"put the old key back, or {_OTHER_NAME}"
            out.append(Refusal("host-key", name, path, f"{text} {old.fingerprint}; {way}"))
        if old.roles != now.roles and not _moves_etcd(old.roles, now.roles):
            roles = f"[{', '.join(old.roles)}] to [{', '.join(now.roles)}]"
            text = f"{name} would change roles from {roles}; machines keep their roles"
            out.append(Refusal("roles", name, path, f"{text}: {_OTHER_NAME}"))
    return out


def _moves_etcd(old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    """A master gives its etcd member to another machine, or takes one in."""
    return set(old) ^ set(new) == {"etcd"} and "master" in old


def _renamed(before: Memory, plan: Plan) -> list[Refusal]:
    """A machine that comes back under another name, while it is still the node of the old one."""
    now = memory.machines(plan.nodes)
    marks: dict[str, str] = {}
    for name, old in before.machines.items():
        if name not in now:
            marks |= {mark: name for mark in (old.address, old.fingerprint) if mark}
    out = []
    for name, machine in now.items():
        if name in before.machines:
            continue
        was = marks.get(machine.address) or marks.get(machine.fingerprint or "")
        if was is not None:
            text = (
                f"{name} is the machine of {was}, which leaves in this edit; take {was} out and "
                f"run up, then add it as {name} and run up again"
            )
            out.append(Refusal("machine-renamed", name, f"pools.{machine.pool}", text))
    return out


def _cut_off(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """Settings of the pod network that nodes cannot all take over at once."""
    if before.plan is None:
        return
    for key, cut in networks.cuts(before.plan.spec, plan.spec):
        old, new = (getattr(one.network, key) for one in (before.plan.spec, plan.spec))
        path = NetworkSpec.model_fields[key].alias or key
        back = [*old] if isinstance(old, tuple) else old
        text = f"from {_words(old)} to {_words(new)}: {cut}; set it back to {back!r}"
        kind = f"network-{key.replace('_', '-')}"
        yield Refusal(kind, _words(new), f"network.{path}", text)


def _words(value: object) -> str:
    return (".".join(map(str, value)) or "none") if isinstance(value, tuple) else str(value)
