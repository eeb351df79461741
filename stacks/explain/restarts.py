"""What restarts in the control plane, and what is left to answer meanwhile: read off the steps."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from stacks.cluster.plan import Plan
from stacks.edits import membership, quorum
from stacks.edits.memory import Memory
from stacks.explain.changes import Changes
from stacks.order.difference import Difference
from stacks.phases.effects import Restart


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """An API server or a member of etcd that stops for a while."""

    program: Restart
    node: str
    left: int  # how many of its kind answer meanwhile
    of: int  # API servers that serve just before, or voters


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A member of etcd that has joined or left; behind it so many of the voters are up."""

    member: str
    joins: bool
    up: int
    voters: int


@dataclass(slots=True)
class _ControlPlane:
    """Who serves and who votes, step by step."""

    serving: set[str]
    voters: list[str]
    down: set[str]  # do not answer, whatever else is so
    stops: list[Stop] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)

    def without(self, names: Collection[str]) -> None:
        self.serving -= {*names}
        self.down |= {*names}  # whoever is taken out first is dead, or about to be
        self.leave(names)

    def leave(self, names: Collection[str]) -> None:
        for name in [one for one in self.voters if one in names]:
            self.voters.remove(name)
            self._moved(name, joins=False)

    def vote(self, name: str) -> None:
        """It is new, or back from where it was."""
        self.down.discard(name)
        if name not in self.voters:
            self.voters.append(name)
            self._moved(name, joins=True)

    def _moved(self, name: str, *, joins: bool) -> None:
        up = len({*self.voters} - self.down)
        self.moves.append(Move(member=name, joins=joins, up=up, voters=len(self.voters)))

    def stop(self, program: Restart, node: str) -> None:
        if program == "etcd" and node in self.voters:
            # Its API server asks it alone, and drains first where others serve.
            if node in self.serving and len(self.serving) > 1:
                self.stop("kube-apiserver", node)
            left = len({*self.voters} - self.down - {node})
            self.stops.append(Stop(program=program, node=node, left=left, of=len(self.voters)))
        elif program == "kube-apiserver" and node in self.serving:
            left = len(self.serving - {node})
            self.stops.append(Stop(program=program, node=node, left=left, of=left + 1))


