"""What steps are made of: the last success, the plan, and names of steps that others wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from stacks.cluster import clouds, digests
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Node, Plan
from stacks.edits import membership, snapshots
from stacks.edits.memory import Memory
from stacks.order.step import From, Part, Said, Step, ca, stripped
from stacks.phases import desired, nodes, scripts
from stacks.phases import node as node_phase


@dataclass(frozen=True, kw_only=True)
class Scene:
    previous: Memory | None  # the last success; None: there was none yet
    plan: Plan
    files: Mapping[str, Mapping[str, File]]  # what nodes fetch, by architecture and name
    now_s: float

    @property
    def cluster(self) -> str:
        return self.plan.spec.cluster.name

    @property
    def master(self) -> Node:
        """Through which the cluster is asked."""
        return self.plan.acting

    @property
    def generation(self) -> int:
        return self.plan.spec.converge.generation

    @cached_property
    def recreated(self) -> frozenset[str]:
        """Nodes that are recreated under their name."""
        return frozenset(membership.rebuilt(self.previous, self.plan))

    @cached_property
    def settled(self) -> frozenset[str]:
        """Nodes that exist, and stay the machines that they are."""
        return frozenset(self.previous.machines if self.previous else ()) - self.recreated

    @cached_property
    def returning(self) -> frozenset[str]:
        """Nodes that the last success left out, and this update does not."""
        return membership.returning(self.previous, self.plan)

    @cached_property
    def turns(self) -> tuple[Node, ...]:
        """The control plane's machines as they change, one after another.

        Who is back from absence comes first: until its turn it counts as down, and what restarts
        before it could cost etcd its quorum.
        """
        back = self.returning & self.settled
        masters = (node for node in self.plan.masters if not node.is_etcd)
        every = (*self.plan.etcd, *masters)
        return tuple(sorted(every, key=lambda n: (not n.is_etcd, n.name not in back)))

    @property
    def last_master(self) -> Node:
        """Behind whose turn the control plane is as wanted."""
        return [node for node in self.turns if node.is_master][-1]

    @property
    def last_member(self) -> Node:
        """Behind whose turn etcd is as wanted."""
        return [node for node in self.turns if node.is_etcd][-1]

    @cached_property
    def joining(self) -> tuple[Node, ...]:
        """Workers that get a token: new ones, and those whose identity may have run out."""
        known = self.settled - self.returning
        there = (node for node in self.plan.workers if not node.is_absent)
        return tuple(sorted((n for n in there if n.name not in known), key=lambda n: n.name))

    @cached_property
    def survivor(self) -> Node:
        """The master that takes others out: the acting one, else the first one that stays.

        It does so before any turn, so one that is back from absence does it where no other can.
        """
        names = {node.name for node in membership.staying(self.previous, self.plan)}
        known = [node for node in self.plan.masters if node.name in names]
        there = [node for node in known if not node.is_absent] or known
        return min(there, key=lambda node: (node.name in self.returning, node != self.master))

    @cached_property
    def saver(self) -> Node:
        """Where etcd is saved, as it was."""
        return snapshots.place(self.previous, self.plan) or self.survivor

    @cached_property
    def told(self) -> dict[str, dict[str, str]]:
        """Values of the node phase by node, with a place for CA_CRT."""
        nodes = self.plan.nodes
        return {n.name: node_phase.whole(self.plan, n, self.files[n.arch]) for n in nodes}

    @cached_property
    def _hashes(self) -> dict[str, dict[str, str]]:
        return {}

    def hashes(self, pem: str) -> Mapping[str, str]:
        """What each node announces once it is as wanted, by its name."""
        if pem not in self._hashes:
            text = pem.rstrip("\n")
            self._hashes[pem] = {
                name: desired.applied({**told, **({"CA_CRT": text} if "CA_CRT" in told else {})})
                for name, told in self.told.items()
            }
        return self._hashes[pem]

    def applied(self, node: Node) -> Said:
        """What the node announces."""
        if "CA_CRT" not in self.told[node.name]:
            return desired.applied(self.told[node.name])
        return From((ca(),), lambda pem: self.hashes(pem)[node.name])

    @cached_property
    def wanted(self) -> From:
        """Lines of all nodes with what they announce."""
        there = nodes.wanted_nodes(self.plan)
        return From((ca(),), lambda pem: nodes.wanted(there, self.hashes(pem)))

    @property
    def once(self) -> dict[str, str]:
        """What a step is told that keeps its text, beside that text."""
        return {"UNTIL": scripts.until(self.now_s)}

    @property
    def ca_text(self) -> From:
        return From((ca(),), stripped)

    @property
    def has_ids(self) -> bool:
        """Whether a cloud's controller manager knows machines by an ID."""
        return clouds.has_controller(self.plan.spec)

    def machine_of(self, name: str) -> Node:
        """As the plan wants it: what stays may have been something else."""
        return self.plan.node(name)

    def part_of(self, node: Node) -> Part | None:
        """Of what makes a machine ready: new ones are not told with their role."""
        is_new = node.name not in self.settled and node.name in self._names
        return "new machines" if is_new else None

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(node.name for node in self.plan.nodes)

    def of(self, node: str, what: str) -> str:
        """Name of a step of a node."""
        return f"{self.cluster}-{node}-{what}"

    def own(self, what: str) -> str:
        """Name of a step of the cluster."""
        return f"{self.cluster}-{what}"

    @property
    def attempt(self) -> str:
        """The stamp that is new with every change of the plan."""
        return self.own("acceptance-attempt")


def machine(node: Node) -> str:
    """Name of the step that makes or finds it."""
    return f"{node.name}-machine"


def attempt(name: str, phase: str, parts: tuple[Said, ...], *, parent: str = "") -> Step:
    """New whenever the phase's scripts or one of these parts are other ones."""
    known = (scripts.script_sum(phase), *parts)
    return Step(name=f"{name}-attempt", kind="attempt", parent=parent, parts=(hashed(known),))


def attempted(step: Step, parts: tuple[Said, ...] | None = None) -> tuple[Step, Step]:
    """A phase behind a stamp of its own; `parts`: what is hashed in place of all values."""
    known = tuple(step.values.values()) if parts is None else parts
    own = attempt(step.name, step.phase, known, parent=step.parent)
    return own, replace(step, stamp=own.name)


def hashed(parts: tuple[Said, ...]) -> Said:
    """Hash of texts of which some are known to an update alone."""
    open_ones = [part for part in parts if isinstance(part, From)]
    if not open_ones:
        return digests.digest(*map(str, parts))
    sources = tuple(source for part in open_ones for source in part.sources)

    def make(*known: object) -> str:
        left = list(known)
        texts = []
        for part in parts:
            if isinstance(part, From):
                own, left = left[: len(part.sources)], left[len(part.sources) :]
                texts.append(part.make(*own))
            else:
                texts.append(part)
        return digests.digest(*texts)

    return From(sources, make)
