"""A small engine for plan tests: runs the whole program, records what it registers, and keeps state between runs.

Inputs are compared and certificates issued by the lab's stand-ins of the providers, so a change here is a change
under the real engine. Commands do not run; they print nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import os
import runpy
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import chdir
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeGuard
from unittest import mock

import pulumi
import yaml
from google.protobuf import empty_pb2
from pulumi.runtime import mocks, resource
from pulumi.runtime.proto import engine_pb2, resource_pb2, source_pb2

from components import kubernetes_cluster
from components.kubernetes_cluster import Prepared, tell
from components.ssh import reach
from stacks.config.stack_file import StackFile
from stacks.config.translation import ADDON_SECRETS
from tests.plan.at_once import AtOnce
from tests.plan.clouds import is_cloud
from tests.plan.providers import Cloud, Made
from tests.plan.registration import Change, MadeToFailError, Resource, Run, step, wanted_of
from toolchain.values import Properties, Secret, Value, decode, encode, plain

ROOT = Path(__file__).parents[2]

_WAIT_S = 60  # for resources that come at once if they come at all


class RunError(Exception):
    """The program ended with an error: refused the config, or a resource was made to fail."""


@dataclass(slots=True)
class Engine:
    """One stack: its resources, its outputs. `folder` stands for the checkout: what the config names is below it."""

    folder: Path
    stack: str = "test"
    program: Path = ROOT / "__main__.py"
    resources: dict[str, Resource] = field(default_factory=dict)
    outputs: Properties = field(default_factory=dict)
    made: Made = field(default_factory=dict)
    # The newest images of a cloud, by its word for the architecture; those behind by what their names begin with.
    images: Mapping[str, str] = field(
        default_factory=lambda: {
            "x86_64": "ami-0aaaaaaaaaaaaaaaa",
            "arm64": "ami-0bbbbbbbbbbbbbbbb",
        }
    )

    # DNS zones that are there, by ID or name: domain, and whether it is a private one.
    zones: Mapping[str, tuple[str, bool]] = field(
        default_factory=lambda: {
            **dict.fromkeys(["Z0123456789", "my-zone"], ("example.com", False)),
            **dict.fromkeys(["Z9876543210", "my-inner"], ("example.com", True)),
        }
    )

    # Nodes whose SSH server is silent when an update begins.
    silent: frozenset[str] = frozenset()

    # What the program told last, before it registered anything.
    said: Prepared | None = None

    # Who makes what is of a cloud; None: it is made up.
    cloud: Cloud | None = None

    # Told of every registration, as the program sends it.
    watch: Callable[[str, resource_pb2.RegisterResourceRequest], None] | None = None

    def fork(self) -> Engine:
        """The same stack, to be led another way."""
        return replace(self, resources=dict(self.resources), outputs=dict(self.outputs))

    def up(
        self,
        config: Mapping[str, object],
        *,
        failing: Collection[str] = (),
        after: Collection[str] = (),
        left_out: Collection[str] = (),
    ) -> Run:
        """Run the program and keep what it made, as far as it got.

        `config` has the keys of project kube-ha without prefix. Resources named in `failing` fail before they
        are done, and not before those named in `after` are: a gate waits for nodes that it does not depend on.
        Those in `left_out` stay as they are, as what --target does not name and --exclude names.
        Raises RunError.
        """
        monitor = _Monitor(self, frozenset(failing), frozenset(after), frozenset(left_out))
        try:
            self._execute(config, monitor)
        finally:
            # As the engine stores them: what this run has come to in its order, then what it has not.
            self.resources = monitor.run.resources | {
                urn: old for urn, old in self.resources.items() if urn not in monitor.run.resources
            }
        # Resources are stored after what they depend on, and deleted before it.
        gone = [urn for urn in self.resources if urn not in monitor.run.resources]
        for urn in reversed(gone):
            old = self.resources.pop(urn)
            if self.cloud and is_cloud(old.type):
                self.cloud.deleted(old.type, old.id, old.outputs)
            if old.custom:
                monitor.run.changes.append(Change("-", old.name, before=old))
        self.outputs = monitor.outputs
        return monitor.run

    def _execute(self, config: Mapping[str, object], monitor: _Monitor) -> None:
        secrets = {
            key: value["secure"] if _is_secret(value) else _opened(value)
            for key, value in config.items()
            if _is_secret(value) or key == ADDON_SECRETS
        }
        texts = {
            f"kube-ha:{key}": secrets[key] if key in secrets else json.dumps(value)
            for key, value in config.items()
        }
        environment = {
            "PULUMI_CONFIG": json.dumps({**_defaults(), **texts}),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps([f"kube-ha:{key}" for key in secrets]),
        }
        with (
            chdir(self.folder),
            mock.patch.dict(os.environ, environment),
            mock.patch.object(reach, "silent", lambda doors: self.silent & {*doors}),
            mock.patch.object(reach, "silent_behind", lambda _, doors: self.silent & {*doors}),
            mock.patch.object(kubernetes_cluster, "tell", self._tell),
            # Where in the program a resource was made: a seventh of the time, for an engine that shows it.
            mock.patch.object(resource, "_get_stack_trace", source_pb2.StackTrace),
        ):
            contextvars.Context().run(_run_program, monitor, self.stack, self.program)

    def _tell(self, cluster: Prepared, given: StackFile) -> None:
        self.said = cluster
        tell(cluster, given)


def _is_secret(value: object) -> TypeGuard[dict[str, str]]:
    """Encrypted in a stack file; here its text is in plain text, as the engine hands it over."""
    return isinstance(value, dict) and set(value) == {"secure"}


def _opened(values: object) -> str:
    """A mapping of which each value is encrypted, as the engine hands it over."""
    assert isinstance(values, dict)
    return json.dumps({name: value["secure"] for name, value in values.items()})


def _run_program(monitor: _Monitor, stack: str, path: Path) -> None:
    errors: list[str] = []
    pulumi.runtime.configure(
        pulumi.runtime.Settings(
            monitor=monitor,
            engine=_Log(monitor.run.messages, errors),
            project="kube-ha",
            stack=stack,
            dry_run=False,
            organization="organization",
        )
    )

    def program() -> None:
        with mock.patch.object(pulumi.log, "debug", pulumi.log.debug):  # the program sets it
            runpy.run_path(str(path), run_name="__main__")

    try:
        # A failure waits for others, so registrations are side by side; else that only costs time.
        loop = asyncio.SelectorEventLoop if monitor.fails else AtOnce
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.get_loop().set_exception_handler(lambda _loop, _context: None)
            runner.run(pulumi.runtime.run_in_stack(program))
    except SystemExit as error:
        # What the language host asks of a program that has shown its error itself.
        assert error.code == 32, error.code
        (shown,) = errors
        raise RunError(shown) from None
    except Exception as error:
        # The SDK makes a plain Exception of what a resource operation failed with.
        if monitor.failed:
            raise RunError(monitor.failed) from error
        raise


class _Log:
    """The engine's side of the protocol: takes messages."""

    def __init__(self, messages: list[str], errors: list[str]) -> None:
        self._messages = messages
        self._errors = errors

    def Log(self, request: engine_pb2.LogRequest) -> None:  # noqa: N802 (the protocol's name)
        if request.severity >= engine_pb2.INFO:
            self._messages.append(request.message)
        if request.severity == engine_pb2.ERROR:
            self._errors.append(request.message)


