"""Typed config of one stack: what the user says, every static error at once.

The keys of Pulumi.<stack>.yaml below `kube-ha:` become one frozen `Spec`. Unknown keys are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from stacks import addon_files, checks, ingress_files, mending, object_store, problems, ssh_keys
from stacks.cloud_settings import AwsSpec, DiskGib, GcpSpec
from stacks.control_plane_settings import ControlPlaneSpec
from stacks.fields import (
    AllowId,
    Arch,
    Cidr,
    ClusterName,
    DnsLabel,
    DnsName,
    Effect,
    Endpoint,
    FilePath,
    Host,
    HostKey,
    InstanceType,
    Ipv4,
    LabelKey,
    LabelValue,
    NodeState,
    Port,
    Role,
    Section,
    User,
    Version,
    Zone,
)
from stacks.front_door_settings import FrontDoorsSpec
from stacks.inventory import ZONE_LABEL
from stacks.node_settings import KubeletSpec, MirrorSpec, ProxySpec, RuntimeSpec
from stacks.problems import Problem
from stacks.rollout_settings import RolloutSpec
from stacks.settings import (
    ConvergeSpec,
    EtcdSpec,
    LoadBalancingSpec,
    NetworkSpec,
    OsSpec,
    PkiSpec,
)

__all__ = ["Role", "Spec", "SpecError", "TaintSpec", "load"]


class SpecError(ValueError):
    """Every problem of one stack's config, as (config path, what to do) pairs."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{path}: {text}" for path, text in problems))


class ClusterSpec(Section):
    name: ClusterName = Field(description="first part of every resource name; fixed for life")
    kubernetes: Version = Field(description="Kubernetes release, one of artifacts/lock.yaml")
    etcd: Version | None = Field(
        None, description="another etcd of the lock that fits; default: that of the Kubernetes set"
    )
    containerd: Version | None = Field(
        None,
        description="another containerd of the lock that fits; default: that of the Kubernetes set",
    )
    pod_cidr: Cidr = Field(
        "10.244.0.0/16", description="pods; each node takes a part of it (network.nodeCidrMask)"
    )
    service_cidr: Cidr = Field("10.96.0.0/16", description="services; .1 is the API, .10 is DNS")
    dns_domain: DnsName = Field("cluster.local", description="domain of the cluster's own DNS")
    endpoint: Endpoint | None = Field(
        None, description="host[:port] by which clients outside reach the API; default: a master"
    )


class BastionSpec(Section):
    address: Host = Field(description="machine through which all others are reached")
    user: User = Field("root", description="login name on the bastion")
    port: Port = Field(22, description="SSH port of the bastion")
    host_key: HostKey | None = Field(None, description="its public host key, 'type base64'")
    private_key_file: FilePath | None = Field(
        None, description="key for the bastion; default: as for the machines"
    )


class SshSpec(Section):
    user: User = Field("root", description="login name on machines; needs sudo without password")
    port: Port = Field(22, description="SSH port of the machines")
    private_key_file: FilePath | None = Field(
        None, description="OpenSSH private key without passphrase, readable by you alone"
    )
    agent: bool = Field(
        default=False, description="use the SSH agent of the caller in place of a key file"
    )
    bastion: BastionSpec | None = Field(None, description="jump host, where there is one")
    insecure_ignore_host_key: bool = Field(
        default=False,
        description="connect to machines without hostKey, unprotected against impostors",
    )


class LabSpec(Section):
    subnet: Cidr = Field(
        "10.92.0.0/24",
        description="network of the lab; its first address is this computer, its second the mirror",
    )


class MachinesSpec(Section):
    provider: Literal["lab", "adopt", "gcp", "aws"] = Field(
        description="lab: containers on this computer; adopt: machines that are there, over SSH; "
        "gcp, aws: machines made in that cloud"
    )
    lab: LabSpec = Field(LabSpec(), description="settings of the lab")
    gcp: GcpSpec | None = Field(None, description="settings of machines on Google Cloud")
    aws: AwsSpec | None = Field(None, description="settings of machines on AWS")
    ssh: SshSpec = Field(SshSpec(), description="how adopted machines are reached")
    on_release: Literal["wipe", "keep"] = Field(
        "wipe",
        description="adopted machines that leave for good: wiped of everything of ours, or stopped "
        "and kept as they are, to be adopted again",
    )
    containers: bool = Field(
        default=False, description="adopted machines are containers: relax what they cannot set"
    )


class TaintSpec(Section):
    key: LabelKey = Field(description="[domain/]name")
    value: LabelValue = Field("", description="may be empty")
    effect: Effect = Field(description="what happens to pods that do not tolerate it")


class HostSpec(Section):
    name: DnsLabel = Field(description="name of the machine in cluster and stack, stable for life")
    address: Ipv4 = Field(description="address by which you and the other nodes reach it")
    user: User | None = Field(None, description="login name; default: machines.ssh.user")
    port: Port | None = Field(None, description="SSH port; default: machines.ssh.port")
    host_key: HostKey | None = Field(None, description="its public host key, 'type base64'")
    zone: Zone | None = Field(
        None, description=f"what it fails together with, a room say; becomes label {ZONE_LABEL}"
    )


