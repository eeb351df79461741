"""How the providers see inputs, by the lab's stand-ins: certificates are real ones, commands do not run."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Mapping
from typing import Protocol, TypeVar
from unittest import mock

from tests.plan import clouds
from toolchain.command import inputs as command
from toolchain.resources import Difference, Kind, Operation, compare
from toolchain.tls.certificates import LOCALLY_SIGNED, REQUEST, SELF_SIGNED
from toolchain.tls.keys import PrivateKeyKind, generated
from toolchain.values import Properties, Secret, Value, encode

T = TypeVar("T")

COMMAND = "command:remote:Command"
COPY = "command:remote:CopyToRemote"
LOCAL = "command:local:Command"
STASH = "pulumi:index:Stash"

# Keys and certificates by URN and inputs. Stacks that come from one have the same ones, so that their ends can be
# compared to the last byte; and making them is what takes time.
Made = dict[tuple[str, bytes], tuple[str, Properties]]

_TLS: Mapping[str, Kind] = {
    "tls:index/privateKey:PrivateKey": PrivateKeyKind(),
    "tls:index/selfSignedCert:SelfSignedCert": SELF_SIGNED,
    "tls:index/locallySignedCert:LocallySignedCert": LOCALLY_SIGNED,
    "tls:index/certRequest:CertRequest": REQUEST,
}


def checked(kind: str, inputs: Properties) -> Properties:
    """Inputs as the provider completes and marks them. Raises AssertionError for what it refuses."""
    if tls := _TLS.get(kind):
        inputs, problems = tls.check(inputs)
    elif kind == COMMAND:
        inputs, problems = command.check_remote(inputs)
    elif kind == LOCAL:
        inputs, problems = command.check_local(inputs)
    elif kind == COPY:
        connection, problems = command.check_connection(inputs)
        inputs = {**inputs, "connection": connection}
    elif clouds.is_cloud(kind):
        if refused := clouds.problems(kind, inputs):
            raise AssertionError(refused)
        return inputs
    else:
        return inputs
    if problems:
        raise AssertionError(f"{kind}: {problems}")
    return inputs


def difference(kind: str, old: Properties, new: Properties, state: Properties) -> Difference:
    """What the provider says about the inputs of the last success and the wanted ones."""
    if tls := _TLS.get(kind):
        return tls.diff(old, new, state)
    if clouds.is_cloud(kind):
        return clouds.difference(kind, old, new)
    return compare(old, new, replacing=frozenset({"triggers"}))


class Cloud(Protocol):
    """Answers in the place of a cloud's provider."""

    def asked(self, token: str, given: Properties) -> Properties:
        """What an invoke finds."""

    def created(self, kind: str, inputs: Properties) -> tuple[str, Properties]:
        """ID and outputs of a new resource."""

    def updated(
        self, kind: str, number: str, old: Properties, state: Properties, new: Properties
    ) -> Properties:
        """Outputs of a resource changed in place; `old` are the inputs, `state` the outputs that it had."""

    def deleted(self, kind: str, number: str, state: Properties) -> None:
        """A resource goes, with the outputs that it had."""


def created(
    urn: str, kind: str, inputs: Properties, made: Made, cloud: Cloud | None
) -> tuple[str, Properties]:
    """ID and outputs of a new resource; `made` gets, or gives, those of keys and certificates."""
    if tls := _TLS.get(kind):
        mark = urn, encode(inputs).SerializeToString(deterministic=True)
        if mark not in made:
            is_key = isinstance(tls, PrivateKeyKind)
            made[mark] = generated(inputs) if is_key else _result(tls.create(_operation(), inputs))
        return made[mark]
    if clouds.is_cloud(kind):
        return cloud.created(kind, inputs) if cloud else clouds.created(kind, inputs)
    return uuid.uuid4().hex[:8], updated(kind, inputs, {"output": inputs.get("input")})


def updated(kind: str, inputs: Properties, state: Properties) -> Properties:
    """Outputs of a resource changed in place."""
    if tls := _TLS.get(kind):
        return _result(tls.update(_operation(), inputs, state))
    if kind in (COMMAND, LOCAL):
        printed: Value = Secret("done") if kind == COMMAND else "done"
        return {**inputs, "stdout": printed, "stderr": printed}
    if kind == STASH:
        return {**inputs, "output": state["output"]}
    if kind == COPY:
        return inputs
    if clouds.is_cloud(kind):
        return {**state, **inputs}
    raise NotImplementedError(kind)


def _result(coroutine: Coroutine[None, None, T]) -> T:
    """Of one that waits for nothing: no loop can run inside that of the program."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        found: T = done.value
        return found
    raise AssertionError("it waits for something")


def _operation() -> Operation:
    # Used only to warn about a CA that is none.
    return Operation("urn", "name", 0, mock.Mock(), asyncio.Event())
