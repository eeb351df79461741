"""Typed config of one stack: what the user says.

The keys of Pulumi.<stack>.yaml below `kube-ha:` become one frozen `Spec`. Unknown keys are refused.
"""

from __future__ import annotations

import operator
from typing import Annotated

from pydantic import Field

from stacks.config.addon_secrets import AddonSecretSpec
from stacks.config.charts import ChartSpec
from stacks.config.cluster import ClusterSpec
from stacks.config.control_plane import ControlPlaneSpec
from stacks.config.etcd import EtcdSpec
from stacks.config.fields import (
    AddressRange,
    AllowId,
    DnsLabel,
    DnsName,
    Endpoint,
    FilePath,
    Folder,
    LabelKey,
    LabelValue,
    Section,
    Url,
    is_unsaid,
)
from stacks.config.front_doors import FrontDoorsSpec
from stacks.config.hooks import HooksSpec
from stacks.config.kubelet import KubeletSpec
from stacks.config.machines import MachinesSpec
from stacks.config.network import LoadBalancingSpec, NetworkSpec
from stacks.config.operating_system import OsSpec
from stacks.config.pki import PkiSpec
from stacks.config.pools import NodeSpec, PoolSpec
from stacks.config.rollout import ConvergeSpec, RolloutSpec
from stacks.config.runtime import MirrorSpec, ProxySpec, RuntimeSpec
from stacks.config.sizing import SizingSpec


class AddonSpec(Section):
    manifests: tuple[FilePath, ...] = Field(
        (),
        description="files of Kubernetes objects in YAML, relative to the project's folder; none "
        "for an add-on of the catalogue (docs/operate/add-ons.md)",
    )
    chart: ChartSpec | None = Field(
        None, description="a Helm chart in place of manifests", exclude_if=is_unsaid
    )
    secrets: dict[DnsName, AddonSecretSpec] = Field(
        default_factory=dict,
        description="Secrets that it brings, by name; their values are encrypted "
        "(docs/operate/add-ons.md)",
        exclude_if=is_unsaid,
    )
    reconcile: bool = Field(
        default=False,
        description="put back every 5 minutes what was deleted or edited of it, from the control "
        "plane node that applied it (docs/operate/add-ons.md)",
        exclude_if=operator.not_,
    )
    default: bool = Field(
        default=False,
        description="local-path: its StorageClass is the one of claims that name none; traefik: "
        "its IngressClass is the one of Ingresses that name none",
    )
    path: Folder | None = Field(
        None,
        description="local-path: folder on nodes in which volumes are made; default: "
        "/opt/local-path-provisioner",
    )
    retention_days: Annotated[int, Field(ge=1, le=3650)] = Field(
        15,
        description="prometheus: days for which measurements are kept; logs: for which the store "
        "in the cluster keeps lines",
    )
    storage_gi: Annotated[int, Field(ge=2, le=16384)] | None = Field(
        None,
        description="prometheus, logs: GiB that each of its servers, and the store in the cluster, "
        "claims of the default StorageClass; default: 10 on the disk of its node, gone with its "
        "pod",
    )
    alertmanagers: tuple[Endpoint, ...] = Field(
        (), description="prometheus: who is told of alerts, each as host:port"
    )
    endpoint: Url | None = Field(
        None,
        description="logs: where collectors send to by OTLP over HTTP, without /v1/logs, as "
        "https://loki.example.com/otlp; default: a Loki in the cluster",
        exclude_if=is_unsaid,
    )
    secret: DnsName | None = Field(
        None,
        description="logs: Secret of kube-system whose key authorization is that header for the "
        "endpoint",
        exclude_if=is_unsaid,
    )
    buffer_mib: Annotated[int, Field(ge=16, le=65536)] | None = Field(
        None,
        description="logs: MiB of lines that each node keeps on its disk while the store does not "
        "take them; default: 512",
        exclude_if=is_unsaid,
    )
    nodes: dict[LabelKey, LabelValue] = Field(
        default_factory=dict,
        description="toolbox: labels of the nodes that keep its image; default: all nodes",
    )
    addresses: tuple[AddressRange, ...] = Field(
        (),
        description="metallb: addresses for Services of type LoadBalancer; each item is one, a "
        "network, or first-last",
        exclude_if=is_unsaid,
    )
    hosts: tuple[Endpoint, ...] = Field(
        (),
        description="registry-login: registries, each as host or host:port, whose images every "
        "node pulls with the login of its Secret",
        exclude_if=is_unsaid,
    )
    namespaces: tuple[DnsLabel, ...] = Field(
        (),
        description="default-deny: namespaces whose pods are reached by nobody, and reach DNS "
        "alone, but for what other policies allow",
        exclude_if=is_unsaid,
    )


class Spec(Section):
    """The whole config of one stack, the keys of project kube-ha."""

    cluster: ClusterSpec = Field(description="what the cluster is")
    sizing: SizingSpec = Field(
        SizingSpec(), description="number of nodes that the settings are made for"
    )
    machines: MachinesSpec = Field(description="where machines come from, how they are reached")
    pools: dict[DnsLabel, PoolSpec] = Field(description="groups of equal machines, by name")
    nodes: dict[DnsLabel, NodeSpec] = Field(
        default_factory=dict, description="exceptions to the pool, by node name"
    )
    network: NetworkSpec = Field(NetworkSpec(), description="pod network and services")
    load_balancing: LoadBalancingSpec = Field(
        LoadBalancingSpec(), description="HAProxy on every node, its way to the API"
    )
    front_doors: FrontDoorsSpec = Field(
        FrontDoorsSpec(),
        description="how clients outside reach the cluster (docs/explain/front-doors.md)",
    )
    etcd: EtcdSpec = Field(EtcdSpec(), description="timings and size of etcd")
    control_plane: ControlPlaneSpec = Field(
        ControlPlaneSpec(), description="API server, controller manager, scheduler"
    )
    kubelet: KubeletSpec = Field(KubeletSpec(), description="kubelet on every node")
    runtime: RuntimeSpec = Field(RuntimeSpec(), description="containerd on every node")
    pki: PkiSpec = Field(PkiSpec(), description="lifetimes of certificates")
    mirror: MirrorSpec | None = Field(
        None, description="where nodes fetch from; default: the lab's own mirror, else upstream"
    )
    proxy: ProxySpec = Field(ProxySpec(), description="HTTP proxy of the nodes")
    addons: dict[DnsLabel, AddonSpec] = Field(
        default_factory=dict,
        description="what else runs in the cluster, by name: applied in the order of the names "
        "(docs/operate/add-ons.md)",
    )
    rollout: RolloutSpec = Field(
        RolloutSpec(), description="how changes reach the workers: waves, checks, limits"
    )
    hooks: HooksSpec | None = Field(
        None,
        description="a webhook that is asked before nodes are drained or released "
        "(docs/operate/hooks.md)",
    )
    os: OsSpec = Field(OsSpec(), description="packages of the operating system, and reboots")
    converge: ConvergeSpec = Field(ConvergeSpec(), description="re-assert the fleet")
    allow: tuple[AllowId, ...] = Field(
        (), description="refusals to pass over, by the id that each of them tells"
    )
