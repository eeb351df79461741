"""Machines that are made in a cloud: its resources, registered as its provider tells them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pulumi
from pulumi import (
    ComponentResource,
    Input,
    InvokeOptions,
    Output,
    ProviderResource,
    ResourceOptions,
    RunError,
)

from components.machines.api_door import ApiDoor
from components.machines.cloud_keys import Keys
from components.machines.token_pems import TokenPems
from components.ssh.commands import Machine
from stacks.cluster import cloud_machines, cloud_resources, clouds
from stacks.cluster.plan import Node, Plan
from stacks.providers.resources import (
    LoginKey,
    Lookup,
    Ref,
    Resource,
    Resources,
    Text,
    TokenKeys,
    UserData,
    Value,
)
from stacks.render import token_keys


def of(plan: Plan, keys: TokenPems, opts: ResourceOptions | None = None) -> Cloud:
    """The machines of a plan."""
    return Cloud(plan, keys, opts)


class Cloud(ComponentResource):
    """Everything around the machines of a plan; `machine` makes one of them."""

    def __init__(self, plan: Plan, keys: TokenPems, opts: ResourceOptions | None = None) -> None:
        self._token_pems = keys
        name, cloud = plan.spec.cluster.name, cloud_machines.provider(plan)
        self._plan, self._found = plan, cloud_resources.of_plan(plan)
        # First, so that nothing is registered where the SDK is missing.
        self._classes = {one.type: _of_sdk(one.type) for one in _all(self._found)}
        kind = f"kube-ha:index:{cloud.NAME.capitalize()}"
        super().__init__(kind, f"{name}-machines", None, opts)
        self._provider: ProviderResource | None = None
        self._made: dict[str, pulumi.Resource] = {}
        self._answers: dict[str, Output[Any]] = {}  # of lookups
        self._keys = Keys(name, self)
        for one in self._found.around:
            if isinstance(one, Lookup):
                self._answers[one.name] = self._asked(one)
            else:
                self._make(one)
        self._through = None
        if cloud_machines.of_plan(plan).access != "public":
            self._through = self._keys.jump(plan, self._value(self._found.bastion))
        self.api_address: Input[str] | None = self._value(self._found.balancer)
        self.ingress_address: Input[str] | None = self._value(self._found.ingress)
        self.register_outputs({})

    def api_door(self) -> ApiDoor | None:
        """Where the API's name leads, once every machine is registered; None: no record is made."""
        record = self._found.record
        if record is None:
            return None
        return ApiDoor(
            addresses=self._value(self._found.record_values),
            parts=[self._made[name] for name in self._found.balancer_parts],
            record=lambda after: self._make(record, *after),
            alias=self._found.record_is_alias,
        )

    def machine(self, node: Node, after: pulumi.Resource | None) -> Machine:
        """The machine of a node; `after` has to be done before it is made."""
        own = self._found.machines[node.name]
        for one in own.resources:
            self._make(one, *([after] if after and one.name == own.machine else []))
        return self._keys.machine(
            node,
            address=self._value(own.address),
            through=self._through,
            exists=self._made[own.ready],
            instance=self._made[own.machine],
            provider_id=self._provider_id(node, self._value(own.id)),
        )

    def _provider_id(self, node: Node, known: str | Output[str]) -> Input[str] | None:
        if not clouds.has_controller(self._plan.spec):
            return None
        if isinstance(known, str):
            return cloud_machines.provider_id(self._plan, node, known)
        return known.apply(lambda number: cloud_machines.provider_id(self._plan, node, number))

    def _make(self, one: Resource, *after: pulumi.Resource) -> pulumi.Resource:
        said = one.opts
        opts = ResourceOptions(
            parent=self,
            provider=self._provider,
            depends_on=[*(self._made[name] for name in said.after), *after],
            ignore_changes=[_camel(name) for name in said.ignores] or None,
            deleted_with=self._made[said.deleted_with] if said.deleted_with else None,
            replacement_trigger=said.trigger,
            delete_before_replace=True if said.deleted_first else None,
        )
        name, inputs = f"{self._plan.spec.cluster.name}-{one.name}", self._inputs(one.properties)
        made: pulumi.Resource = self._classes[one.type](name, **inputs, opts=opts)
        if isinstance(made, ProviderResource):
            self._provider = made
        self._made[one.name] = made
        return made

    def _asked(self, one: Lookup) -> Output[Any]:
        opts = InvokeOptions(parent=self, provider=self._provider)
        ask = _of_sdk(f"{one.function}_output")
        answer: Output[Any] = ask(**self._inputs(one.arguments), opts=opts)
        return answer

    def _inputs(self, said: Mapping[str, Value]) -> dict[str, Any]:
        """None stands for what is not said."""
        return {key: self._value(value) for key, value in said.items() if value is not None}

    def _value(self, said: Value) -> Any:
        """As the SDK takes it."""
        match said:
            case Ref():
                known = self._answers if said.name in self._answers else self._made
                return getattr(known[said.name], said.output)
            case Text():
                return Output.all(*self._value(said.of)).apply(lambda known: _text(said, known))
            case UserData():
                disks = None if said.disks is None else Output.all(*self._value(said.disks))
                return self._keys.user_data(said, disks)
            case LoginKey():
                return self._keys.public
            case TokenKeys():
                return self._token_pems().apply(token_keys.jwks)
            case Mapping():
                return self._inputs(said)
            case list() | tuple():
                return [self._value(value) for value in said]
        return said


def _all(found: Resources) -> Iterator[Resource]:
    """The provider's own resource is the first."""
    yield from (one for one in found.around if isinstance(one, Resource))
    for machine in found.machines.values():
        yield from machine.resources
    if found.record:
        yield found.record


def _of_sdk(path: str) -> Any:
    """A class or a function, as "aws.ec2.Vpc". Raises ModuleNotFoundError."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"pulumi_{module}"), name)


def _camel(name: str) -> str:
    """A property as the engine knows it."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _text(said: Text, known: Sequence[object]) -> str | int:
    try:
        return said.make(*known)
    except ValueError as error:
        raise RunError(str(error)) from None
