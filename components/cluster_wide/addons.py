"""What runs in every cluster of ours: kube-proxy, the network plugin, CoreDNS.

Each one command, its manifest the diff.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Resource, ResourceOptions

from components.ssh.commands import Identity, Machine, after, attempted
from stacks.cluster.plan import Plan
from stacks.phases import system_addons


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonsArgs:
    plan: Plan
    machine: Machine  # a master
    identity: Identity
    after: Resource


class Addons(ComponentResource):
    """Resource `<cluster>-addon-<name>` for each add-on."""

    applied: tuple[Resource, ...]
    guards: tuple[Resource, ...]  # what has to be there before a worker holds an identity

    def __init__(self, name: str, args: AddonsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Addons", name, None, opts)
        made = {
            addon: self._addon(args, addon, text)
            for addon, text in sorted(system_addons.addons(args.plan).items())
        }
        self.applied = tuple(made.values())
        self.guards = tuple(made[addon] for addon in system_addons.GUARDS)
        self.register_outputs({})

    def _addon(self, args: AddonsArgs, addon: str, manifest: str) -> Resource:
        name = f"{args.plan.spec.cluster.name}-addon-{addon}"
        values = system_addons.of_addon(args.plan, addon, manifest)
        return attempted(
            name,
            args.machine,
            "addon",
            values,
            identity=args.identity,
            parts=[manifest, values["GENERATION"]],
            opts=after(args.after, parent=self),
        )
