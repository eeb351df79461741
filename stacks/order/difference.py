"""Which steps an edit runs: those of the last success against those that are wanted.

Pure: what only an update knows, or is secret, counts as other where that which it is made of is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Literal, get_args

from stacks.cluster import artifacts, certificates, clouds, outside, rotation
from stacks.cluster.plan import Plan, Ssh
from stacks.edits import memory
from stacks.edits.memory import Memory
from stacks.order.scene import Scene
from stacks.order.step import Part, Said, Source, Step
from stacks.order.steps import steps
from stacks.phases import nodes, scripts

Mark = Literal["+", "~", "-"]
PARTS: tuple[Part, ...] = get_args(Part)
# Beside values by their names: another way of login, another time to wait for a reboot, another
# script, another stamp, that the machine is recreated, and what is done when it leaves for good.
LOGIN, PATIENCE, SCRIPT, STAMP, RECREATED = "login", "patience", "script", "stamp", "recreated"
LEAVING = "leaving"
# What is on a machine until something runs it, or in the state alone; and what is told with the
# cloud that it is of.
_QUIET = ("attempt", "scripts", "file", "door")
_FOR_THE_CLUSTER = frozenset(scripts.CLUSTER_PHASES) - {"etcd-absent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A step that runs in an edit; `by`: names of what is another one about it."""

    step: Step  # as it is wanted; of one that goes, as it was
    mark: Mark
    by: frozenset[str] = frozenset()

    @property
    def happens(self) -> bool:
        """Whether it does anything to what runs."""
        return self.step.kind not in _QUIET


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What an edit runs."""

    steps: tuple[Step, ...]  # all that are wanted, each behind what it waits for
    differences: tuple[Difference, ...]  # in the same order, those that go come last

    @property
    def dialled(self) -> frozenset[str]:
        """Nodes whose machines something changes; any master does what is done for the cluster."""
        return frozenset(
            one.step.node.name
            for one in self.differences
            if one.step.node
            and one.mark != "-"
            and one.step.kind in ("scripts", "phase")
            and one.step.phase not in _FOR_THE_CLUSTER
        )

    def parts(self) -> tuple[Part, ...]:
        """Parts in which something happens, each behind those that it waits for.

        Raises graphlib.CycleError where two wait for each other: they would be one.
        """
        happening = {one.step.name for one in self.differences if one.happens and one.mark != "-"}
        graph: dict[Part, set[Part]] = {}
        behind: dict[str, frozenset[Part]] = {}
        for step in self.steps:
            waits = (*step.after, step.stamp) if step.stamp else step.after
            known = frozenset[Part]().union(*(behind[name] for name in waits))
            if step.name in happening and step.part:
                graph.setdefault(step.part, set()).update(known - {step.part})
                known |= {step.part}
            behind[step.name] = known
        return tuple(_in_order(graph))


def _in_order(graph: Mapping[Part, set[Part]]) -> Iterator[Part]:
    """Where the graph leaves the choice, as they are told in PARTS."""
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    ready: set[Part] = set()
    while sorter.is_active():
        ready |= {*sorter.get_ready()}
        first = min(ready, key=PARTS.index)
        ready.remove(first)
        sorter.done(first)
        yield first


def edit(before: Memory | None, plan: Plan) -> Edit:
    """Of a memory without its config (`before.plan` is None): what is on machines that come, and
    what is done for the cluster.
    """
    now = _Run(Scene(previous=before, plan=plan, files=artifacts.outlined(plan), now_s=0))
    if before is None:
        found = [Difference(step=one, mark="+") for one in now.steps if not _is_of_no_use(one)]
    elif before.plan is None:
        found = [*_of_those_that_come(now)]
    else:
        then = before.plan
        was = _Run(
            Scene(previous=before, plan=then, files=artifacts.outlined(then), now_s=0),
            marks=outside.marks(then.outside, plan.outside),
        )
        now = replace(now, marks=outside.marks(plan.outside, then.outside))
        gone = (step for step in was.steps if step.name not in now.by_name)
        found = [*_changed(was, now, before), *(Difference(step=one, mark="-") for one in gone)]
    return Edit(steps=now.steps, differences=tuple(found))


def _is_of_no_use(step: Step) -> bool:
    """Of a cluster that is made: what is there from the first day on, for later ones."""
    return step.phase in ("snapshot", "retire")


def _of_those_that_come(now: _Run) -> Iterator[Difference]:
    for step in now.steps:
        if step.node and step.node.name not in now.scene.settled:
            yield Difference(step=step, mark="+")
        elif step.part in ("nodes", "gate") or (step.part == "retire" and not step.ignores):
            yield Difference(step=step, mark="~")


def _changed(was: _Run, now: _Run, before: Memory) -> Iterable[Difference]:
    found: dict[str, Difference] = {}
    written, values = memory.other_scripts(before), memory.other_values(before)
    for step in now.steps:
        old = was.by_name.get(step.name)
        if old is None:
            found[step.name] = Difference(step=step, mark="+")
        else:
            by = set(_by(was.held(old, like=step), now.held(step)))
            if step.ignores not in ("any", "all"):
                by |= {*_written_otherwise(step, values)}
                by |= {STAMP} if step.stamp in found else set()
                by |= {SCRIPT} if step.phase in written else set()
            if step.ignores == "stdin":
                by &= {LOGIN, STAMP, RECREATED, LEAVING}
            if by:
                found[step.name] = Difference(step=step, mark="~", by=frozenset(by))
    return found.values()


def _written_otherwise(step: Step, values: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Names of values of the step that another version of this program has written otherwise."""
    if step.phase == "addon":
        yield from (name for name in values.get("", ()) if step.name.endswith(f"-addon-{name}"))
    elif step.node is not None:
        for name in values.get(step.node.pool, ()):
            phase, _, value = name.partition(" ")
            if step.phase == phase:
                yield value


