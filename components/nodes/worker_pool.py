"""How workers join: by a token of the hour, side by side, each on its own.

At most five resources a worker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pulumi import ComponentResource, Output, Resource, ResourceOptions, Stash

from components.nodes import join_token
from components.nodes.prepared import Prepared
from components.pki.authority import Pki
from components.ssh.commands import ANY_CHANGE, Identity, Machine, after, converge
from stacks.cluster.plan import Node, Plan
from stacks.phases import join


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinArgs:
    plan: Plan
    master: Machine
    machines: Mapping[str, Machine]  # by node name, workers among them
    prepared: Mapping[str, Prepared]
    identity: Identity
    pki: Pki
    settled: Collection[str]  # nodes that exist
    anew: Collection[str]  # nodes that join again under their name
    served: tuple[Resource, ...]  # the API that tokens are made known to, and what guards it
    attempt: Stash  # new with every change of the plan


def join_workers(cluster: str, args: JoinArgs, *, parent: Resource) -> Resource:
    """Resource `<cluster>-join-token`, which is returned, and a pool of workers for each pool."""
    plan = args.plan
    joining = [node for node in plan.workers if node.name not in args.settled]
    pending = sorted(joining, key=lambda node: node.name)
    token = join_token.token(args.pki, pending)
    joinable = join_token.mint(
        f"{cluster}-join-token",
        plan,
        args.master,
        token,
        pending=pending,
        identity=args.identity,
        attempt=args.attempt,
        parent=parent,
        waits_for=args.served,
    )
    known = Output.all(args.pki.bundle("kubernetes"), token)
    for pool in sorted({node.pool for node in plan.workers}):
        names = [node.name for node in plan.workers if node.pool == pool]
        WorkerPool(
            f"{cluster}-{pool}",
            WorkerPoolArgs(
                plan=plan,
                machines={name: args.machines[name] for name in names},
                prepared={name: args.prepared[name] for name in names},
                identity=args.identity,
                anew=args.anew,
                known=known,
                joinable=joinable,
            ),
            opts=ResourceOptions(parent=parent),
        )
    return joinable


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPoolArgs:
    plan: Plan
    machines: Mapping[str, Machine]  # of this pool, by node name
    prepared: Mapping[str, Prepared]
    identity: Identity
    anew: Collection[str]  # nodes that join again under their name
    known: Output[list[str]]  # CA of the API and join token
    joinable: Resource  # the token is known to the cluster


class WorkerPool(ComponentResource):
    """Resource `<cluster>-<worker>-join` for each worker."""

    def __init__(
        self, name: str, args: WorkerPoolArgs, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("kube-ha:index:WorkerPool", name, None, opts)
        cluster = args.plan.spec.cluster.name
        for node_name, machine in sorted(args.machines.items()):
            converge(
                f"{cluster}-{node_name}-join",
                machine,
                "join",
                args.known.apply(partial(_told, args.plan, machine.node)),
                identity=args.identity,
                secret=True,
                # Joining happens once, with the token of that hour; later changes are the node
                # phase's.
                opts=after(
                    args.prepared[node_name].ready,
                    args.joinable,
                    parent=self,
                    ignore=() if node_name in args.anew else ANY_CHANGE,
                ),
            )
        self.register_outputs({})


def _told(plan: Plan, node: Node, known: Sequence[str]) -> dict[str, str]:
    ca, token = known
    return join.of_join(plan, node, ca, token)
