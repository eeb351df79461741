"""The last two resources of every update.

The list of nodes as wanted, and the gate that proves that the cluster works.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Output, Resource, ResourceOptions

from components.access import endpoint_check
from components.machines.api_door import ApiDoor
from components.ssh.commands import Identity, Machine, after, converge, stamp
from stacks.cluster.plan import Plan
from stacks.phases import gate, nodes, scripts


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceArgs:
    plan: Plan
    machine: Machine  # a master
    identity: Identity
    applied: Mapping[str, Output[str]]  # by node name: what it announces when it is as wanted
    after: Sequence[Resource | None]
    # What happens on machines once they are out of the list of nodes, and before the gate.
    between: Callable[[Resource], Sequence[Resource]]
    ca: Output[str]  # by which the API is known, PEM
    door: ApiDoor | None  # where the API's name leads by a record of the stack's


class Acceptance(ComponentResource):
    """Resources `<cluster>-nodes` and `<cluster>-gate`, made by `prove`.

    Neither depends on the nodes: they ask the cluster.
    """

    def __init__(self, name: str, plan: Plan, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Acceptance", name, None, opts)
        # Reverting a change that broke off must take out whoever has joined by it, and prove the
        # cluster again: `attempt` has to be stored before anybody joins or leaves.
        self.attempt = stamp(
            f"{plan.spec.cluster.name}-acceptance",
            "nodes",
            [scripts.script_sum("gate"), gate.plan_digest(plan)],
            parent=self,
        )

    def prove(self, args: AcceptanceArgs) -> Output[bool]:
        """The list of nodes, then the gate. To be called once.

        Whether both have passed for this very plan; unknown where one of them has not run.
        """
        plan, there = args.plan, nodes.wanted_nodes(args.plan)
        wanted = Output.all(**{node.name: args.applied[node.name] for node in there}).apply(
            lambda known: nodes.wanted(there, known)
        )
        listed = converge(
            f"{plan.spec.cluster.name}-nodes",
            args.machine,
            "nodes",
            {**nodes.of_nodes(plan), "WANTED": wanted},
            identity=args.identity,
            stamp=self.attempt,
            opts=after(*args.after, parent=self),
        )
        between = args.between(listed)
        asked = endpoint_check.ask(
            plan,
            args.door,
            ca=args.ca,
            stamp=self.attempt,
            opts=after(listed, *between, parent=self),
        )
        proof = converge(
            f"{plan.spec.cluster.name}-gate",
            args.machine,
            "gate",
            {**gate.of_gate(plan), "APPLIED": wanted},
            identity=args.identity,
            stamp=self.attempt,
            opts=after(listed, *between, *asked, parent=self),
        )
        self.register_outputs({})
        return Output.all(
            stdins=[listed.stdin, proof.stdin], wanted=wanted, said=[listed.stdout, proof.stdout]
        ).apply(lambda known: _is_of(known["stdins"], gate.plan_digest(plan), known["wanted"]))


def _is_of(stdins: Sequence[str | None], *parts: str) -> bool:
    """A command that was left out of an update still has the text of the last one."""
    return all(shlex.quote(part) in (stdin or "") for stdin in stdins for part in parts)
