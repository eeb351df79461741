"""When each change happens: the parts of stacks/order/steps.py that run something, in their order.

What is told of a part are the steps in it: a node stands where its step does. A wave says what is
checked before the next begins and what an abort in it leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from stacks.cluster.plan import Plan
from stacks.edits import api_record as edit_api_record
from stacks.edits import membership, snapshots
from stacks.edits.memory import Memory
from stacks.explain import checks, cloud, evictions, front_doors, interrupted, keys, places, rollout
from stacks.explain.actions import NodeChange, Wave, only
from stacks.explain.changes import Changes
from stacks.explain.doing import Doing
from stacks.explain.parts import ABOUT
from stacks.networks import registry as networks
from stacks.order.difference import PARTS, Difference
from stacks.order.step import Part
from stacks.render import join


def waves(before: Memory | None, plan: Plan, found: Changes) -> tuple[Wave, ...]:
    """The waves of an update, first to last; none when nothing is to be done."""
    told = _Telling(before, plan, found).waves()
    return tuple(wave for wave in told if wave.nodes or wave.lines) or rollout.settings(
        before, plan
    )


@dataclass(frozen=True)
class _Telling:
    before: Memory | None
    plan: Plan
    found: Changes

    @property
    def _then(self) -> Plan | None:
        return self.before.plan if self.before else None

    def waves(self) -> Iterator[Wave]:
        yield _cloud("cloud", self._of_cloud(gone=False))
        for part in self._parts():
            yield from self._of(part)
        left = only(self.found.of("leaving"), ["machine"])
        yield Wave(
            title="machines that have left, after the gate",
            order="in parallel",
            nodes=left,
            checked=checks.of_left(self.plan, [node.name for node in left]),
            abort="machines that no longer belong to the cluster; the next update resumes",
        )
        yield _cloud("what leaves the cloud, after the gate", self._of_cloud(gone=True))
        yield Wave(
            title="name of the API that is given up, after the gate",
            order="once",
            nodes=(),
            lines=tuple(edit_api_record.deleted(self.before, self.plan)),
            checked="its record is gone",
            abort="the record is still there; the next update resumes",
        )

    def _parts(self) -> list[Part]:
        """In the order of the steps; parts without any stand where they would."""
        ordered = [*self.found.edit.parts()]
        for part in PARTS:
            if part not in ordered:
                later = (n for n, one in enumerate(ordered) if PARTS.index(one) > PARTS.index(part))
                ordered.insert(next(later, len(ordered)), part)
        return ordered

    @cached_property
    def _running(self) -> Mapping[Part, list[Difference]]:
        """By part, what happens in it."""
        out: dict[Part, list[Difference]] = {}
        stay = {node.name for node in self.plan.nodes}
        for one in self.found.edit.differences:
            leaves = one.mark == "-" and one.step.node and one.step.node.name not in stay
            if one.happens and one.step.part and not leaves:
                out.setdefault(one.step.part, []).append(one)
        return out

    @property
    def _drained(self) -> set[str]:
        """Nodes whose pods are evicted for what changes on them."""
        if self.before is None:
            return set()
        return {name for name, _ in evictions.updated(self.before, self.plan, self.found)}

    def _of(self, part: Part) -> Iterable[Wave]:
        if part == "workers":
            nodes = self._nodes(part, in_turn=False)
            # One that is recreated is told with new machines, and announces something else.
            told = {node.name for node in (*nodes, *self.found.of("rebuilt"))}
            return (
                *rollout.waves(self.plan, nodes, self._drained),
                *rollout.asked_again(self.before, self.plan, told, self._gates()),
            )
        about = ABOUT[part]
        doing = Doing(
            before=self.before,
            plan=self.plan,
            found=self.found,
            running=self._running.get(part, []),
        )
        wave = Wave(
            title=about.title,
            order=about.order,
            nodes=self._nodes(part, in_turn=about.order == "one by one"),
            lines=tuple(self._lines(part)),
            checked=checks.checked(part, doing),
            abort=interrupted.interrupted(part, doing),
        )
        return (wave,)

    def _nodes(self, part: Part, *, in_turn: bool) -> tuple[NodeChange, ...]:
        """What happens to nodes, in the order of the steps: node by node, or turn by turn."""
        turns = list(dict.fromkeys(self._turns(part)))
        if not in_turn:
            first = {name: number for number, (name, _) in reversed([*enumerate(turns)])}
            turns.sort(key=lambda turn: first[turn[0]])
        known = {node.name: node for node in self.found.nodes}
        told: list[NodeChange] = []
        for name, listed in groupby(turns, key=lambda turn: turn[0]):
            phases = [phase for _, phase in listed]
            told += only([known[name]] if name in known else [], phases)
        return tuple(told)

    def _gates(self) -> set[int]:
        """Numbers of gates between waves that were there and run again."""
        return {
            int(one.step.name.rpartition("-")[2])
            for one in self._running.get("workers", [])
            if one.step.phase == "wave" and one.mark == "~"
        }

    def _turns(self, part: Part) -> Iterator[tuple[str, str]]:
        """(node, phase) of each step; one for all nodes is told of each that it is about."""
        for one in self._running.get(part, []):
            phase, name = places.phase(one.step), places.node(one.step)
            if name:
                yield name, phase
            else:
                about = only(self.found.nodes, [phase])
                yield from ((node.name, phase) for node in about)

    def _lines(self, part: Part) -> Iterable[str]:
        """What belongs to no node."""
        running = [one for one in self._running.get(part, []) if one.mark != "-"]
        match part:
            case "leafs":
                return keys.made(self._then, self.plan) if self._then else ()
            case "new machines":
                return () if self.before else keys.born()
            case "settled keys":
                return keys.settled(self._then, self.plan, self.found.keys) or keys.again(running)
            case "API name":
                return [*edit_api_record.changed(self.before, self.plan)] or _asked_again(running)
            case "add-ons" | "user add-ons":
                return self._addons(part)
            case "virtual IP":
                told = [one for one in running if places.phase(one.step) == "vip-holders"]
                return front_doors.holders(self._then, self.plan, told)
        return self._commands(part) if running else ()

    def _commands(self, part: Part) -> Iterable[str]:
        """Of a part that is one command, or begins with one."""
        match part:
            case "snapshot":
                due, saver = (
                    snapshots.reasons(self.before, self.plan),
                    snapshots.place(self.before, self.plan),
                )
                where = saver.name if saver else self.plan.etcd[0].name
                return (f"kept on {where}, because these change: {', '.join(due)}",)
            case "joining":
                joining = sum(one.step.phase == "join" for one in self._running[part])
                return (_token(joining),)
            case "nodes":
                return ("compared with the config, from a master",)
            case "gate":
                return (_gate(self.plan),)
        return ()

    def _addons(self, part: Part) -> Iterator[str]:
        users = {addon.name for plan in (self._then, self.plan) if plan for addon in plan.addons}
        for name, what in self.found.addons:
            if (name in users) is (part == "user add-ons"):
                yield f"{name} {what}"

    def _of_cloud(self, *, gone: bool) -> tuple[str, ...]:
        """What is around machines that stay."""
        if self.before is None:
            return () if gone else cloud.made(self.plan)
        if self._then is None:
            return ()
        kept = membership.kept_machines(self.before, self.plan)
        return (cloud.deleted if gone else cloud.changed)(self._then, self.plan, kept)


def _cloud(title: str, lines: tuple[str, ...]) -> Wave:
    return Wave(
        title=title,
        order="once",
        nodes=(),
        lines=lines,
        checked="the provider says that it is done",
        abort="some of it done; the next update resumes",
    )


def _asked_again(running: Iterable[Difference]) -> Iterator[str]:
    if [*running]:
        yield "asked again whether it points to what serves, nothing changes"


def _token(joining: int) -> str:
    if not joining:
        return "no token is made: no worker joins"
    minutes = join.token_life_s(joining) // 60
    return f"a token to join by is made known to the cluster, and ends after {minutes} minutes"


def _gate(plan: Plan) -> str:
    network = networks.of(plan.spec).PROVED
    doors = f"; the API at {plan.vip}" if plan.vip else ""
    return f"API, controllers, add-ons{doors}" + (
        "; a pod on every node reaches pods, Service, NodePort and DNS" if network else ""
    )
