"""What is told against what is done: the change plan of an edit, and the resources that the same edit changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter

from stacks.cluster import rollout
from stacks.cluster.plan import Plan
from stacks.explain.actions import Wave
from stacks.explain.report import Report
from stacks.phases import desired
from tests.plan import notices
from tests.plan.noticed import Noticed
from tests.plan.registration import Change, Run
from tests.plan.told_places import Place, Places, UnknownResourceError, happens

# What the lines of a wave are about, by the beginning of its title; None: each names it first.
_LINES: Mapping[str, str | None] = {
    "add-ons": None,
    "etcd snapshot": "snapshot",
    "cloud": "cloud",
    "what leaves the cloud": "cloud",
    "new machines": "ground",
    "leafs": "leafs",
    "gates between waves": "waves",
    "virtual IP": "vip-holders",
    "CAs and keys": "keys",
    "workers, wave": "waves",
    "workers that join": "join-token",
    "rollout": "waves",
    "list of nodes": "nodes",
    "name of the API": "api-name",
    "acceptance gate": "gate",
}
# Phases that one command on a master does for all nodes.
_FOR_ALL = frozenset({"nodes", "first", "vip-holders"})
_WAVE = re.compile(r"workers, wave (\d+) of")
_AGAIN = re.compile(r"gates? ([\d, andto]+) of \d+ asks? again")
# Lines that say how, beside those that say what.
_COUNTED = re.compile(r"(.+?): (\d+) resources? (?:is|are) (made|changed|deleted) \(.*\)")
_BESIDE = frozenset({"waves"})


@dataclass(frozen=True, slots=True)
class Finding:
    kind: str
    text: str


@dataclass(frozen=True)
class Told:
    """One edit: what was there (None: nothing), what is wanted, what is told, what was done."""

    then: Plan | None
    plan: Plan
    report: Report
    run: Run

    def findings(self) -> list[Finding]:
        found = [*self._uncovered(), *self._unbacked(), *self._disordered(), *self._miscounted()]
        found += [*self._gates(), *self._noticed()]
        nothing = [] if self.report.waves or not self.run.changes else self.run.changes[:4]
        return [*found, *(Finding("nothing to do", str(change)) for change in nothing)]

    @cached_property
    def told(self) -> list[tuple[int, Place]]:
        """Every place of the plan, with the number of its wave."""
        out: list[tuple[int, Place]] = []
        for number, wave in enumerate(self.report.waves):
            out += [(number, place) for place in _of_lines(wave)]
            for node in wave.nodes:
                for action in node.actions:
                    subject = "" if action.phase in _FOR_ALL else node.name
                    out.append((number, (action.phase, subject)))
        return list(dict.fromkeys(out))

    @cached_property
    def done(self) -> list[tuple[Change, Place]]:
        places = self._places()
        return [(change, places.of(change)) for change in self.run.changes]

    def _places(self) -> Places:
        plans = [plan for plan in (self.then, self.plan) if plan]
        stay = {node.name for node in self.plan.nodes}
        away = {node.name: node for node in self.plan.away}
        nodes = {node.name for plan in plans for node in (*plan.nodes, *plan.away)}
        absent = {node.name for node in self.plan.absent}
        was_absent = {node.name for node in self.then.absent} if self.then else set()
        return Places(
            cluster=self.plan.spec.cluster.name,
            nodes=nodes,
            gone={
                name: "decommission"
                if name in away and away[name].state == "decommissioned"
                else "machine"
                for name in nodes - stay
            },
            adopted=not self.plan.made,
            anew=_of_another_incarnation(self.then, self.plan),
            absent=absent,
            back=was_absent - absent,
            born=self.then is None,
            were=_phases(self.then),
            phases=_phases(self.plan),
            changes={change.name: change for change in self.run.changes},
        )

    def _uncovered(self) -> Iterator[Finding]:
        waves: Counter[Place] = Counter(place for _, place in self.told)
        seen: dict[Place, list[Change]] = {}
        for change, place in self.done:
            seen.setdefault(place, []).append(change)
        for place, changes in seen.items():
            if place[0] == "waves":
                continue
            listed = ", ".join(map(str, changes[:4]))
            if not waves[place]:
                yield Finding(f"not told: {place[0]}", f"{place}: {listed}")
            elif waves[place] > 1 and not _is_another_record(changes):
                yield Finding(f"told twice: {place[0]}", f"{place}: {listed}")

    def _unbacked(self) -> Iterator[Finding]:
        backed = {place for _, place in self.done}
        for _, place in self.told:
            if place not in backed and place[0] not in _BESIDE:
                yield Finding(f"not done: {place[0]}", str(place))

    def _gates(self) -> Iterator[Finding]:
        """A gate of waves that is run again is told with its wave; the first one with any of them."""
        told = {int(m[1]) for wave in self.report.waves if (m := _WAVE.match(wave.title))}
        # One that is recreated is told with new machines, and announces something else.
        recreated = {node.name for node in self.report.changes.of("rebuilt")}
        waves = rollout.node_waves(self.plan)
        # Nothing is told of one that is absent, either.
        recreated |= {node.name for node in self.plan.absent}
        told |= {one.number for one in waves if recreated & {*one.nodes}}
        again = (line for wave in self.report.waves for line in wave.lines)
        for found in map(_AGAIN.match, again):
            told |= {*counted(found[1])} if found else set()
        settings = any(wave.title == "rollout" for wave in self.report.waves)
        anew = {
            int(change.name.rpartition("-")[2])
            for change in self.run.changes
            if change.mark == "!" and re.search(r"-wave-\d+$", change.name)
        }
        for number in anew - told:
            if number or not (told or settings):
                yield Finding(
                    "not told: gate of a wave", f"wave {number}, where {sorted(told)} are told"
                )

    def _miscounted(self) -> Iterator[Finding]:
        """Lines of a cloud say how many."""
        done = Counter(place for _, place in self.done)
        for wave in self.report.waves:
            for line in wave.lines:
                counted = _COUNTED.fullmatch(line)
                place = ("cloud", f"{counted[1]} {counted[3]}") if counted else None
                if counted and place and int(counted[2]) != done[place]:
                    listed = ", ".join(str(one) for one, where in self.done if where == place)
                    yield Finding("miscounted: cloud", f"{line}, where it is {listed}")

    def _disordered(self) -> Iterator[Finding]:
        wave = {place: number for number, place in reversed(self.told)}
        turn = {
            change.after.urn if change.after else f"gone {change.name}": wave[place]
            for change, place in self.done
            if place in wave and happens(change)
        }
        places = {
            change.after.urn: place for change, place in self.done if change.after is not None
        }
        last: dict[str, tuple[int, str]] = {}
        graph = {
            urn: one.dependencies & self.run.resources.keys()
            for urn, one in self.run.resources.items()
        }
        for urn in TopologicalSorter(graph).static_order():
            before = max((last[other] for other in graph[urn]), default=(-1, ""))
            own = turn.get(urn, -1)
            if 0 <= own < before[0]:
                other = places[before[1]]
                text = f"{places[urn]} is told before {other}, and waits for it"
                yield Finding(f"order: {places[urn][0]} before {other[0]}", text)
            last[urn] = max(before, (own, urn))
        end = max(
            (number for urn, number in turn.items() if not urn.startswith("gone ")), default=-1
        )
        for change, place in self.done:
            if f"gone {change.name}" in turn and turn[f"gone {change.name}"] < end:
                text = f"{change} is told too early: whatever goes does so at the end"
                yield Finding(f"order: {place[0]} goes last", text)

    def _noticed(self) -> Iterator[Finding]:
        """Who notices something is told, with what causes it; and nobody else."""
        if self.then is None:
            return
        done = Noticed(self.then, self.plan, self.run)
        said = notices.told(self.report.headline.disruption)
        for cause in done.causes() - said:
            yield Finding(f"not told: {cause.kind}", str(cause))
        for cause in said - done.causes():
            yield Finding(f"not done: {cause.kind}", str(cause))
        whys = {one.why_none for one in self.report.headline.disruption} - {""}
        for why in whys - done.whys():
            yield Finding("not so", f"none ({why}), where it is one of {sorted(done.whys())}")


def _is_another_record(changes: list[Change]) -> bool:
    """The API's record in another zone, or of another name: made in its turn, and the old one goes at the end."""
    return any(change.mark == "!" and change.name.endswith("-api-name") for change in changes)


