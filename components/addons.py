"""What runs in every cluster of ours: kube-proxy, the network plugin, CoreDNS.

Each one command, its manifest the diff.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Resource, ResourceOptions

from components.remote import Identity, Machine, after, attempt, converge
from stacks import desired, phases
from stacks.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonsArgs:
    plan: Plan
    machine: Machine  # a master
    identity: Identity
    after: Resource


class Addons(ComponentResource):
    """Resource `<cluster>-addon-<name>` for each add-on."""

    applied: tuple[Resource, ...]

    def __init__(self, name: str, args: AddonsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Addons", name, None, opts)
        self.applied = tuple(
            self._addon(args, addon, text)
            for addon, text in sorted(desired.addons(args.plan).items())
        )
        self.register_outputs({})

    def _addon(self, args: AddonsArgs, addon: str, manifest: str) -> Resource:
        name = f"{args.plan.spec.cluster.name}-addon-{addon}"
        generation = str(args.plan.spec.converge.generation)
        stamp = attempt(
            f"{name}-attempt",
            wanted=phases.digest(phases.script_sum("addon"), manifest, generation),
            opts=ResourceOptions(parent=self),
        )
        return converge(
            name,
            args.machine,
            "addon",
            {"NAME": addon, "MANIFEST": manifest.rstrip("\n"), "GENERATION": generation},
            identity=args.identity,
            stamp=stamp,
            opts=after(args.after, parent=self),
        )
