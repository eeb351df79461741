"""What a probe found on one machine, or in the cluster, as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

SYSTEM_DISK = "/var/lib"
MISSING = "missing"  # said of a file, a program or a mark that is not there


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    active: str  # systemd's words: active, inactive, failed, activating ...
    enabled: str  # enabled, disabled, masked ...; missing: there is no such unit
    since_s: int | None  # epoch
    restarts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    begins: datetime
    ends: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A row of etcd's list of members."""

    id: int
    name: str  # empty: it was added and has not started yet
    peer_url: str
    is_learner: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStatus:
    """What a member says of itself."""

    id: int
    version: str
    leader: int  # id of a member; 0: it knows of none
    raft_index: int
    size: int  # bytes
    in_use: int | None  # bytes of them; None: not told
    quota: int  # bytes; 0: not told
    errors: tuple[str, ...]  # alarms among them
    cluster: int = 0  # id of the etcd cluster that it is a member of; 0: not told


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why the guard of etcd lets it not serve: etcd-guard.sh."""

    time_s: int  # epoch, of the first time
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    free_kib: int
    total_kib: int

    @property
    def free_percent(self) -> int:
        return 100 * self.free_kib // self.total_kib


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """The last snapshot of etcd that a machine saved."""

    time_s: int  # epoch
    name: str
    size: int  # bytes
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A snapshot on its way to the object store."""

    time_s: int  # epoch
    name: str
    trouble: str = ""  # why it is not there


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine. Mappings are by the name or path that was asked for."""

    clock_s: float
    owner: str  # "cluster id node"; empty: it belongs to nothing
    incarnation: int  # which machine under the node's name
    applied: str
    is_busy: bool  # a phase runs there right now
    files: Mapping[str, str]  # SHA-256, or missing
    sums: frozenset[str]  # records of sums that are there
    changed: Mapping[str, Mapping[str, str]]  # by record, path -> changed, missing, mode 644
    units: Mapping[str, Unit]
    marks: Mapping[str, str]  # settled, under-way, missing
    programs: Mapping[str, str]  # what they say of their version, or missing
    artefacts: Mapping[str, str]  # the sum they were installed by
    touched: frozenset[str]  # artefacts whose files are no longer as installed
    certificates: Mapping[str, Certificate | None]  # None: missing or no certificate
    scripts: Mapping[str, str]  # SHA-256 by file name, or missing
    disks: Mapping[str, Disk]  # by a path on each file system: /var/lib, of etcd's data if another
    balancer: Mapping[str, str]  # HAProxy's word by master: UP, DOWN ...
    balancer_error: str
    has_vip: bool | None  # None: not asked
    firewall: str  # kept, changed or missing, as the kernel has its rules; empty: not asked
    readyz: str  # ok, or what is wrong; empty: not asked
    etcd: MemberStatus | None
    etcd_error: str
    etcd_epoch: int  # of its data, which a restore raises; 0: not told
    etcd_mark: str  # of its data: ours, none, other; empty: not told
    etcd_refused: Refusal | None  # None: it may serve
    members: tuple[Member, ...] | None  # None: no quorum, or not asked
    backup: Backup | None  # None: it has saved none, or was not asked
    backup_begun_s: int | None  # epoch; one that has not come to its end
    backup_timer: str  # systemd's word; empty: not asked
    backup_sent: Sending | None  # the last one from here that the object store has
    backup_unsent: Sending | None  # a later one that did not get there


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesNode:
    is_ready: bool
    is_cordoned: bool
    kubelet: str  # version that runs
    runtime: str
    applied: str  # hash of what it was made, by its own word
    begun: str  # hash of what it is being made
    failed: str  # "<hash> <time> <why>" of its last change


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster as its API tells it."""

    nodes: Mapping[str, KubernetesNode]
    asked: frozenset[str]  # names of Nodes that the stack once asked for, as the cluster records it
    endpoints: frozenset[str]  # addresses of API servers behind the Service `kubernetes`
    has_settings: bool  # what kubeadm keeps for nodes that join
