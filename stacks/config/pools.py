"""Config sections of pools of machines, and of exceptions to them."""

from __future__ import annotations

import operator
from typing import Annotated

from pydantic import Field

from stacks.config.clouds import DiskGib
from stacks.config.fields import (
    SPOT_LABEL,
    ZONE_LABEL,
    Arch,
    DnsLabel,
    Effect,
    FilePath,
    Host,
    HostKey,
    InstanceType,
    Ipv4,
    LabelKey,
    LabelValue,
    NodeState,
    Port,
    RoleName,
    Section,
    User,
    Zone,
)


class TaintSpec(Section):
    key: LabelKey = Field(description="[domain/]name")
    value: LabelValue = Field("", description="may be empty")
    effect: Effect = Field(description="what happens to pods that do not tolerate it")


class HostSpec(Section):
    name: DnsLabel = Field(description="name of the machine in cluster and stack, stable for life")
    address: Ipv4 = Field(
        description="address by which the other nodes reach it, and you where sshAddress is missing"
    )
    ssh_address: Host | None = Field(
        None, description="address or name by which you reach it over SSH; default: address"
    )
    user: User | None = Field(None, description="login name; default: machines.ssh.user")
    port: Port | None = Field(None, description="SSH port; default: machines.ssh.port")
    host_key: HostKey | None = Field(None, description="its public host key, 'type base64'")
    zone: Zone | None = Field(
        None, description=f"what it fails together with, a room say; becomes label {ZONE_LABEL}"
    )


class PoolSpec(Section):
    roles: tuple[RoleName, ...] = Field(
        description="what machines of the pool do; control-plane is another word for master"
    )
    count: Annotated[int, Field(ge=0, le=5000)] | None = Field(
        None, description="lab and clouds: machines <pool>-1 to <pool>-<count>"
    )
    hosts: tuple[HostSpec, ...] | None = Field(None, description="adopt: the machines")
    hosts_file: FilePath | None = Field(
        None,
        description="adopt: in place of hosts a file of them beside the stack file, .csv or .yaml "
        "(docs/install/your-machines.md)",
    )
    labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="labels of the Kubernetes nodes"
    )
    taints: tuple[TaintSpec, ...] = Field((), description="taints of the Kubernetes nodes")
    arch: Arch = Field("amd64", description="processor architecture of the machines")
    address_offset: Annotated[int, Field(ge=2, le=65000)] | None = Field(
        None,
        description="lab and clouds: address = subnet + offset + ordinal; default 10 for masters, "
        "30 for load balancers, 50 for etcd alone, 100 for workers",
    )
    zones: tuple[Zone, ...] = Field(
        (),
        description="lab and clouds: zones of the machines, assigned round-robin by number; as "
        "hosts' zone",
    )
    machine_type: InstanceType | None = Field(
        None, description="of clouds: in place of machineType there; new machines get it"
    )
    disk_gib: DiskGib | None = Field(
        None, description="gcp, aws: in place of diskGib there; new machines get it"
    )
    etcd_disk_gib: DiskGib | None = Field(
        None, description="of clouds: in place of etcdDiskGib there; disks that are there grow"
    )
    spot: bool = Field(
        default=False,
        exclude_if=operator.not_,
        description="gcp, aws: of workers, machines that cost less and that the cloud may take "
        f"away at any time; their nodes have label {SPOT_LABEL}=true, and the same as a taint with "
        "PreferNoSchedule; a machine is one or not for life",
    )


class NodeSpec(Section):
    state: NodeState = Field(
        "active",
        description="maintenance: cordoned, workload stays; absent: unavailable for a time, stays "
        "a member, no SSH is tried; decommissioned: left in order, machine and disks stay; lost: "
        "dead, no SSH is tried, the others remove it; compromised: in wrong hands, as lost, and "
        "out until its keys were rotated; removed: left in order, machine "
        "released",
    )
    drain: bool = Field(
        default=False,
        description="with state maintenance: its pods are evicted, as PodDisruptionBudgets allow, "
        "within rollout.drain.timeoutS",
    )
    keep_pods_s: Annotated[int, Field(ge=60, le=604_800)] | None = Field(
        None,
        description="with state maintenance: seconds that its pods stay while it is unresponsive; "
        "without it as long as they tolerate that, usually 300",
    )
    generation: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1, description="raise it to recreate the node under its name, on a new or wiped machine"
    )
    zone: Zone | None = Field(
        None, description="lab and clouds: in place of the one whose turn it is in the pool's zones"
    )
    labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="added to the pool's, or in place of them"
    )
    taints: tuple[TaintSpec, ...] = Field((), description="added to the pool's")
