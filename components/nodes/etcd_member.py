"""One etcd member.

Its keys, then the member itself, joined as a learner and promoted, or founded.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pulumi import ComponentResource, Output, Resource, ResourceOptions
from pulumi_command import remote

from components.pki import key_files
from components.pki.authority import Pki
from components.ssh.commands import ANY_CHANGE, Identity, Machine, after, attempted, converge
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Plan
from stacks.phases import etcd_member


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMemberArgs:
    plan: Plan
    machine: Machine
    files: Mapping[str, File]
    identity: Identity
    pki: Pki
    ready: Resource  # what the keys wait for: the machine can take them
    store_secret: Output[str] | None  # of the object store that snapshots go to


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnArgs:
    after: tuple[Resource, ...]  # what this member's turn waits for
    newborn: bool  # no success is remembered: a cluster may be founded
    leaving: Mapping[str, str]  # addresses of members that leave in this up, by name
    founds: tuple[Resource, ...] | None  # first member: all etcd machines prepared; else None


class EtcdMember(ComponentResource):
    """Resource `<name>-keys`, then by `take_turn` `<name>`, and of the founding one `-found`.

    Keys of a member that exists wait for no turn: where leafs have run out, members refuse each
    other, and a turn would wait for a quorum that only all of the new leafs bring back. etcd reads
    a leaf at every handshake, so placing one restarts nothing.
    """

    def __init__(
        self, name: str, args: EtcdMemberArgs, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("kube-ha:index:EtcdMember", name, None, opts)
        self._name, self._args = name, args
        self.keys = key_files.place(
            f"{name}-keys",
            args.machine,
            key_files.of_member(args.pki, args.plan, args.machine.node, args.store_secret),
            generation=args.plan.spec.converge.generation,
            identity=args.identity,
            keys=etcd_member.secret_keys(args.plan),
            opts=after(args.ready, parent=self),
        )

    def take_turn(self, turn: TurnArgs) -> remote.Command:
        """The member itself. To be called once."""
        args = self._args
        values = etcd_member.whole(args.plan, args.machine.node, args.files)
        before: list[Resource] = [self.keys, *turn.after]
        if turn.founds is not None:
            before.append(self._found(turn, values, turn.founds))
        ready = attempted(
            self._name,
            args.machine,
            "etcd-member",
            {**values, "BOOTSTRAP": "0"},
            identity=args.identity,
            parts=values.values(),
            opts=after(*before, parent=self),
        )
        self.register_outputs({})
        return ready

    def _found(
        self, turn: TurnArgs, values: Mapping[str, str], others: tuple[Resource, ...]
    ) -> remote.Command:
        """Founding runs once in the life of a stack."""
        return converge(
            f"{self._name}-found",
            self._args.machine,
            "etcd-member",
            etcd_member.founding(
                values, leaving=turn.leaving, now_s=time.time(), newborn=turn.newborn
            ),
            identity=self._args.identity,
            opts=after(self.keys, *others, *turn.after, parent=self, ignore=ANY_CHANGE),
        )
