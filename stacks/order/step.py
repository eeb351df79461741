"""One step of an update, as data: what is made, on which machine, after what, of which values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from stacks.cluster.plan import Node

# A machine; node scripts or a file brought to one; an attempt stamp; a phase on a machine; its
# command kept as it is; where the API's name leads; the record; a program on this computer.
Kind = Literal[
    "machine", "scripts", "file", "attempt", "phase", "forget", "door", "record", "local"
]
# Which part of a cluster's life a step is of; steps.py lists them.
Part = Literal[
    "machines",
    "leafs",
    "snapshot",
    "retire",
    "new machines",
    "members",
    "masters",
    "control plane",
    "settled keys",
    "add-ons",
    "joining",
    "user add-ons",
    "load balancers",
    "workers",
    "API name",
    "nodes",
    "stopped",
    "ingress",
    "virtual IP",
    "gate",
]
GroupKind = Literal["EtcdMember", "Master", "Rollout", "Addons", "Acceptance", "WorkerPool"]


class Source(NamedTuple):
    """Something that only an update knows, or that is secret: by kind and name."""

    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class From:
    """A text that is made of such sources."""

    sources: tuple[Source, ...]
    make: Callable[..., str]


Said = str | From
DOOR = "door"  # the step whose parts a load balancer of the cloud's is made of


class Group(NamedTuple):
    """A component that is the parent of steps."""

    kind: GroupKind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    name: str  # of the resource; also by which others wait for it
    kind: Kind
    part: Part | None = None  # None: of the part that its life is told in
    node: Node | None = None  # on whose machine
    phase: str = ""
    parent: str = ""  # name of a group; empty: the cluster itself
    after: tuple[str, ...] = ()
    values: Mapping[str, Said] = field(default_factory=dict)  # what a phase is told
    parts: tuple[Said, ...] = ()  # of an attempt or a copy: new when one of them is another
    stamp: str = ""  # name of the attempt or copy that it belongs to
    word: str = ""  # in place of a stamp
    # Changes that do not run it again; "all": what deleting it would run is kept too.
    ignores: Literal["", "any", "all", "stdin"] = ""
    trigger: Said | None = None  # what makes it run in place of any change
    is_secret: bool = False  # all that it is told
    leaves: bool = False  # deleting it makes the machine leave
    is_patient: bool = False  # the machine may be on its way back from a reboot
    text: Said = ""  # of a program's stdin; path of a file
    content: str = ""  # of a file that is not on this computer, whose path is a name then
    is_big: bool = False  # that content: too much to be in the state
    target: str = ""  # name of a file on the machine; the program's command line

    def then(self, *names: str) -> Step:
        """The same after some more."""
        return replace(self, after=(*self.after, *names))


def of_part(part: Part, steps: Iterable[Step]) -> Iterator[Step]:
    """Steps of one part, but for those that say another one themselves."""
    for step in steps:
        yield step if step.part else replace(step, part=part)


def ca() -> Source:
    """By what the API is known, PEM."""
    return Source("bundle", "kubernetes")


def stripped(known: str) -> str:
    return known.rstrip("\n")
