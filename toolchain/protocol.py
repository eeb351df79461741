"""Pulumi's protocol messages, loaded without running the Pulumi SDK.

The SDK ships the generated messages as `pulumi.runtime.proto`. Importing that package the plain way
first runs all of the SDK, which costs a quarter of a second in each of three processes at every
`pulumi up`; so the two packages above it are entered into the module table as empty ones. Only the
stand-ins do this: nothing in their processes uses the SDK itself.
"""

from __future__ import annotations

import importlib.util
import sys
import types

_SKIPPED = ("pulumi", "pulumi.runtime")


def _skip_sdk() -> None:
    """Enter the parents of `pulumi.runtime.proto` as packages that have a place but no content."""
    if "pulumi" in sys.modules:
        return
    spec = importlib.util.find_spec("pulumi")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the Pulumi SDK is not installed in " + sys.prefix + ": run make setup")
    folder = next(iter(spec.submodule_search_locations))
    for name in _SKIPPED:
        module = types.ModuleType(name)
        module.__path__ = [folder + name.removeprefix("pulumi").replace(".", "/")]
        sys.modules[name] = module


_skip_sdk()

# Below the call on purpose: these are the imports that the call makes cheap.
from pulumi.runtime.proto import (  # noqa: E402
    engine_pb2,
    language_pb2,
    language_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
)

__all__ = [
    "engine_pb2",
    "language_pb2",
    "language_pb2_grpc",
    "plugin_pb2",
    "provider_pb2",
    "provider_pb2_grpc",
]
