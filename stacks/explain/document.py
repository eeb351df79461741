"""The change plan as JSON, for programs: docs/plan.schema.json tells its form."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stacks import version
from stacks.config import redaction
from stacks.explain.actions import Kind, NodeChange, Order, Wave
from stacks.explain.disruption import Audience
from stacks.explain.headline import Counts
from stacks.explain.report import Report

Verb = Literal["add", "change", "replace", "remove"]
Turn = Literal["in parallel", "one at a time", "once"]

VERSION: Literal[1] = (
    1  # a program that reads 1 keeps reading: fields are added, none is taken away
)
_VERBS: Mapping[Kind, Verb] = {
    "new": "add",
    "changed": "change",
    "rebuilt": "replace",
    "leaving": "remove",
}
_TURNS: Mapping[Order, Turn] = {
    "in parallel": "in parallel",
    "one by one": "one at a time",
    "once": "once",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    phase: str
    text: str
    restarts: Literal["etcd", "kube-apiserver"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    verb: Verb
    roles: list[str]
    pool: str | None  # null: not known any more
    actions: list[Action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    title: str
    order: Turn
    lines: list[str]
    nodes: list[Node]
    checked: str
    interrupted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    audience: Audience
    notices: list[str]  # none: it notices nothing
    why_none: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    id: str
    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    kind: Literal["leaf", "ca"]
    name: str
    ends: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RollBack:
    limits: list[str]  # what cannot be taken back, and from when on; none: an edit back does it
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    version: Literal[1]
    program_version: str  # of kube-ha
    cluster: str
    new: bool  # there is no cluster yet
    comparable: bool  # False: the config that was last applied is not known
    nothing_to_do: bool
    changes: list[str]
    nodes: Counts
    disruption: list[Noticed]
    roll_back: RollBack
    allowed: list[Allowed]
    warnings: list[Problem]
    program: list[str]  # what this version of the program does differently
    sizing: str  # for how many nodes settings are made; empty: nothing is decided about it
    certificates: list[Certificate]  # the first to end, as the last success knew them
    waves: list[Phase]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    version: Literal[1]
    program_version: str
    refused: list[Problem]


def as_json(said: Report, warnings: Sequence[tuple[str, str]] = ()) -> str:
    """One object; every node by name, in waves that are not folded."""
    return _dumped(_document(said, warnings))


def refused(problems: Sequence[tuple[str, str]]) -> str:
    """The same of a config, or an edit, that is refused."""
    return _dumped(
        Refused(version=VERSION, program_version=version.VERSION, refused=_problems(problems))
    )


def _dumped(found: Document | Refused) -> str:
    return json.dumps(redaction.inside(_camel(dataclasses.asdict(found))), indent=2)


def _camel(value: object) -> object:
    if isinstance(value, Mapping):
        return {camel(str(key)): _camel(item) for key, item in value.items()}
    return [_camel(item) for item in value] if isinstance(value, list) else value


def camel(key: str) -> str:
    """`roll_back` as `rollBack`."""
    first, *rest = key.split("_")
    return first + "".join(part.title() for part in rest)


def _document(said: Report, warnings: Sequence[tuple[str, str]]) -> Document:
    head = said.headline
    pools = {node.name: node.pool for node in (*said.plan.away, *said.plan.nodes)}
    return Document(
        version=VERSION,
        program_version=version.VERSION,
        cluster=said.plan.spec.cluster.name,
        new=said.is_new,
        comparable=said.changes.comparable,
        nothing_to_do=said.is_empty,
        changes=list(head.edits),
        nodes=head.nodes,
        disruption=[
            Noticed(audience=one.audience, notices=list(one.notices), why_none=one.why_none)
            for one in head.disruption
        ],
        roll_back=RollBack(limits=list(head.no_way_back), text=head.way_back),
        allowed=[Allowed(id=one.id, path=one.path, text=one.text) for one in said.verdict.allowed],
        warnings=_problems(warnings),
        program=list(said.changes.program),
        sizing=said.sizing,
        certificates=[
            Certificate(
                kind="ca" if one.kind == "ca" else "leaf",
                name=one.name,
                ends=f"{one.ends:%Y-%m-%dT%H:%M:%SZ}",
            )
            for one in said.endings
        ],
        waves=[_phase(wave, pools) for wave in said.waves],
    )


def _problems(found: Sequence[tuple[str, str]]) -> list[Problem]:
    return [Problem(path=path, text=text) for path, text in found]


def _phase(wave: Wave, pools: Mapping[str, str]) -> Phase:
    return Phase(
        title=wave.title,
        order=_TURNS[wave.order],
        lines=list(wave.lines),
        nodes=[_node(node, pools) for node in wave.nodes],
        checked=wave.checked,
        interrupted=wave.abort,
    )


def _node(node: NodeChange, pools: Mapping[str, str]) -> Node:
    return Node(
        name=node.name,
        verb=_VERBS[node.kind],
        roles=list(node.roles),
        pool=pools.get(node.name),
        actions=[
            Action(phase=one.phase, text=one.text, restarts=one.restarts) for one in node.actions
        ],
    )
