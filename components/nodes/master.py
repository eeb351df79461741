"""One master: its keys, then apiserver, controller manager, scheduler and kubelet, by kubeadm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_command import remote

from components.nodes.prepared import of_cloud
from components.pki import key_files
from components.pki.authority import Pki
from components.ssh.commands import Identity, Machine, after, attempted
from stacks.cluster import digests, rotation
from stacks.cluster.certificates import APPROVER_FILE, of_node
from stacks.cluster.plan import Plan
from stacks.phases.master import of_master


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterArgs:
    plan: Plan
    machine: Machine
    identity: Identity
    pki: Pki
    ready: Resource  # what the leafs wait for: the machine can take them


class Master(ComponentResource):
    """Resource `<name>-keys`, then by `take_turn` `<name>-shared-keys` and `<name>`.

    No master is special: the same kubeadm init makes each of them. Leafs of a master that exists
    wait for no turn, as those of a member: its API server reads them while it runs.
    """

    def __init__(self, name: str, args: MasterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Master", name, None, opts)
        self._name, self._args = name, args
        self._moved = rotation.words(args.plan)
        leafs = key_files.of_master(args.pki, args.plan, args.machine.node)
        self.keys = self._place("keys", leafs, args.ready)

    def take_turn(
        self, prepared: Resource, applied: Output[str], after_others: tuple[Resource, ...]
    ) -> remote.Command:
        """The master itself, after its own node phase, its etcd and the master before.

        `applied`: what the node announces when it is as wanted. To be called once.
        """
        args, moved = self._args, self._moved
        node = args.machine.node
        # Apart from the leafs: together they are more than one stdin may hold. And some of them are
        # read at a start only, so they come when the machine's turn does.
        shared = self._place(
            "shared-keys", key_files.of_control_plane(args.pki, args.plan), prepared
        )
        leafs = {leaf.path: args.pki.leafs[leaf.name].cert for leaf in of_node(args.plan, node)}
        # Apart: what the approver shows is no reason to renew the kubeconfigs.
        approver = leafs.pop(APPROVER_FILE)
        values: dict[str, Input[str]] = {
            **of_master(args.plan, node),
            "CERTIFICATES": Output.all(*leafs.values()).apply(
                lambda certs: digests.digest(*certs, *([moved] if moved else []))
            ),
            # Not used by the script: the approver starts again when it is another one.
            "APPROVER_CERTIFICATE": approver.apply(digests.digest),
            "APPLIED": applied,
            **of_cloud(args.machine),
        }
        ready = attempted(
            self._name,
            args.machine,
            "master",
            values,
            identity=args.identity,
            parts=[values[name] for name in sorted(values)],
            opts=after(shared, self.keys, prepared, *after_others, parent=self),
        )
        self.register_outputs({})
        return ready

    def _place(
        self, what: str, files: Sequence[key_files.KeyFile], ready: Resource
    ) -> remote.Command:
        return key_files.place(
            f"{self._name}-{what}",
            self._args.machine,
            files,
            generation=self._args.plan.spec.converge.generation,
            identity=self._args.identity,
            opts=after(ready, parent=self),
            keys=self._moved,
        )
