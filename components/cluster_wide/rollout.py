"""Changes reach workers that exist in waves: gates that open one wave after the other.

A gate depends on no node. It asks the cluster whether those of its wave announce what is wanted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

from pulumi import ComponentResource, Output, Resource, ResourceOptions

from components.nodes.prepared import announced
from components.ssh.commands import ANY_CHANGE, Identity, Machine, after, converge
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Plan
from stacks.phases import wave


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutArgs:
    plan: Plan
    machine: Machine  # a master
    identity: Identity
    files: Mapping[str, Mapping[str, File]]  # what nodes fetch, by architecture and name
    ca_cert: Output[str]
    settled: Collection[str]  # workers that exist; others are in no wave yet
    after: Resource  # the control plane is as wanted


class Rollout(ComponentResource):
    """Resources `<cluster>-wave-0` to `<cluster>-wave-<n-1>` of n waves; gate k opens wave k+1.

    What follows the last wave, the list of nodes, waits for its nodes itself. A gate runs when what
    the nodes of its wave should be has changed, and at no other time: neither when a node comes or
    goes nor when only a limit changes.
    """

    def __init__(self, name: str, args: RolloutArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Rollout", name, None, opts)
        plan = args.plan
        known = Output.all(
            **{
                node.name: announced(plan, node, args.files[node.arch], args.ca_cert)
                for node in plan.workers
            }
        )
        self._opens: dict[str, Resource] = {}
        self.last: Resource = args.after
        for gate in wave.gates(plan, args.settled):
            # While nobody is held back, one gate need not wait for the other.
            first = self.last if args.settled else args.after
            self.last = _gate(name, args, gate, known, after(first, parent=self, ignore=ANY_CHANGE))
            self._opens |= dict.fromkeys(gate.opens, self.last)
        self.register_outputs({})

    def opens(self, node: str) -> Resource:
        """What the update of a worker that exists waits for."""
        return self._opens[node]


def _gate(
    cluster: str,
    args: RolloutArgs,
    gate: wave.Gate,
    known: Output[dict[str, str]],
    opts: ResourceOptions,
) -> Resource:
    listed = {
        key: known.apply(partial(wave.lines, args.plan, names)) for key, names in gate.lists.items()
    }
    return converge(
        f"{cluster}-wave-{gate.number}",
        args.machine,
        "wave",
        {**listed, **gate.settings},
        identity=args.identity,
        opts=ResourceOptions.merge(
            opts,
            # In place of an update: the engine ignores no change of a resource that it makes
            # anew, and deleting the old one runs nothing.
            ResourceOptions(
                replacement_trigger=known.apply(partial(wave.trigger, args.plan, gate))
            ),
        ),
    )
