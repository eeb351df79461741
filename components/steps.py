"""Steps of stacks.order as resources: one by one, each behind those that it waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pulumi import (
    Asset,
    ComponentResource,
    FileAsset,
    Input,
    Output,
    Resource,
    ResourceOptions,
    Stash,
    StringAsset,
)
from pulumi_command import local, remote

from components.machines.api_door import ApiDoor
from components.pki.secrets import Secrets
from components.ssh import commands
from components.ssh.commands import ANY_CHANGE, FROZEN, Identity, Machine, after, patient
from stacks.cluster.plan import Node
from stacks.order.step import Group, Said, Source, Step


@dataclass(slots=True, kw_only=True)
class Registrar:
    """Makes a resource of each step that it is given, in their order."""

    cluster: ComponentResource
    identity: Identity
    machine: Callable[[Node, Resource | None], Machine]
    api_door: Callable[[], ApiDoor | None]
    secrets: Secrets
    patience_s: int  # how much longer than others a patient command may take
    machines: dict[str, Machine] = field(default_factory=dict)  # by node
    door: ApiDoor | None = None
    made: dict[str, tuple[Resource, ...]] = field(default_factory=dict)  # by step
    known: dict[Source, Input[object]] = field(default_factory=dict)
    together: dict[tuple[Source, ...], Output[list[object]]] = field(default_factory=dict)
    groups: dict[str, ComponentResource] = field(default_factory=dict)  # by name

    def group(self, group: Group) -> None:
        """A component that is the parent of steps."""
        kind = f"kube-ha:index:{group.kind}"
        opts = ResourceOptions(parent=self.cluster)
        self.groups[group.name] = ComponentResource(kind, group.name, None, opts)
        self.groups[group.name].register_outputs({})

    def step(self, step: Step) -> None:
        """The step as a resource. To be called once for each."""
        match step.kind:
            case "machine":
                made = self._machine(step)
            case "door":
                self.door = self.api_door()
                made = tuple(self.door.parts) if self.door else ()
            case "record":
                made = self._record(step)
            case _:
                made = (self._resource(step),)
        self.made[step.name] = made

    def ends(self, *names: str) -> list[remote.Command]:
        """Commands by the names of their steps."""
        found = [one for name in names for one in self.made[name]]
        return [one for one in found if isinstance(one, remote.Command)]

    def said(self, said: Said) -> Input[str]:
        """A text, with what only an update knows."""
        if isinstance(said, str):
            return said
        if said.sources not in self.together:
            known = Output.all(*(self._source(source) for source in said.sources))
            self.together[said.sources] = known
        return self.together[said.sources].apply(lambda texts: said.make(*texts))

    def _source(self, source: Source) -> Input[object]:
        if source.kind == "provider id":
            return self.machines[source.name].provider_id or ""
        if source.kind == "door" and self.door is not None:
            return Output.all(*self.door.addresses)
        if source not in self.known:
            self.known[source] = self.secrets.of(source)
        return self.known[source]

    def _machine(self, step: Step) -> tuple[Resource, ...]:
        waits = [one for name in step.after for one in self.made[name]]
        node = _node(step)
        self.machines[node.name] = found = self.machine(node, waits[0] if waits else None)
        return (found.exists,) if found.exists else ()

    def _record(self, step: Step) -> tuple[Resource, ...]:
        if self.door is None:
            raise ValueError("a record of the API's name needs a provider that makes it")
        return (self.door.record([one for name in step.after for one in self.made[name]]),)

    def _resource(self, step: Step) -> Resource:
        opts = self._options(step)
        match step.kind:
            case "attempt":
                return commands.attempt(step.name, wanted=self.said(step.parts[0]), opts=opts)
            case "scripts":
                machine, wanted = self._of(step), self.said(step.parts[0])
                return commands.copy_scripts(step.name, machine, wanted=wanted, opts=opts)
            case "file":
                return commands.copy_file(
                    step.name,
                    self._of(step),
                    _asset(step),
                    step.target,
                    wanted=self.said(step.parts[0]),
                    opts=opts,
                )
            case "forget":
                return commands.forget(step.name, self._of(step), opts=opts)
            case "local":
                return self._local(step, opts)
            case _:
                return self._phase(step, opts)

    def _phase(self, step: Step, opts: ResourceOptions) -> remote.Command:
        if step.trigger is not None:
            # In place of an update: the engine ignores no change of a resource that it makes again,
            # and deleting the old one runs nothing.
            own = ResourceOptions(replacement_trigger=self.said(step.trigger))
            opts = ResourceOptions.merge(opts, own)
        return commands.converge(
            step.name,
            self._of(step),
            step.phase,
            {key: self.said(said) for key, said in step.values.items()},
            identity=self.identity,
            stamp=self._stamp(step),
            secret=step.is_secret,
            leave=step.leaves,
            opts=opts,
        )

    def _local(self, step: Step, opts: ResourceOptions) -> local.Command:
        stamp = self._stamp(step)
        word = stamp.output.apply(str) if isinstance(stamp, Stash) else stamp
        return local.Command(
            step.name,
            create=Output.concat(step.target, word),
            stdin=self.said(step.text) if step.text else None,
            logging=local.Logging.NONE,
            add_previous_output_in_env=False,
            opts=opts,
        )

    def _stamp(self, step: Step) -> Stash | Input[str]:
        """What makes the command of a try that failed another one."""
        if not step.stamp:
            return step.word
        (found,) = self.made[step.stamp]
        if isinstance(found, remote.CopyToRemote):
            return found.id
        if not isinstance(found, Stash):
            raise TypeError(f"{step.stamp} is not a stamp")
        return found

    def _options(self, step: Step) -> ResourceOptions:
        parent = self.groups[step.parent] if step.parent else self.cluster
        waits = [one for name in step.after for one in self.made[name]]
        ignored = _IGNORED[step.ignores]
        return after(*waits, parent=parent, ignore=ignored)

    def _of(self, step: Step) -> Machine:
        found = self.machines[_node(step).name]
        return patient(found, self.patience_s) if step.is_patient else found


_CONTENTS = Path(".local/contents")  # below the program's folder: what the plan has made
_IGNORED: Mapping[str, tuple[str, ...]] = {
    "": (),
    "any": ANY_CHANGE,
    "all": FROZEN,
    "stdin": ("stdin",),
}


def _asset(step: Step) -> Asset:
    if step.content and step.is_big:
        return FileAsset(_put(step.content, step.target))
    if step.content:
        return StringAsset(step.content)
    return FileAsset(str(Path(str(step.text)).expanduser()))


def _put(content: str, name: str) -> str:
    """A file of it: of a file the state holds the hash alone. It is nobody else's to read."""
    file = _CONTENTS / name
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{name}.new")
    new.touch(mode=0o600)
    new.write_text(content)
    new.replace(file)
    return str(file)


def _node(step: Step) -> Node:
    if step.node is None:
        raise ValueError(f"{step.name} is on no machine")
    return step.node
