"""What fulfils `Entry` for prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stacks.catalogue.entry import NodePort, Wanted, no_notices
from stacks.catalogue.prometheus import agent, server
from stacks.catalogue.prometheus.names import AGENT_PORT, NAMESPACE, NODE_PORT, SERVER
from stacks.config.problems import Problem
from stacks.config.spec import AddonSpec, Spec
from stacks.documents.kubernetes_objects import Document
from stacks.releases.versions import Versions

ROLLOUTS: tuple[str, ...] = (
    f"{NAMESPACE}/statefulset/{SERVER}",
    *(f"{NAMESPACE}/daemonset/{name}" for name in agent.names()),
)
SETTINGS: tuple[str, ...] = ("alertmanagers", "retention_days", "storage_gi")
REGISTRIES: tuple[str, ...] = ("quay.io",)
LOCAL_PORTS: Mapping[int, str] = {
    AGENT_PORT: "the agent of Prometheus",
    NODE_PORT: "node-exporter",
}
PORTS: tuple[NodePort, ...] = ()
READS_NODES: bool = True
LOGS_IN: bool = False
NEEDS_LAYER_2: bool = False
NEEDS_POLICIES: bool = False
notices = no_notices
NODE_FOLDER: str = ""


def version(versions: Versions) -> str:
    """Of the set, as artifacts/lock.yaml has it."""
    return versions.prometheus


def problems(spec: Spec) -> Iterable[Problem]:
    """None: it asks what is there."""
    del spec
    return ()


def objects(wanted: Wanted, said: AddonSpec) -> tuple[Document, ...]:
    """The servers, and an agent on every node."""
    return (*server.objects(wanted, said), *agent.objects(wanted))