def _by(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    return (name for name in {*old, *new} if old.get(name) != new.get(name))


@dataclass(frozen=True)
class _Run:
    """The steps of one run, and what the engine would hold of each."""

    scene: Scene
    marks: Mapping[str, str] = field(default_factory=dict)  # of files that the config names

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return steps(self.scene)

    @cached_property
    def by_name(self) -> dict[str, Step]:
        return {step.name: step for step in self.steps}

    def held(self, step: Step, *, like: Step | None = None) -> dict[str, object]:
        """By name, what the step is run again for when it is another one.

        `like`: the step of the same name that says which changes are ignored; default: itself.
        """
        ignores = (like or step).ignores
        if step.kind in ("door", "record", "forget"):
            return {}
        if step.trigger is not None:
            return {"trigger": self._text(step.trigger)}
        if ignores in ("any", "all"):
            return {}
        held: dict[str, object] = dict(self._of_machine(step))
        if step.kind == "machine":
            return held
        if step.is_patient:
            held[PATIENCE] = nodes.more_s(self.scene.plan)
        if ignores != "stdin":
            held |= {name: self._text(said) for name, said in step.values.items()}
        held |= {f"part {number}": self._text(said) for number, said in enumerate(step.parts)}
        return {**held, "text": self._text(step.text)}

    def _of_machine(self, step: Step) -> Iterator[tuple[str, object]]:
        plan, node = self.scene.plan, step.node
        if node is None:
            return
        yield RECREATED, node.generation
        if step.kind == "machine":
            yield "GENERATION", plan.spec.converge.generation if plan.local else 1
            return
        yield "NODE", node.name
        if step.leaves:
            yield LEAVING, plan.spec.machines.on_release
        yield LOGIN, (self._way(node.ssh), clouds.way_in(plan.spec))

    def _way(self, ssh: Ssh | None) -> Ssh | None:
        """By what is in its key files."""
        if ssh is None:
            return None
        bastion = ssh.bastion
        if bastion is not None:
            bastion = replace(bastion, private_key_file=self._mark(bastion.private_key_file))
        return replace(ssh, private_key_file=self._mark(ssh.private_key_file), bastion=bastion)

    def _mark(self, name: str | None) -> str | None:
        return None if name is None else self.marks.get(name, name)

    def _text(self, said: Said) -> str:
        if isinstance(said, str):
            return said
        return said.make(*(self._source(source) for source in said.sources))

    def _source(self, source: Source) -> object:
        """In place of what an update knows: a text that is another one when that is."""
        if source.kind in ("leaf cert", "leaf key"):
            return self._leafs[source.name]
        if source.kind == "encryption keys":
            return {name: name for name in rotation.encryption_keys(self.scene.plan.spec)}
        if source.kind in ("given", "given chain"):
            return self._given(source)
        if source.kind == "door":
            return [self.scene.plan.balancer]
        return f"{source.kind} {source.name} {self._generation(source)}"

    def _given(self, source: Source) -> str:
        wanted = self.scene.plan.spec.front_doors.ingress
        if wanted is None:
            raise KeyError(source.name)
        one = wanted.certificates[int(source.name) - 1]
        files = (one.certificate, one.key) if source.kind == "given" else (one.certificate,)
        return " ".join(self.marks.get(name, name) for name in files)

    def _generation(self, source: Source) -> object:
        known = rotation.of(self.scene.plan.spec)
        match source.kind, source.name:
            case "bundle", ("kubernetes" | "etcd" | "front-proxy") as ca:
                listed = rotation.generations(known[ca])
                return sorted(listed) if ca == "etcd" else listed
            case (("signer key" | "signer cert"), ("kubernetes" | "etcd" | "front-proxy") as ca):
                return rotation.signing(known[ca])
            case (("service account public" | "service account key"), _):
                return rotation.generations(known["service-account"])
            case (("backup key" | "join token"), _):
                return rotation.signing(known["seed"])
            case "store secret", _:
                store = self.scene.plan.spec.etcd.backup.object_store
                return (store.access_key, self._mark(outside.SECRET_NAME)) if store else ""
            case "addon secret", value:
                return self._mark(outside.name_of_value(value))
            case "addon mark", value:
                return self._mark(outside.name_of_value(value)), rotation.signing(known["seed"])
            case "provider id", node:
                return self.scene.plan.node(node).generation
        return ""

    @cached_property
    def _leafs(self) -> dict[str, str]:
        plan = self.scene.plan
        return {leaf.name: text for leaf, text in leafs(plan, certificates.table(plan))}


def leafs(
    plan: Plan, listed: Iterable[certificates.Leaf]
) -> Iterator[tuple[certificates.Leaf, str]]:
    """Each with a text that is another one when the certificate is recreated."""
    known, hours = rotation.of(plan.spec), plan.spec.pki.leaf_validity_hours
    for leaf in listed:
        yield leaf, f"{leaf} signed by {rotation.signing(known[leaf.ca])} for {hours} h"
