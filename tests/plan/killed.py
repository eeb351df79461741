"""An update whose engine is killed at one of its steps, and the update after it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from tests.plan.graph import Graph
from tests.plan.providers import COPY, STASH
from tests.plan.recording import Engine
from tests.plan.registration import Change, Run
from toolchain.values import Value, plain

# Phases that stop, restart or remove what others need; of a machine that is new only those by which it joins.
# Leafs are read while their programs run: placing them is nobody's turn.
_PHASES = ("node", "etcd", "master-shared-keys", "master")
_JOINING = ("etcd", "master")
_CLUSTER_WIDE = ("retire", "nodes")  # they remove members


@dataclass(frozen=True, kw_only=True)
class Up:
    """One edit applied without a disturbance: the stack before it, the run, the stack after it."""

    config_before: Mapping[str, object]
    config: Mapping[str, object]
    before: Engine
    run: Run
    after: Engine

    @classmethod
    def of(cls, before: Engine, start: Mapping[str, object], edit: Mapping[str, object]) -> Up:
        """The stack `before` is settled in the config `start`."""
        after = before.fork()
        return cls(config_before=start, config=edit, before=before, run=after.up(edit), after=after)

    def killed_at(self, change: Change) -> Engine:
        """The stack when this step is in work: all steps before it are stored, its own end is not."""
        left = self.before.fork()
        steps = list(takewhile(lambda other: other is not change, self.run.changes))
        if change.after is None:
            # Deletes come last, when program and outputs are done with.
            left.outputs = dict(self.after.outputs)
            stored = dict(self.run.resources)
        else:
            order = iter(self.run.resources.items())
            end = change.after.urn
            stored = dict(takewhile(lambda entry: entry[0] != end, order))
        gone = {step.before.urn for step in steps if step.before and step.after is None}
        old = {urn: one for urn, one in left.resources.items() if urn not in stored}
        left.resources = stored | {urn: one for urn, one in old.items() if urn not in gone}
        return left

    @cached_property
    def turns(self) -> Turns:
        return Turns(self.run, self.before)


class Turns:
    """The steps of a run that touch a member or a master, or who is one."""

    def __init__(self, run: Run, before: Engine) -> None:
        there = {resource.name for resource in before.resources.values()}
        self._graph = Graph(run)
        self.nodes = {
            change.name: node
            for change in run.changes
            if change.after is not None and (node := _turn(change.name, there=there))
        }

    def at_once(self) -> list[str]:
        """Pairs of steps of different nodes of which neither waits for the other."""
        names = list(self.nodes)
        return [
            f"{one} and {other}"
            for place, one in enumerate(names)
            for other in names[place + 1 :]
            if self.nodes[one] != self.nodes[other] and not self._ordered(one, other)
        ]

    def before_it(self, name: str) -> list[str]:
        """Steps of other nodes that do not wait for this one."""
        return [
            other
            for other, node in self.nodes.items()
            if node != self.nodes.get(name) and name not in self._graph.before(other)
        ]

    def _ordered(self, one: str, other: str) -> bool:
        return one in self._graph.before(other) or other in self._graph.before(one)


def _turn(name: str, *, there: set[str]) -> str:
    """The node that a step touches, the cluster itself for its own steps, or empty: none that serves."""
    cluster, _, rest = name.partition("-")
    if rest in _CLUSTER_WIDE:
        return cluster
    found = re.fullmatch(r"((?:master|etcd)-\d+)-(.+)", rest)
    if found and found[2] in (_PHASES if name in there else _JOINING):
        return found[1]
    return ""


def end(engine: Engine, *, asked: bool = True) -> dict[str, str]:
    """What a stack has come to: each input and output by `urn key`.

    Stamps are left out, which are new with every attempt, and what the last snapshot was taken for, which stays. So is,
    unless `asked`, what the gates between waves asked last: it says who was there then, and stands for nothing on a node.
    """
    stamps = {
        str(plain(resource.outputs.get("output"))) if resource.type == STASH else resource.id
        for resource in engine.resources.values()
        if resource.type in (STASH, COPY)
    }
    mask = re.compile("|".join(map(re.escape, sorted(stamps))) or "(?!)")
    found = {f"output {key}": value for key, value in engine.outputs.items()}
    for urn, resource in engine.resources.items():
        found[urn] = ""
        if not urn.endswith("-snapshot") and (asked or not re.search(r"-wave-\d+$", urn)):
            # Who was taken out or joined last did so by the attempt of before.
            stays = {"create"} if urn.endswith(("-retire", "-join-token")) else set()
            inputs = resource.inputs.items()
            found |= {f"{urn} {key}": value for key, value in inputs if key not in stays}
    return {key: mask.sub("STAMP", _text(value)) for key, value in found.items()}


def _text(value: Value) -> str:
    value = plain(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """What differs between two ends, with the lines that do."""
    out = []
    for key in sorted({*wanted, *found}):
        one, other = wanted.get(key), found.get(key)
        if one != other:
            lines = difflib.unified_diff(
                (one or "").splitlines(), (other or "").splitlines(), lineterm="", n=0
            )
            kind = "is missing: " if other is None else "is too much: " if one is None else ""
            out.append(f"{kind}{key}\n" + "\n".join([*lines][2:6])[:400])
    return out
