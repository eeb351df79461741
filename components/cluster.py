"""The one file that knows the order in which a cluster is made and changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Output, Resource, ResourceOptions, Stash

from components.access import api_record
from components.cluster_wide import retirement
from components.cluster_wide.acceptance import Acceptance, AcceptanceArgs
from components.cluster_wide.addons import Addons, AddonsArgs
from components.cluster_wide.etcd_snapshot import snapshot_first
from components.cluster_wide.manifests import apply_manifests
from components.cluster_wide.rollout import Rollout, RolloutArgs
from components.cluster_wide.rotation import settle_keys
from components.machines.api_door import ApiDoor
from components.nodes.decommission import decommission
from components.nodes.etcd_member import EtcdMember, EtcdMemberArgs, TurnArgs
from components.nodes.ingress import end_tls
from components.nodes.load_balancers import make_ready
from components.nodes.master import Master, MasterArgs
from components.nodes.prepared import Prepared, Scripts, bring_scripts, prepare
from components.nodes.virtual_ip import VirtualIp
from components.nodes.worker_pool import JoinArgs, join_workers
from components.pki.authority import Pki
from components.ssh.commands import Identity, Machine, after, converge, forget, patient
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Node, Plan
from stacks.edits import membership, snapshots
from stacks.edits.memory import Memory
from stacks.phases import nodes, preflight


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


class Cluster(ComponentResource):
    """Leafs, snapshot, dead nodes out, etcd, masters, add-ons, workers, acceptance: in this order.

    Load balancers change beside the workers, and get the virtual IP at the end.

    A cluster that is being born overlaps etcd members with masters. One that lives changes one
    machine at a time, whole; new machines are made ready at once; existing workers come after the
    masters, in waves.
    """

    def __init__(self, name: str, args: ClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Cluster", name, None, opts)
        self._name, self._args, self._plan = name, args, args.plan
        self._identity = Identity(
            cluster=name, cluster_id=args.pki.cluster_id, container=self._plan.containers
        )
        self._anew = frozenset(membership.rebuilt(args.before, self._plan))
        self._settled = set(args.before.machines) - self._anew if args.before else set()
        self._prepared: dict[str, Prepared] = {}
        self._member_keys: dict[str, EtcdMember] = {}
        self._master_keys: dict[str, Master] = {}
        self._members: dict[str, Resource] = {}
        self._masters: dict[str, Resource] = {}
        self.machines = {
            node.name: args.machine(node, None)
            for node in self._plan.nodes
            if node.name not in self._anew
        }
        self._scripts: dict[str, Scripts] = {}

        acceptance = Acceptance(f"{name}-acceptance", self._plan, opts=ResourceOptions(parent=self))
        self._retired = self._first(acceptance.attempt, self._place_leafs(acceptance.attempt))
        self.machines |= {
            node.name: args.machine(node, self._retired)
            for node in self._plan.nodes
            if node.name in self._anew
        }
        self._control_plane()
        first, last = self._masters[self._plan.masters[0].name], self._last_master()
        served = settle_keys(
            self._plan,
            self._master_machine(),
            identity=self._identity,
            parent=self,
            first=first if args.before is None else last,
            last=last,
        )
        self.door = args.api_door()
        named = self._name_api(last)
        addons = self._addons(served)
        joinable, opened = self._workers(served, last, acceptance.attempt, addons.guards)
        # The token first: what an add-on's objects wait for may run on workers.
        given = apply_manifests(
            name,
            self._plan,
            self._master_machine(),
            identity=self._identity,
            parent=self,
            waits_for=(*addons.applied, joinable),
        )
        self._doors = self._load_balancers(last)
        balanced = [self._doors[n] for n in self._doors if n in self._settled][-1:]
        self.proved = acceptance.prove(
            AcceptanceArgs(
                plan=self._plan,
                machine=self._master_machine(),
                identity=self._identity,
                applied={node: prepared.applied for node, prepared in self._prepared.items()},
                # The token too: only one phase runs on a machine, and the list waits for those
                # that join by it. The last member: one on its own machine may come after masters.
                # Whoever leaves does so once the API's name leads to others.
                after=(
                    *(last, named, joinable, opened),
                    *[*self._members.values()][-1:],
                    *addons.applied,
                    *given,
                    # Who leaves the control plane is in no HAProxy any more.
                    *balanced,
                ),
                between=self._out,
                ca=args.pki.bundle("kubernetes"),
                door=self.door,
            )
        )
        self.register_outputs({})

    def _place_leafs(self, attempt: Resource) -> list[Resource]:
        """Leafs on all machines that exist, side by side, before anything asks etcd or an API.

        Where they have run out nothing else can work: no member takes another for one.
        """
        placed: list[Resource] = []
        for node in self._plan.nodes:
            if node.name in self._settled and (node.is_etcd or node.is_master):
                ready = self._bring(node, waits_for=attempt).copied
                if node.is_etcd:
                    placed.append(self._keys_of_member(node, ready).keys)
                if node.is_master:
                    placed.append(self._keys_of_master(node, ready).keys)
        return placed

    def _first(self, attempt: Stash, leafs: Sequence[Resource]) -> Resource:
        """Before others change: etcd is saved where that is due, then who is dead is taken out."""
        edit = (self._args.before, self._plan)
        survivor = retirement.survivor(*edit)
        saver = snapshots.place(*edit) or survivor
        saved = snapshot_first(
            *edit,
            self.machines[saver.name],
            identity=self._identity,
            waits_for=(self._bring(saver, waits_for=None).copied, attempt, *leafs),
            parent=self,
        )
        return retirement.retire_first(
            *edit,
            self.machines[survivor.name],
            identity=self._identity,
            stamp=attempt,
            waits_for=(self._bring(survivor, waits_for=None).copied, saved),
            parent=self,
        )

    def _control_plane(self) -> None:
        controllers = [node for node in self._plan.nodes if node.is_etcd or node.is_master]
        if self._args.before is None:
            for node in controllers:
                self._prepare(node, waits_for=None)
            for node in self._plan.etcd:
                self._member(node, after=tuple(self._members.values())[-1:])
            for node in self._plan.masters:
                stacked = self._plan.etcd_stacked
                own = [self._members[node.name]] if stacked else list(self._members.values())
                self._master(node, after=(*own, *tuple(self._masters.values())[-1:]))
            return
        turn: tuple[Resource, ...] = (self._retired,)
        for node in (*self._plan.etcd, *(n for n in self._plan.masters if not n.is_etcd)):
            exists = node.name in self._args.before.machines and node.name not in self._anew
            prepared = self._prepare(node, waits_for=turn[-1] if exists else None)
            turn = (*turn[-1:], prepared.ready)
            if node.is_etcd:
                turn = (self._member(node, after=turn),)
            if node.is_master:
                turn = (self._master(node, after=turn),)

    def _bring(self, node: Node, *, waits_for: Resource | None) -> Scripts:
        if node.name not in self._scripts:
            self._scripts[node.name] = bring_scripts(
                f"{self._name}-{node.name}",
                self._plan,
                self.machines[node.name],
                self._args.files[node.arch],
                ca_cert=self._args.pki.bundle("kubernetes"),
                parent=self,
                waits_for=waits_for,
            )
        return self._scripts[node.name]

    def _prepare(self, node: Node, *, waits_for: Resource | None) -> Prepared:
        self._prepared[node.name] = prepare(
            f"{self._name}-{node.name}",
            self.machines[node.name],
            self._bring(node, waits_for=waits_for),
            preflight.preflight(
                self._plan, node, self._args.files[node.arch], settled=self._settled
            ),
            identity=self._identity,
            anew=node.name in self._anew,
            parent=self,
            waits_for=waits_for,
        )
        return self._prepared[node.name]

    def _member(self, node: Node, *, after: tuple[Resource, ...]) -> Resource:
        first = node.name == self._plan.etcd[0].name
        everywhere = tuple(
            self._prepared[other.name].ready
            for other in self._plan.etcd
            if other.name in self._prepared
        )
        member = self._keys_of_member(node, self._prepared[node.name].ready)
        self._members[node.name] = member.take_turn(
            TurnArgs(
                after=(self._prepared[node.name].ready, *after),
                newborn=self._args.before is None,
                leaving=membership.leaving_members(self._args.before, self._plan),
                founds=everywhere if first else None,
            )
        )
        return self._members[node.name]

    def _keys_of_member(self, node: Node, ready: Resource) -> EtcdMember:
        if node.name not in self._member_keys:
            self._member_keys[node.name] = EtcdMember(
                f"{self._name}-{node.name}-etcd",
                EtcdMemberArgs(
                    plan=self._plan,
                    machine=self._back(node),
                    files=self._args.files[node.arch],
                    identity=self._identity,
                    pki=self._args.pki,
                    ready=ready,
                    store_secret=self._args.store_secret,
                ),
                opts=ResourceOptions(parent=self),
            )
        return self._member_keys[node.name]

    def _master(self, node: Node, *, after: tuple[Resource, ...]) -> Resource:
        prepared = self._prepared[node.name]
        master = self._keys_of_master(node, prepared.ready)
        self._masters[node.name] = master.take_turn(prepared.ready, prepared.applied, after)
        return self._masters[node.name]

    def _keys_of_master(self, node: Node, ready: Resource) -> Master:
        if node.name not in self._master_keys:
            self._master_keys[node.name] = Master(
                f"{self._name}-{node.name}-master",
                MasterArgs(
                    plan=self._plan,
                    machine=self._back(node),
                    identity=self._identity,
                    pki=self._args.pki,
                    ready=ready,
                ),
                opts=ResourceOptions(parent=self),
            )
        return self._master_keys[node.name]

    def _name_api(self, last: Resource) -> Resource | None:
        if self.door is None:
            return None
        return api_record.lead(
            self._plan,
            self.door,
            self._master_machine(),
            identity=self._identity,
            ca=self._args.pki.bundle("kubernetes"),
            last=last,
            parent=self,
        )

    def _back(self, node: Node) -> Machine:
        """The machine once its node phase is done, which may have rebooted it."""
        return patient(self.machines[node.name], nodes.reboot_s(self._plan))

    def _last_master(self) -> Resource:
        return self._masters[self._plan.masters[-1].name]

    def _master_machine(self) -> Machine:
        return self.machines[self._plan.masters[0].name]

    def _addons(self, served: Resource) -> Addons:
        return Addons(
            f"{self._name}-addons",
            AddonsArgs(
                plan=self._plan,
                machine=self._master_machine(),
                identity=self._identity,
                after=served,
            ),
            opts=ResourceOptions(parent=self),
        )

    def _workers(
        self, served: Resource, last: Resource, attempt: Stash, guards: tuple[Resource, ...]
    ) -> tuple[Resource, Resource]:
        """What new workers join by, and what opens the last wave of those that exist."""
        settled = self._settled
        waves = Rollout(
            self._name,
            RolloutArgs(
                plan=self._plan,
                machine=self._master_machine(),
                identity=self._identity,
                files=self._args.files,
                ca_cert=self._args.pki.bundle("kubernetes"),
                settled=settled,
                after=last if self._args.before else served,
            ),
            opts=ResourceOptions(parent=self),
        )
        for node in self._plan.workers:
            self._prepare(node, waits_for=waves.opens(node.name) if node.name in settled else None)
        joinable = join_workers(
            self._name,
            JoinArgs(
                plan=self._plan,
                master=self._master_machine(),
                machines=self.machines,
                prepared=self._prepared,
                identity=self._identity,
                pki=self._args.pki,
                settled=settled,
                anew=self._anew,
                served=(served, *guards),
                attempt=attempt,
            ),
            parent=self,
        )
        return joinable, waves.last

    def _load_balancers(self, last: Resource) -> dict[str, Resource]:
        return make_ready(
            self._name,
            self._plan,
            self._args.pki,
            prepare=lambda node, turn: self._prepare(node, waits_for=turn),
            machine=self._back,
            settled=self._settled,
            identity=self._identity,
            parent=self,
            turn=last,
        )

    def _out(self, out: Resource) -> list[Resource]:
        """What happens on machines once they are `out` of the list of nodes."""
        machine = self._master_machine()
        opts = after(machine.exists, parent=self)
        stopped: list[Resource] = []
        for node in self._plan.away:
            if node.is_given_up and not self._plan.made:
                forget(f"{self._name}-{node.name}-preflight", machine, opts=opts)
            elif node.state == "decommissioned":
                self.machines[node.name] = self._args.machine(node, None)
                stopped.append(self._decommission(node, out))
        stopped += [
            converge(
                f"{self._name}-{node.name}-etcd-absent",
                self.machines[node.name],
                "etcd-absent",
                {},
                identity=self._identity,
                opts=after(out, parent=self),
            )
            for node in self._plan.masters
            if not node.is_etcd
        ]
        ready = self._doors
        tls = end_tls(
            self._name,
            self._plan,
            self.machines,
            self._args.pki,
            identity=self._identity,
            parent=self,
            out=out,
            ready=ready,
        )
        vip = VirtualIp(
            cluster=self._name,
            plan=self._plan,
            machines=self.machines,
            settled=self._settled,
            identity=self._identity,
            parent=self,
            out=out,
            ready=[*ready.values(), *tls],
        )
        then = self._args.before.plan if self._args.before else None
        back = then is not None and any(node.is_load_balancer for node in then.holders)
        return [*stopped, *tls, *vip.hold(back=back)]

    def _decommission(self, node: Node, out: Resource) -> Resource:
        return decommission(
            f"{self._name}-{node.name}",
            self.machines[node.name],
            preflight.preflight(self._plan, node, self._args.files[node.arch]),
            identity=self._identity,
            parent=self,
            out=out,
        )