def counted(spoken: str) -> Iterator[int]:
    """The numbers of `0 to 4 and 7`."""
    for first, last in re.findall(r"(\d+)(?: to (\d+))?", spoken):
        yield from range(int(first), int(last or first) + 1)


def _of_another_incarnation(then: Plan | None, plan: Plan) -> set[str]:
    """Nodes whose name was there, in the cluster or out of use, with a lower generation."""
    known = {node.name: node.generation for node in (*then.nodes, *then.away)} if then else {}
    return {
        node.name for node in plan.nodes if node.generation > known.get(node.name, node.generation)
    }


def _phases(plan: Plan | None) -> dict[str, set[str]]:
    return {node.name: set(desired.of_phases(plan, node)) for node in plan.nodes} if plan else {}


def _of_lines(wave: Wave) -> Iterator[Place]:
    if not wave.lines:
        return
    [about] = [about for title, about in _LINES.items() if wave.title.startswith(title)][:1]
    for line in wave.lines:
        if about == "cloud":
            found = _COUNTED.fullmatch(line)
            assert found, line
            yield "cloud", f"{found[1]} {found[3]}"
        elif about == "leafs":
            renewed = "renewal" if line.startswith("leafs are renewed") else "secrets"
            yield ("outputs" if "certificate" in line else renewed), ""
        elif about is not None:
            yield about, ""
        else:
            yield "addon", line.split(" ")[0]


__all__ = ["Finding", "Told", "UnknownResourceError", "counted"]
