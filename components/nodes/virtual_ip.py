"""The virtual IP: keepalived on the machines that can hold it, one after another."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pulumi import Resource, Stash
from pulumi_command import remote

from components.ssh.commands import Identity, Machine, after, converge, stamp
from stacks.cluster.plan import Node, Plan
from stacks.phases import front_doors


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualIp:
    """Who holds it, and in which order others come to.

    `<cluster>-<node>-vip` makes a machine stand by, and a master beside load balancers stop.
    `<cluster>-vip-holders` tells the cluster which load balancers may have it.
    """

    cluster: str
    plan: Plan
    machines: Mapping[str, Machine]
    settled: Collection[str]  # nodes that exist already
    identity: Identity
    parent: Resource
    out: Resource  # who leaves is no node any more, and gives it up by the cluster's word
    ready: Sequence[Resource]  # what must be there before anybody can have it

    def hold(self, *, back: bool) -> list[remote.Command]:
        """Nothing without a VIP. `back`: load balancers had it, and masters are to.

        Whoever is to have it stands by before the others stop, and hears them: nobody has it for a
        second only, and an up that ends on the way leaves it where it is.
        """
        if self.plan.load_balancers:
            return self._by_load_balancers()
        if not self.plan.holders:
            return []
        if back:
            standing = self._stand_by(self.ready)
            return [*standing, self._tell(standing)]
        # Load balancers of an edit that is taken back are told before masters forget them.
        told = self._tell(self.ready)
        return [told, *self._stand_by([told])]

    def _by_load_balancers(self) -> list[remote.Command]:
        """Masters let them hear who has it, and stop once all of them stand by."""
        values = front_doors.of_others(self.plan)
        stamps = {
            node: self._stamp(self._name(node), "vip-away", values) for node in self.plan.masters
        }
        made: list[remote.Command] = []
        if self.plan.holders:
            peers = front_doors.of_peers(self.plan)
            for node, own in stamps.items():
                # By the stamp of what stops it: what is tried again, or undone, begins here.
                name = f"{self._name(node)}-peers"
                made.append(self._make(name, node, "vip-peers", peers, own, self.ready))
            made.append(self._tell([*self.ready, *made]))
            made += self._stand_by(made[-1:])
        last = made[-1:] or self.ready
        stopped = [
            self._make(self._name(node), node, "vip-away", values, own, last)
            for node, own in stamps.items()
        ]
        return [*made, *stopped]

    def _stand_by(self, first: Sequence[Resource]) -> list[remote.Command]:
        made: list[remote.Command] = []
        # Who exists hears of new ones first, for one that gets no adverts takes the address.
        for node in sorted(self.plan.holders, key=lambda node: node.name not in self.settled):
            name, values = self._name(node), front_doors.of_holder(self.plan, node)
            own = self._stamp(name, "vip", values)
            made.append(self._make(name, node, "vip", values, own, made[-1:] or first))
        return made

    def _tell(self, first: Sequence[Resource]) -> remote.Command:
        values = front_doors.of_told(self.plan)
        name, master = f"{self.cluster}-vip-holders", self.plan.masters[0]
        own = self._stamp(name, "addon", values)
        return self._make(name, master, "addon", values, own, first)

    def _name(self, node: Node) -> str:
        return f"{self.cluster}-{node.name}-vip"

    def _stamp(self, name: str, phase: str, values: Mapping[str, str]) -> Stash:
        parts = [f"{key}={values[key]}" for key in sorted(values)]
        return stamp(name, phase, parts, parent=self.parent)

    def _make(
        self,
        name: str,
        node: Node,
        phase: str,
        values: Mapping[str, str],
        own: Stash,
        waits: Sequence[Resource],
    ) -> remote.Command:
        return converge(
            name,
            self.machines[node.name],
            phase,
            values,
            identity=self.identity,
            stamp=own,
            opts=after(self.out, *waits, parent=self.parent),
        )
