"""What the program registers for a fixed set of configs and edits, as digests.

Time, keys, numbers and the sums of node scripts are frozen, so that two runs of the same program give the same ones.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import resource_pb2

from tests.plan import providers
from tests.plan.lock_cases import CASES, FILES, Case
from tests.plan.recording import Engine
from tests.plan.settled import Stacks
from tests.unit.configs import edited
from toolchain.values import Properties, Secret, Value

FILE = Path(__file__).with_suffix(".json")
AGAIN = "again"  # a second update of the same config

Aspects = dict[str, str]  # what of a resource, and its digest, or its text
Registered = dict[str, Aspects]  # by name and type
Lines = dict[str, str]  # words `what=digest` by name and type

_NOW = 1_800_000_000.0
# Of a registration: where in the source it was made, what the SDK can do, what is read apart.
_APART = {
    *("object", "propertyDependencies", "dependencies", "name", "type", "custom"),
    *("sourcePosition", "stackTrace", "parentStackTraceHandle", "packageRef"),
    *("acceptSecrets", "acceptResources", "supportsPartialValues", "supportsResultReporting"),
    *("remote", "aliasSpecs"),
}
_made = threading.local()  # the URN of what this thread makes


@dataclass(slots=True)
class Recorder:
    """Collects the registrations of one update."""

    registered: Registered = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def watch(self, urn: str, request: resource_pb2.RegisterResourceRequest) -> None:
        options = MessageToDict(request)
        found = {
            key: json.dumps(sorted(value, key=str) if isinstance(value, list) else value)
            for key, value in options.items()
            if key not in _APART
        }
        found |= {"urn": urn, "dependencies": "\n".join(sorted(request.dependencies))}
        for key, value in request.object.fields.items():
            used = sorted(request.propertyDependencies[key].urns)
            text = json.dumps(MessageToDict(value), sort_keys=True)
            found[f"input {key}"] = "\n".join([text, *used])
        with self._lock:
            self.registered[f"{request.name} {request.type.rpartition(':')[2]}"] = found


def digests(registered: Registered) -> Lines:
    """Words `what=digest` of each resource."""
    return {
        name: " ".join(
            f"{aspect.replace(' ', '.')}={hashlib.sha256(text.encode()).hexdigest()[:4]}"
            for aspect, text in sorted(found.items())
        )
        for name, found in sorted(registered.items())
    }


def runs() -> Iterator[tuple[str, Registered]]:
    """Name of every update, and what was registered."""
    with _frozen(), TemporaryDirectory() as folder:
        for name, text in FILES.items():
            Path(folder, name).write_text(text)
        stacks = Stacks(Path(folder))
        for name, case in CASES.items():
            yield from _of_case(stacks, name, case)


def _of_case(stacks: Stacks, name: str, case: Case) -> Iterator[tuple[str, Registered]]:
    config = case.make(case.start)
    born = stacks.new(config)
    yield name, _up(born, config)
    if case.edits:
        yield f"{name}: {AGAIN}", _up(born, config)
    for edit, steps in case.edits.items():
        engine = born.fork()
        for number, step in enumerate(steps, 1):
            after = edited(config, step) if case.on_top else case.make(step)
            label = f"{name}: {edit}" + (f", step {number}" if len(steps) > 1 else "")
            yield label, _up(engine, after)


def _up(engine: Engine, config: Mapping[str, object]) -> Registered:
    recorder = Recorder()
    engine.watch = recorder.watch
    engine.up(config)
    outputs = {key: json.dumps(_shown(value)) for key, value in engine.outputs.items()}
    return {**recorder.registered, "outputs": outputs}


def _shown(value: Value) -> object:
    match value:
        case Secret():
            return {"secret": _shown(value.value)}
        case list():
            return [_shown(item) for item in value]
        case dict():
            return {key: _shown(item) for key, item in sorted(value.items())}
        case _:
            return value


@contextmanager
def _frozen() -> Iterator[None]:
    made = providers.created

    def created(
        urn: str, kind: str, inputs: Properties, known: providers.Made, cloud: None
    ) -> tuple[str, Properties]:
        if kind.startswith("tls:"):
            return _pem(urn, kind, inputs)
        _made.urn = urn
        try:
            number, outputs = made(urn, kind, inputs, known, cloud)
        finally:
            del _made.urn  # the program itself, in this thread too, asks for numbers of its own
        return number, {**outputs, "output": f"stamp of {urn}"} if "output" in outputs else outputs

    with ExitStack() as frozen:
        for name, value in (
            ("tests.plan.providers.created", created),
            ("uuid.uuid4", _number),
            ("time.time", lambda: _NOW),
            ("stacks.phases.scripts.script_sum", "script sum of {}".format),
        ):
            frozen.enter_context(mock.patch(name, value))
        yield


def _number() -> uuid.UUID:
    return uuid.UUID(hashlib.md5(getattr(_made, "urn", "").encode()).hexdigest())  # noqa: S324


def _pem(urn: str, kind: str, inputs: Properties) -> tuple[str, Properties]:
    """Keys and certificates by name: as texts they do, and take no time."""
    mark = hashlib.sha256(f"{urn} {_shown(inputs)}".encode()).hexdigest()
    keys = ("privateKeyPem", "privateKeyOpenssh", "privateKeyPemPkcs8")
    open_ones = ("publicKeyPem", "publicKeyOpenssh", "certPem", "certRequestPem", "keyAlgorithm")
    outputs: Properties = {
        **inputs,
        **{key: Secret(f"{key} {mark}\n") for key in keys if kind.endswith("PrivateKey")},
        **{key: f"{key} {mark}\n" for key in open_ones},
        "validityEndTime": "2099-01-01T00:00:00Z",
    }
    return mark, outputs


def record() -> dict[str, Lines]:
    """Words of every resource, by up."""
    return {name: digests(registered) for name, registered in runs()}


def packed(ups: Mapping[str, Lines]) -> dict[str, object]:
    """As it is stored: of an update what differs from the one before it in its chain, digests alone.

    What they are digests of is the same for many, so that is said once.
    """
    kinds: dict[str, int] = {}
    out: dict[str, dict[str, str]] = {}
    for name, lines in ups.items():
        base = ups.get(like(name), {})
        out[name] = dict.fromkeys(sorted(base.keys() - lines.keys()), "")
        for key, line in lines.items():
            if base.get(key) != line:
                aspects, sums = zip(*(word.split("=") for word in line.split()), strict=True)
                number = kinds.setdefault(" ".join(aspects), len(kinds))
                out[name][key] = f"{number} {' '.join(sums)}"
    return {"aspects": list(kinds), "ups": out}


def unpacked(stored: Mapping[str, Any]) -> dict[str, Lines]:
    """What `packed` was given."""
    found: dict[str, Lines] = {}
    for name, changed in stored["ups"].items():
        found[name] = dict(found.get(like(name), {}))
        for key, text in changed.items():
            number, *sums = text.split() or [""]
            aspects = stored["aspects"][int(number)].split() if number else []
            pairs = zip(aspects, sums, strict=True)
            found[name][key] = " ".join(f"{aspect}={total}" for aspect, total in pairs)
        found[name] = {key: line for key, line in sorted(found[name].items()) if line}
    return found


def like(up: str) -> str:
    """The update that most registrations of this one are the same as; empty: none."""
    name, _, edit = up.partition(": ")
    if not edit:
        return CASES[name].like if name in CASES else ""
    return name if edit == AGAIN else f"{name}: {AGAIN}"


def differences(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Each resource that differs, and what of it."""
    out = []
    for name in sorted({*was, *now}):
        old, new = (set(lines.get(name, "").split()) for lines in (was, now))
        if not new:
            out.append(f"is not registered any more: {name}")
        elif not old:
            out.append(f"is registered and was not: {name}")
        elif old != new:
            aspects = sorted({word.partition("=")[0] for word in old ^ new})
            out.append(f"{name}: {', '.join(aspects)}")
    return out


def main(folder: str | None) -> None:
    """Write the lock again; or, for a look at what differs, every registration as text."""
    if folder is None:
        FILE.write_text(json.dumps(packed(record()), indent=0) + "\n")
        return
    for name, registered in runs():
        place = Path(folder) / name.replace(": ", "/").replace(" ", "-")
        place.mkdir(parents=True, exist_ok=True)
        for resource, found in registered.items():
            lines = [f"{aspect}: {text}" for aspect, text in sorted(found.items())]
            (place / resource.replace("/", "_")).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
