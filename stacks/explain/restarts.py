"""What restarts in the control plane, and what is left to answer meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stacks.cluster.plan import Plan
from stacks.edits import membership, quorum
from stacks.edits.memory import Memory
from stacks.explain.changes import Changes
from stacks.phases.effects import Restart


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """Names of nodes: those of before, and of these the ones that restart."""

    before: Memory
    plan: Plan
    masters: tuple[str, ...]
    api: tuple[str, ...]
    voters: tuple[str, ...]
    etcd: tuple[str, ...]

    @staticmethod
    def of(before: Memory, plan: Plan, found: Changes) -> Restarts:
        """Those of one edit."""

        def restarted(role: str, what: Restart) -> tuple[str, ...]:
            return tuple(
                node.name
                for node in found.of("changed")
                if role in before.machines[node.name].roles
                and any(action.restarts == what for action in node.actions)
            )

        return Restarts(
            before=before,
            plan=plan,
            masters=_with(before, "master"),
            api=restarted("master", "kube-apiserver"),
            voters=_with(before, "etcd"),
            etcd=restarted("etcd", "etcd"),
        )

    def no_api(self) -> Iterator[str]:
        """Nothing answers while the only API server restarts."""
        if len(self.masters) == 1 and self.api:
            yield f"the API does not answer while its only API server restarts ({self.api[0]})"

    def no_quorum(self) -> Iterator[str]:
        """One member, or two: then the other one has no quorum."""
        what = "the API can neither read nor write while"
        if len(self.voters) == 1 and self.etcd:
            yield f"{what} etcd's only member restarts ({self.etcd[0]})"
        elif len(self.voters) == 2 and self.etcd:
            yield (
                f"{what} one of etcd's two members restarts ({', '.join(self.etcd)}): the other "
                "has no quorum"
            )

    def no_tolerance(self) -> Iterator[str]:
        """While members change, the failure of one more ends the quorum."""
        new = [node.name for node in self.plan.etcd]
        down = {*membership.going_first(self.before, self.plan)} & {*self.voters}
        spare = _spare(len(self.voters), len(self.voters))
        for step in quorum.steps(self.voters, new, lost=down):
            if spare > 0 and _spare(step.up, len(step.voters)) <= 0:
                done = "has joined" if step.action == "joins" else "has left"
                yield (
                    f"once {step.member} {done}, one more failure ends its quorum ({step.up} of "
                    f"{len(step.voters)} members are up)"
                )
                return

    def of_endpoint(self) -> Iterator[str]:
        """Clients whose endpoint is one master, or a name that resolves to each of them."""
        then = self.before.plan
        if then is None or len(self.masters) < 2:
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
        if self.api:
            return f"{len(self.api)} API servers restart one at a time, the others answer"
        return self._drifted() or "no API server restarts"

    def members(self) -> str:
        """Why etcd keeps its quorum."""
        if self.etcd:
            return f"{len(self.etcd)} of {len(self.voters)} etcd members restart one at a time"
        return self._drifted() or "no etcd member restarts"

    def _drifted(self) -> str:
        then = self.before.plan
        again = then is not None and then.spec.converge != self.plan.spec.converge
        return "only what has drifted restarts" if again else ""


def _with(before: Memory, role: str) -> tuple[str, ...]:
    return tuple(name for name, machine in before.machines.items() if role in machine.roles)


def _spare(up: int, voters: int) -> int:
    return up - quorum.quorum(voters)
