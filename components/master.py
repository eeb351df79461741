"""One master: its keys, then apiserver, controller manager, scheduler and kubelet, by kubeadm."""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_command import remote

from components import key_files
from components.pki import Pki
from components.prepared import of_cloud
from components.remote import Identity, Machine, after, attempt, converge
from stacks import desired, phases, rotation
from stacks.certificates import of_node
from stacks.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterArgs:
    plan: Plan
    machine: Machine
    identity: Identity
    pki: Pki
    prepared: Resource
    applied: Output[str]  # what the node announces when it is as wanted
    after: tuple[Resource, ...]  # its etcd and the master before


class Master(ComponentResource):
    """Resources `<name>-keys` and `<name>`.

    No master is special: the same kubeadm init makes each of them.
    """

    ready: remote.Command

    def __init__(self, name: str, args: MasterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Master", name, None, opts)
        node, moved = args.machine.node, rotation.words(args.plan)
        # Two commands, for together they are more than one stdin may hold.
        keys = [
            key_files.place(
                f"{name}-{what}",
                args.machine,
                files,
                generation=args.plan.spec.converge.generation,
                identity=args.identity,
                opts=after(args.prepared, parent=self),
                keys=moved,
            )
            for what, files in (
                ("shared-keys", key_files.of_control_plane(args.pki, args.plan)),
                ("keys", key_files.of_master(args.pki, args.plan, node)),
            )
        ]
        values: dict[str, Input[str]] = {
            **desired.of_master(args.plan, node),
            "CERTIFICATES": Output.all(
                *(args.pki.leafs[leaf.name].cert for leaf in of_node(args.plan, node))
            ).apply(lambda certs: phases.digest(*certs, *([moved] if moved else []))),
            "APPLIED": args.applied,
            **of_cloud(args.machine),
        }
        wanted = Output.all(**values).apply(
            lambda known: phases.digest(
                phases.script_sum("master"), *(known[key] for key in sorted(known))
            )
        )
        stamp = attempt(f"{name}-attempt", wanted=wanted, opts=ResourceOptions(parent=self))
        self.ready = converge(
            name,
            args.machine,
            "master",
            values,
            identity=args.identity,
            stamp=stamp,
            opts=after(*keys, args.prepared, *args.after, parent=self),
        )
        self.register_outputs({})
