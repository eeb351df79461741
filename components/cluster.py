"""The cluster: its steps, as stacks/order tells them, made into resources."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_command import remote

from components.machines.api_door import ApiDoor
from components.pki.authority import Pki
from components.pki.secrets import Secrets
from components.ssh.commands import Identity, Machine
from components.steps import Registrar
from components.traces import without_traces
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Node, Plan
from stacks.edits.memory import Memory
from stacks.order.scene import Scene
from stacks.order.steps import groups, steps
from stacks.phases import gate, nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterArgs:
    plan: Plan
    files: Mapping[str, Mapping[str, File]]  # what nodes fetch, by architecture and name
    # Makes or finds the machine of a node, once another resource is done.
    machine: Callable[[Node, Resource | None], Machine]
    api_door: Callable[[], ApiDoor | None]  # once every machine is registered
    pki: Pki
    before: Memory | None  # the last success; None: there was none yet
    store_secret: Output[str] | None  # of the object store that snapshots of etcd go to
    api_address: Input[str] | None  # of the load balancer before the masters, if one is made
    addon_secrets: Mapping[str, Output[str]]  # values of Secrets of add-ons, by name


class Cluster(ComponentResource):
    """The steps of an update as resources; `proved`: the gate has passed for this very plan."""

    def __init__(self, name: str, args: ClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Cluster", name, None, opts)
        plan, pki = args.plan, args.pki
        scene = Scene(previous=args.before, plan=plan, files=args.files, now_s=time.time())
        made = Registrar(
            cluster=self,
            identity=Identity(cluster=name, cluster_id=pki.cluster_id, container=plan.containers),
            machine=args.machine,
            api_door=args.api_door,
            secrets=Secrets(
                pki=pki,
                plan=plan,
                store_secret=args.store_secret,
                addon_secrets=args.addon_secrets,
            ),
            patience_s=nodes.more_s(plan),
        )
        for group in groups(scene):
            made.group(group)
        with without_traces():
            for step in steps(scene):
                made.step(step)
        self.machines, self.door = made.machines, made.door
        ends = made.ends(scene.own("nodes"), scene.own("gate"))
        self.proved = _proved(plan, made.said(scene.wanted), ends)
        self.register_outputs({})


def _proved(plan: Plan, wanted: Input[str], ends: Sequence[remote.Command]) -> Output[bool]:
    """Whether both have passed for this very plan; unknown where one of them has not run."""
    return Output.all(
        stdins=[end.stdin for end in ends], wanted=wanted, said=[end.stdout for end in ends]
    ).apply(lambda known: _is_of(known["stdins"], gate.plan_digest(plan), known["wanted"]))


def _is_of(stdins: Sequence[str | None], *parts: str) -> bool:
    """A command that was left out of an update still has the text of the last one."""
    return all(shlex.quote(part) in (stdin or "") for stdin in stdins for part in parts)