class _Nothing(mocks.Mocks):
    """MockMonitor wants one; registrations do not reach it."""

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, object], None]:
        raise NotImplementedError(args.token)

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, object]]:
        raise NotImplementedError(args.name)


class _Monitor(mocks.MockMonitor):
    """The monitor's side of the protocol, as the program sees it."""

    def __init__(
        self,
        engine: Engine,
        failing: frozenset[str],
        after: frozenset[str],
        left_out: frozenset[str],
    ) -> None:
        super().__init__(_Nothing())
        self.run = Run()
        self.outputs: Properties = {}
        self.failed = ""
        self._engine = engine
        self._failing = failing
        self._after = after
        self._left_out = left_out
        self._lock = threading.Condition()

    @property
    def fails(self) -> bool:
        """Whether anything is made to fail."""
        return bool(self._failing)

    def Invoke(  # noqa: N802
        self, request: resource_pb2.ResourceInvokeRequest
    ) -> resource_pb2.ResourceInvokeResponse:
        """What a provider is asked."""
        asked, cloud = decode(request.args), self._engine.cloud
        answer = resource_pb2.ResourceInvokeResponse()
        found = cloud.asked(request.tok, asked) if cloud else self._found(request.tok, asked)
        # Its name is a word of Python.
        getattr(answer, "return").CopyFrom(encode({**asked, **found}))
        return answer

    def _found(self, token: str, asked: Properties) -> Properties:
        """The newest image of an owner, by architecture; a DNS zone, by ID or name."""
        if token == "aws:ec2/getAmi:getAmi":
            wanted = str(plain(asked["filters"]))
            images = self._engine.images.items()
            *_, image = [image for word, image in images if f"'{word}'" in wanted]
            return {"id": image}
        domain, private = self._engine.zones[str(asked.get("zoneId") or asked["name"])]
        if token == "aws:route53/getZone:getZone":
            return {"name": domain, "privateZone": private}
        if token == "gcp:dns/getManagedZone:getManagedZone":
            return {"dnsName": f"{domain}.", "visibility": "private" if private else "public"}
        raise NotImplementedError(token)

    def ReadResource(  # noqa: N802
        self, request: resource_pb2.ReadResourceRequest
    ) -> resource_pb2.ReadResourceResponse:
        """Only the stack's reference to itself is read: it gives the outputs of the last run."""
        own = f"organization/kube-ha/{self._engine.stack}"
        if request.type != "pulumi:pulumi:StackReference" or request.id != own:
            raise NotImplementedError(f"{request.type} {request.id}")
        secret: list[Value] = [
            key for key, value in self._engine.outputs.items() if isinstance(value, Secret)
        ]
        found: Properties = {
            "name": own,
            "outputs": dict(self._engine.outputs),
            "secretOutputNames": secret,
        }
        return resource_pb2.ReadResourceResponse(
            urn=self.make_urn(request.parent, request.type, request.name),
            properties=encode(found),
        )

    def RegisterResource(  # noqa: N802
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        urn = self.make_urn(request.parent, request.type, request.name)
        if self._engine.watch is not None:
            self._engine.watch(urn, request)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        with self._lock:
            if urn in self.run.resources:
                raise AssertionError(f"{urn} is registered twice")
            old = self._engine.resources.get(urn)
        wanted = wanted_of(urn, request)
        if old is not None and wanted.name in self._left_out:
            self.run.resources[urn] = old
            return resource_pb2.RegisterResourceResponse(
                urn=urn, id=old.id, object=encode(old.outputs)
            )
        if wanted.name in self._failing:
            self._await_others()
        try:
            done, change = step(
                old,
                wanted,
                made=self._engine.made,
                failing=wanted.name in self._failing,
                cloud=self._engine.cloud,
            )
        except MadeToFailError as error:
            self.failed = str(error)
            # What the engine keeps of a failed step: the inputs of the last success, or nothing.
            if old is not None:
                self.run.resources[urn] = old
            raise
        with self._lock:
            self.run.resources[urn] = done
            if change is not None:
                self.run.changes.append(change)
            self._lock.notify_all()
        return resource_pb2.RegisterResourceResponse(
            urn=urn, id=done.id, object=encode(done.outputs)
        )

    def _await_others(self) -> None:
        with self._lock:
            if not self._lock.wait_for(lambda: self._after <= self._done(), timeout=_WAIT_S):
                raise AssertionError(f"never done: {', '.join(self._after - self._done())}")

    def _done(self) -> set[str]:
        return {made.name for made in self.run.resources.values()}

    def RegisterResourceOutputs(  # noqa: N802
        self, request: resource_pb2.RegisterResourceOutputsRequest
    ) -> empty_pb2.Empty:
        if "pulumi:pulumi:Stack::" in request.urn:
            self.outputs = decode(request.outputs)
        return empty_pb2.Empty()


@functools.cache
def _defaults() -> dict[str, str]:
    """What the engine adds from Pulumi.yaml for keys that a stack does not set."""
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    return {
        key: json.dumps(declared["default"])
        for key, declared in project["config"].items()
        if "default" in declared
    }
