"""What a program registers, and what an engine makes of one registration, given the state of the last run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import grpc
from pulumi.runtime.proto import resource_pb2

from tests.plan import providers
from tests.plan.clouds import is_cloud
from toolchain.values import Properties, Secret, Value, decode, plain


class MadeToFailError(grpc.RpcError):
    """A resource operation failed."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One registration, with what became of it."""

    urn: str
    name: str
    type: str
    custom: bool
    parent: str  # URN
    inputs: Properties
    outputs: Properties
    id: str
    dependencies: frozenset[str]  # URNs, of options and of inputs
    deleted_with: str  # URN
    retained: bool  # deleting it runs nothing
    protected: bool  # deleting it is refused
    timeouts: frozenset[str]  # of a step of each kind; empty: none is bounded
    delete_before_replace: bool  # it goes before another one takes its place
    ignores: frozenset[str]
    secret_outputs: frozenset[str]
    trigger: Value

    def text(self, key: str) -> str:
        """A text input without its secret mark; empty when it is not set."""
        value = plain(self.inputs.get(key))
        return value if isinstance(value, str) else ""

    def value(self, key: str) -> Value:
        """An input without its secret marks."""
        return plain(self.inputs.get(key))

    def is_secret(self, key: str) -> bool:
        return isinstance(self.inputs.get(key), Secret)


@dataclass(frozen=True, slots=True)
class Change:
    """`+` created, `~` updated, `!` replaced, `-` deleted; with the paths of the inputs that differ."""

    mark: str
    name: str
    paths: tuple[str, ...] = ()
    before: Resource | None = None
    after: Resource | None = None

    def __str__(self) -> str:
        return f"{self.mark} {self.name}"


@dataclass(slots=True)
class Run:
    """What one run registered, by URN, and what it changed."""

    resources: dict[str, Resource] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def custom(self) -> list[Resource]:
        return [resource for resource in self.resources.values() if resource.custom]

    @property
    def commands(self) -> list[Resource]:
        return [resource for resource in self.custom if resource.type == providers.COMMAND]

    def named(self, name: str) -> Resource:
        """The custom resource of that name. Raises KeyError."""
        for resource in self.custom:
            if resource.name == name:
                return resource
        raise KeyError(name)


def wanted_of(urn: str, request: resource_pb2.RegisterResourceRequest) -> Resource:
    inputs = providers.checked(request.type, decode(request.object))
    by_property = [other for used in request.propertyDependencies.values() for other in used.urns]
    trigger = _trigger(request)
    return Resource(
        urn=urn,
        name=request.name,
        type=request.type,
        custom=request.custom,
        parent=request.parent,
        inputs=inputs,
        outputs={},
        id="",
        dependencies=frozenset((*request.dependencies, *by_property)),
        deleted_with=request.deletedWith,
        timeouts=frozenset(
            {
                request.customTimeouts.create,
                request.customTimeouts.update,
                request.customTimeouts.delete,
            }
            - {""}
        ),
        delete_before_replace=request.deleteBeforeReplace,
        retained=request.retainOnDelete,
        protected=request.protect,
        # The engine takes ["stdin"] for stdin.
        ignores=frozenset(path.strip('["]') for path in request.ignoreChanges),
        secret_outputs=frozenset(request.additionalSecretOutputs),
        trigger=trigger,
    )


def _trigger(request: resource_pb2.RegisterResourceRequest) -> Value:
    """The replacement trigger, None when there is none."""
    if not request.HasField("replacement_trigger"):
        return None
    holder = type(request.object)()
    holder.fields["value"].CopyFrom(request.replacement_trigger)
    return decode(holder).get("value")


def step(
    old: Resource | None,
    wanted: Resource,
    *,
    made: providers.Made,
    failing: bool,
    cloud: providers.Cloud | None = None,
) -> tuple[Resource, Change | None]:
    """What the engine makes of one registration. Raises MadeToFailError."""
    if not wanted.custom:
        return wanted, None
    mark = "+"
    paths: tuple[str, ...] = ()
    if old is not None:
        fresh = wanted
        ignored = {*old.inputs, *wanted.inputs} if "*" in wanted.ignores else wanted.ignores
        kept = {key: old.inputs[key] for key in ignored if key in old.inputs}
        rest = {key: value for key, value in wanted.inputs.items() if key not in ignored}
        wanted = replace(wanted, inputs={**rest, **kept})
        found = providers.difference(wanted.type, old.inputs, wanted.inputs, old.outputs)
        triggered = plain(old.trigger) != plain(wanted.trigger)
        if not found.changes and not triggered:
            return replace(wanted, outputs=old.outputs, id=old.id), None
        mark, paths = "~", tuple(found.changes)
        if found.replaces or triggered:
            # The engine ignores no change in the inputs of a replacement.
            mark, wanted = "!", fresh
    if failing:
        raise MadeToFailError(f"{wanted.name} was made to fail")
    ours = cloud if is_cloud(wanted.type) else None
    if old is not None and mark == "~":
        if ours:
            outputs = ours.updated(wanted.type, old.id, old.inputs, old.outputs, wanted.inputs)
        else:
            outputs = providers.updated(wanted.type, wanted.inputs, old.outputs)
        done = replace(wanted, outputs=outputs, id=old.id)
    else:
        if ours and old is not None:
            # What depends on it has to go before it, which this engine does not do.
            raise NotImplementedError(f"{wanted.name} is replaced: {paths}")
        number, outputs = providers.created(wanted.urn, wanted.type, wanted.inputs, made, cloud)
        done = replace(wanted, outputs=outputs, id=number)
    return done, Change(mark, done.name, paths, old, done)
