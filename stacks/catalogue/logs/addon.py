"""What fulfils `Entry` for logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stacks.catalogue.entry import NodePort, Wanted, no_notices
from stacks.catalogue.logs import collector, store
from stacks.catalogue.logs.names import FOLDER, NAMESPACE, STORE
from stacks.config.problems import Problem
from stacks.config.spec import AddonSpec, Spec
from stacks.documents.kubernetes_objects import Document
from stacks.releases.versions import Versions

NAME = "logs"
ROLLOUTS: tuple[str, ...] = (
    f"{NAMESPACE}/statefulset/{STORE}",
    *(f"{NAMESPACE}/daemonset/{name}" for name in collector.names()),
)
SETTINGS: tuple[str, ...] = (
    "buffer_mib",
    "endpoint",
    "retention_days",
    "secret",
    "storage_gi",
)
REGISTRIES: tuple[str, ...] = ("docker.io",)
LOCAL_PORTS: Mapping[int, str] = {}
PORTS: tuple[NodePort, ...] = ()
READS_NODES: bool = False
LOGS_IN: bool = False
NEEDS_LAYER_2: bool = False
NEEDS_POLICIES: bool = False
notices = no_notices
NODE_FOLDER: str = FOLDER
_OF_STORE = (("retention_days", "retentionDays"), ("storage_gi", "storageGi"))


def version(versions: Versions) -> str:
    """Of the set, as artifacts/lock.yaml has it."""
    return versions.opentelemetry_collector


def problems(spec: Spec) -> Iterable[Problem]:
    """Settings of a store that is not the stack's, and a secret that all on the way would read."""
    said = spec.addons[NAME]
    path = f"addons.{NAME}"
    if said.endpoint is None:
        if said.secret is not None:
            yield Problem(f"{path}.secret", "is of an endpoint; name one, or leave it out")
        return
    for key, alias in _OF_STORE:
        if getattr(said, key) != AddonSpec.model_fields[key].default:
            yield Problem(
                f"{path}.{alias}", "is of the store in the cluster; with an endpoint leave it out"
            )
    if said.secret is not None and not said.endpoint.startswith("https://"):
        yield Problem(
            f"{path}.endpoint", "gets a secret, which http shows to all on the way; write https://"
        )


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """The store, unless the config names one, and a collector on every node."""
    own = () if said.endpoint else store.objects(wanted, said)
    return (*own, *collector.objects(wanted, said))