class PoolSpec(Section):
    roles: tuple[Role, ...] = Field(description="what machines of the pool do")
    count: Annotated[int, Field(ge=0, le=5000)] | None = Field(
        None, description="lab, gcp, aws: machines <pool>-1 to <pool>-<count>"
    )
    hosts: tuple[HostSpec, ...] | None = Field(None, description="adopt: the machines")
    labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="labels of the Kubernetes nodes"
    )
    taints: tuple[TaintSpec, ...] = Field((), description="taints of the Kubernetes nodes")
    arch: Arch = Field("amd64", description="processor architecture of the machines")
    address_offset: Annotated[int, Field(ge=2, le=65000)] | None = Field(
        None,
        description="lab, gcp, aws: address = subnet + offset + ordinal; default 10 for masters, "
        "30 for load balancers, 50 for etcd alone, 100 for workers",
    )
    zones: tuple[Zone, ...] = Field(
        (),
        description="lab, gcp, aws: zones of the machines, by turns of their numbers; as hosts' "
        "zone",
    )
    machine_type: InstanceType | None = Field(
        None, description="gcp, aws: in place of machineType there; new machines get it"
    )
    disk_gib: DiskGib | None = Field(
        None, description="gcp, aws: in place of diskGib there; new machines get it"
    )
    etcd_disk_gib: DiskGib | None = Field(
        None, description="gcp, aws: in place of etcdDiskGib there; new disks get it"
    )


class NodeSpec(Section):
    state: NodeState = Field(
        "active",
        description="maintenance: cordoned, workload stays; decommissioned: left in order, machine "
        "and disks stay; lost: dead, no SSH is tried, the others remove it; removed: left in "
        "order, machine released",
    )
    generation: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1, description="raise it to make the node anew under its name, on a new or wiped machine"
    )
    zone: Zone | None = Field(
        None, description="lab, gcp, aws: in place of the one whose turn it is in the pool's zones"
    )
    labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="added to the pool's, or in place of them"
    )
    taints: tuple[TaintSpec, ...] = Field((), description="added to the pool's")


class AddonSpec(Section):
    manifests: tuple[FilePath, ...] = Field(
        description="files of Kubernetes objects in YAML, relative to the project's folder"
    )


class Spec(Section):
    """The whole config of one stack, the keys of project kube-ha."""

    cluster: ClusterSpec = Field(description="what the cluster is")
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
        FrontDoorsSpec(), description="how clients outside reach the cluster (docs/front-doors.md)"
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
        "(docs/day-2.md)",
    )
    rollout: RolloutSpec = Field(
        RolloutSpec(), description="how changes reach the workers: waves, checks, limits"
    )
    os: OsSpec = Field(OsSpec(), description="packages of the operating system, and reboots")
    converge: ConvergeSpec = Field(ConvergeSpec(), description="re-assert the fleet")
    allow: tuple[AllowId, ...] = Field(
        (), description="refusals to pass over, by the id that each of them tells"
    )


def load(raw: Mapping[str, object], *, read_keys: bool = True) -> Spec:
    """The typed config of plain `raw` values, keyed without the `kube-ha:` prefix.

    Every problem is found in one go: values that are wrong are set aside, so that the checks across
    fields still run on the rest. `read_keys=False` leaves SSH key files unread, for a plan on a
    computer that has none. Raises SpecError.
    """
    found, spec = _parse(raw)
    if spec is not None:
        late = checks.problems(spec)
        late += object_store.secret_problems(spec, raw)
        if read_keys:
            late += ssh_keys.problems(spec) + ingress_files.problems(spec)
            late += addon_files.problems(spec)
        found += problems.unrelated(late, to=found)
    if spec is not None and not found:
        found += _sizes(spec)
    if found or spec is None:
        raise SpecError(sorted(set(found)))
    return spec


def remembered(raw: Mapping[str, object]) -> Spec:
    """The config of a past success, as far as today's model knows it.

    What was accepted then is not judged again: keys that are gone are left out, and of what would
    be wrong today the rest is taken. Raises SpecError when nothing can be made of it.
    """
    found, spec = _parse(raw)
    if spec is None:
        raise SpecError(found)
    return spec


def _sizes(spec: Spec) -> list[Problem]:
    """Problems of what the plan becomes on machines; `spec` is right in everything else."""
    # Not at the top: a plan is made of what this module defines.
    from stacks import check_sizes, desired, plan, rollout

    made = plan.plan(spec)
    taken = addon_files.taken(made.addons, desired.addons(made)) if made.addons else []
    return check_sizes.problems(made) + rollout.problems(made) + taken


def _parse(raw: Mapping[str, object]) -> tuple[list[Problem], Spec | None]:
    """All problems of single values, and the Spec of the values that are right, if that is one."""
    try:
        # Through JSON: lists may stand for tuples while "5" still is no number, and nothing but
        # plain data can hide in it.
        kept, found = problems.opened(raw, Spec)
        text = json.dumps(kept)
    except (TypeError, ValueError, RecursionError) as error:
        return [Problem("config", f"holds something that is no plain data ({error})")], None
    seen: set[str] = set()
    while text not in seen:
        seen.add(text)
        try:
            return found, Spec.model_validate_json(text, strict=True, by_alias=True, by_name=False)
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=True)
            found += problems.unrelated(problems.translate(details, Spec), to=found)
            text = mending.mended(text, details)
    return found, None
