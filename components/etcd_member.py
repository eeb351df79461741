"""One etcd member.

Its keys, then the member itself, joined as a learner and promoted, or founded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_command import remote

from components import key_files
from components.pki import Pki
from components.remote import ANY_CHANGE, Identity, Machine, after, attempt, converge
from stacks import desired, phases
from stacks.artifacts import File
from stacks.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMemberArgs:
    plan: Plan
    machine: Machine
    files: Mapping[str, File]
    identity: Identity
    pki: Pki
    prepared: Resource
    after: tuple[Resource, ...]  # what this member's turn waits for
    newborn: bool  # no success is remembered: a cluster may be founded
    leaving: Mapping[str, str]  # addresses of members that leave in this up, by name
    store_secret: Output[str] | None  # of the object store that snapshots go to
    founds: tuple[Resource, ...] | None  # first member: all etcd machines prepared; else None


class EtcdMember(ComponentResource):
    """Resources `<name>-etcd-keys`, `-etcd`, and for the founding member `-etcd-found`."""

    ready: remote.Command

    def __init__(
        self, name: str, args: EtcdMemberArgs, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("kube-ha:index:EtcdMember", name, None, opts)
        store = args.plan.spec.etcd.backup.object_store
        keys = key_files.place(
            f"{name}-keys",
            args.machine,
            key_files.of_member(args.pki, args.plan, args.machine.node, args.store_secret),
            generation=args.plan.spec.converge.generation,
            identity=args.identity,
            # The secret of an access key is replaced together with it.
            keys=store.access_key if store else "",
            opts=after(args.prepared, parent=self),
        )
        values = _values(args)
        before: list[Resource] = [keys, *args.after]
        if args.founds is not None:
            founded = converge(
                f"{name}-found",
                args.machine,
                "etcd-member",
                # Founding runs once in the life of a stack: a later run on an emptied machine could
                # found a second, empty cluster in place of the lost one. And in a living stack
                # another member may have become the first one: it never founds.
                # Where all members are new, those that leave know the cluster.
                {
                    **{name: text for name, text in values.items() if not _of_backups(name)},
                    "MEMBERS": _known(values["MEMBERS"], args.leaving),
                    "BOOTSTRAP": "1" if args.newborn else "0",
                },
                identity=args.identity,
                opts=after(keys, *args.founds, *args.after, parent=self, ignore=ANY_CHANGE),
            )
            before.append(founded)
        stamp = attempt(
            f"{name}-attempt",
            wanted=phases.digest(
                phases.script_sum("etcd-member"), *(str(value) for value in values.values())
            ),
            opts=ResourceOptions(parent=self),
        )
        self.ready = converge(
            name,
            args.machine,
            "etcd-member",
            {**values, "BOOTSTRAP": "0"},
            identity=args.identity,
            stamp=stamp,
            opts=after(*before, parent=self),
        )
        self.register_outputs({})


def _of_backups(name: str) -> bool:
    """Founding is told once and for all, and these may change."""
    return name.startswith("BACKUP_")


def _known(members: Input[str], leaving: Mapping[str, str]) -> Output[str]:
    gone = [f"{name}={address}" for name, address in sorted(leaving.items())]
    return Output.from_input(members).apply(lambda words: " ".join([words, *gone]))


def _values(args: EtcdMemberArgs) -> dict[str, Input[str]]:
    return {
        **desired.of_member(args.plan, args.machine.node),
        "ARTEFACTS": desired.artefacts(args.files, ("etcd",)),
    }