@dataclass(frozen=True)
class Restarts:
    """Of one edit of a living cluster."""

    before: Memory
    plan: Plan
    found: Changes

    @property
    def stops(self) -> tuple[Stop, ...]:
        """In the order of the steps; a program that stops twice is there twice."""
        return tuple(self._known.stops)

    @cached_property
    def _known(self) -> _ControlPlane:
        """At the end of the edit, with all that happened."""
        down = {node.name for node in self.plan.absent}
        down |= {node.name for node in self.before.plan.absent} if self.before.plan else set()
        known = _ControlPlane(
            serving={*_with(self.before, "master")} - down,
            voters=[*self.voters],
            down=down,
        )
        for one in self.found.edit.differences:
            if one.mark != "-" and one.step.kind == "phase" and one.step.node:
                self._run(known, one, one.step.node.name)
        return known

    def _run(self, known: _ControlPlane, one: Difference, node: str) -> None:
        phase = one.step.phase
        if phase == "retire":
            known.without(membership.going_first(self.before, self.plan))
        elif phase == "nodes":
            stay = {node.name for node in self.plan.etcd}
            known.leave([name for name in known.voters if name not in stay])
        elif phase == "etcd-member" and node not in {*known.voters} - known.down:
            known.vote(node)
        elif phase == "master" and node not in known.serving:
            known.serving.add(node)
        else:
            for program in sorted(self._restarted.get((node, phase), ())):
                known.stop(program, node)

    @cached_property
    def _restarted(self) -> dict[tuple[str, str], set[Restart]]:
        """By node and phase, what its actions restart."""
        out: dict[tuple[str, str], set[Restart]] = {}
        for node in self.found.of("changed"):
            for action in node.actions:
                if action.restarts:
                    out.setdefault((node.name, action.phase), set()).add(action.restarts)
        return out

    @property
    def voters(self) -> tuple[str, ...]:
        """Members of etcd at the last success."""
        return _with(self.before, "etcd")

    @property
    def api(self) -> tuple[str, ...]:
        """Nodes whose API server restarts."""
        return _nodes(self.stops, "kube-apiserver")

    @property
    def etcd(self) -> tuple[str, ...]:
        """Nodes whose member of etcd restarts."""
        return _nodes(self.stops, "etcd")

    def no_api(self) -> Iterator[str]:
        """Nothing answers while the only API server restarts."""
        alone = [one for one in self.stops if one.program == "kube-apiserver" and not one.left]
        if alone:
            yield f"the API does not answer while its only API server restarts ({alone[0].node})"

    def no_quorum(self) -> Iterator[str]:
        """Neither one member nor two have one while a member restarts."""
        what = "the API can neither read nor write while"
        lost = [
            one for one in self.stops if one.program == "etcd" and one.left < quorum.quorum(one.of)
        ]
        names = ", ".join(dict.fromkeys(one.node for one in lost))
        if lost and lost[0].of == 1:
            yield f"{what} etcd's only member restarts ({names})"
        elif lost:
            of = f"one of etcd's {lost[0].of} members restarts ({names})"
            yield f"{what} {of}: without it there is no quorum"

    def no_tolerance(self) -> Iterator[str]:
        """While members change, the failure of one more ends the quorum."""
        was_absent = {node.name for node in self.before.plan.absent} if self.before.plan else set()
        spare = _spare(len({*self.voters} - was_absent), len(self.voters))
        for move in self._known.moves:
            if spare > 0 and _spare(move.up, move.voters) <= 0:
                done = "has joined" if move.joins else "has left"
                yield (
                    f"once {move.member} {done}, one more failure ends its quorum ({move.up} of "
                    f"{move.voters} members are up)"
                )
                return

    def of_endpoint(self) -> Iterator[str]:
        """Clients whose endpoint is one master, or a name that resolves to each of them."""
        then = self.before.plan
        if then is None or len(_with(self.before, "master")) < 2 or [*self.no_api()]:
            return
        host = then.endpoint.rpartition(":")[0]
        [*owners] = [node.name for node in then.masters if node.address == host]
        replaced = membership.rebuilt(self.before, self.plan)
        for name in owners:
            if name in self.api:
                yield f"{then.endpoint} does not answer while its API server restarts ({name})"
            elif name in replaced:
                yield f"{then.endpoint} does not answer while {name} is replaced"
        by_turns = then.spec.front_doors.dns != "none" and not then.vip and then.balancer == "none"
        if by_turns and not owners and self.api:
            yield (
                f"{host} resolves to every master: a client that gets the one whose API server "
                "restarts has to try again"
            )

    def api_servers(self) -> str:
        """Why clients of the API notice nothing."""
        if len(self.api) > 1:
            return f"{len(self.api)} API servers restart one at a time, the others answer"
        if self.api:
            return "1 API server restarts, the others answer"
        return self._drifted() or "no API server restarts"

    def members(self) -> str:
        """Why etcd keeps its quorum."""
        if len(self.etcd) > 1:
            return f"{len(self.etcd)} of {len(self.voters)} etcd members restart one at a time"
        if self.etcd:
            return f"1 of {len(self.voters)} etcd members restarts"
        return self._drifted() or "no etcd member restarts"

    def _drifted(self) -> str:
        then = self.before.plan
        again = then is not None and then.spec.converge != self.plan.spec.converge
        return "only what has drifted restarts" if again else ""


def _with(before: Memory, role: str) -> tuple[str, ...]:
    return tuple(name for name, machine in before.machines.items() if role in machine.roles)


def _nodes(stops: Collection[Stop], program: Restart) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.node for one in stops if one.program == program))


def _spare(up: int, voters: int) -> int:
    return up - quorum.quorum(voters)
