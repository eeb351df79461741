"""Config sections of what all machines share: network, the way to the API, etcd, PKI."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.fields import (
    AccessKey,
    BaseUrl,
    BucketName,
    Certificates,
    FilePath,
    ObjectPrefix,
    PackageName,
    Section,
    StoreRegion,
    UpdateWord,
)


class NetworkSpec(Section):
    plugin: Literal["flannel", "none"] = Field(
        "flannel", description="pod network; none leaves nodes NotReady for your own manifest"
    )
    backend: Literal["vxlan", "host-gw"] = Field(
        "vxlan", description="how flannel carries packets; host-gw needs all nodes on one layer 2"
    )
    proxy_mode: Literal["nftables", "iptables"] = Field(
        "nftables", description="how kube-proxy implements services"
    )
    node_cidr_mask: Annotated[int, Field(ge=20, le=28)] = Field(
        24,
        description="a node's part of podCidr, in bits: 24 has addresses for 253 pods; fixed when "
        "the cluster is made",
    )
    mtu: Annotated[int, Field(ge=576, le=9000)] | None = Field(
        None,
        description="biggest packet of a pod in bytes; pods that run keep theirs, and to go back "
        "write the old number; default: what the machine's interface takes, less 50 for vxlan",
    )


# An API server that ends answers for so long after it has said that it is no longer ready.
API_SHUTDOWN_DELAY_S = 15
CHECKS_TO_FALL = 2  # failed checks in a row after which HAProxy takes a master out
CHECK_TIMEOUT_S = 3


class LoadBalancingSpec(Section):
    max_connections: Annotated[int, Field(ge=100, le=100000)] = Field(
        4000, description="connections to the API that one node's HAProxy carries at a time"
    )
    check_interval_ms: Annotated[int, Field(ge=500, le=60000)] = Field(
        2000, description="time between two checks of one master by one node"
    )
    idle_timeout_h: Annotated[int, Field(ge=1, le=500)] = Field(
        24, description="silence after which a connection (a watch, an exec) is closed, in hours"
    )

    @property
    def detection_ms(self) -> int:
        """The longest that a node sends new connections to a master that is no longer ready."""
        return CHECKS_TO_FALL * self.check_interval_ms + 1000 * CHECK_TIMEOUT_S


class ObjectStoreSpec(Section):
    endpoint: BaseUrl = Field(
        description="http(s)://host[:port] of an S3 API, without the bucket's name"
    )
    bucket: BucketName = Field(description="bucket; it has to be there")
    prefix: ObjectPrefix = Field(
        "", description="first part of the names of objects; the cluster's own folder follows"
    )
    region: StoreRegion = Field(
        "us-east-1",
        description="region that requests are signed for; auto: Google Cloud Storage",
    )
    access_key: AccessKey = Field(
        description="ID of the key that nodes use; its secret is kube-ha:backupSecretKey "
        "(pulumi config set --secret)"
    )
    ca: Certificates | None = Field(
        None, description="CA of the endpoint; default: those that the machines trust"
    )
    prune: bool = Field(
        default=True,
        description="old ones are deleted there too, by `keep`; false: for a key that may only "
        "write, the bucket's lifecycle rules delete",
    )


class BackupSpec(Section):
    every_hours: Literal[0, 1, 2, 3, 4, 6, 8, 12, 24] = Field(
        6,
        description="a timer on every etcd machine, of which the leader's does the work: at these "
        "hours of the day, counted from 0:00 UTC; 0: no timer",
    )
    keep: Annotated[int, Field(ge=1, le=1000)] = Field(
        28, description="snapshots kept of each reason (schedule, change, manual); older ones go"
    )
    directory: FilePath | None = Field(
        None,
        description="absolute path on every etcd machine of a mount that is elsewhere (NFS, say), "
        "where each snapshot is copied to; default: in /var/lib/kube-ha/backups alone",
    )
    object_store: ObjectStoreSpec | None = Field(
        None, description="bucket where each snapshot is sent to: AWS S3, MinIO, Ceph, Google Cloud"
    )
    encrypt: bool = Field(
        default=True,
        description="with a key of this stack: snapshots hold all objects, and are as secret as "
        "the cluster; without its state they cannot be opened",
    )


class EtcdSpec(Section):
    backup: BackupSpec = Field(BackupSpec(), description="snapshots of etcd (docs/backup.md)")
    heartbeat_interval_ms: Annotated[int, Field(ge=10, le=5000)] = Field(
        100, description="leader's heartbeat; about the slowest round trip between two members"
    )
    election_timeout_ms: Annotated[int, Field(ge=100, le=50000)] = Field(
        1000, description="silence after which members elect; at least 10 round trips"
    )
    quota_backend_gib: Annotated[int, Field(ge=1, le=8)] = Field(
        2, description="size at which etcd stops writes; it keeps the whole of it in memory"
    )
    # The API server's client of etcd sends no more than 2 MiB.
    max_request_kib: Annotated[int, Field(ge=1536, le=2048)] = Field(
        1536,
        description="biggest object that can be written; all members hold it in memory at once",
    )
    snapshot_count: Annotated[int, Field(ge=1000, le=1_000_000)] = Field(
        10000,
        description="writes between two snapshots; more take more memory, fewer more disk work",
    )
    compaction_retention_min: Annotated[int, Field(ge=5, le=10080)] = Field(
        60,
        description="minutes after which old revisions go while no API server runs, which else "
        "sees to it every 5",
    )
    metrics: Literal["basic", "extensive"] = Field(
        "basic", description="extensive adds histograms of every gRPC call to 127.0.0.1:2381"
    )


Step = Literal["trust", "issue", "drop"]


class RotationSpec(Section):
    """Where one kind of key stands: which generation of it is the newest, and what it does yet."""

    generation: Annotated[int, Field(ge=1, le=1000)] = Field(
        1, description="the newest one of its kind; 1 is what the cluster is born with"
    )
    step: Step = Field(
        "drop",
        description="trust: the newest is known everywhere beside the one before; issue: it signs "
        "or encrypts; drop: the one before is gone. One step per up, in this order",
    )


class PkiRotationSpec(Section):
    kubernetes: RotationSpec = Field(
        RotationSpec(), description="CA of API servers, kubelets, controllers and administrators"
    )
    etcd: RotationSpec = Field(RotationSpec(), description="CA of etcd's members and clients")
    front_proxy: RotationSpec = Field(
        RotationSpec(), description="CA by which extension API servers know the API server"
    )
    service_account: RotationSpec = Field(
        RotationSpec(), description="key that signs the tokens of service accounts"
    )


class PkiSpec(Section):
    ca_validity_hours: Annotated[int, Field(ge=24, le=876000)] = Field(
        87600, description="lifetime of the CAs; fixed when the cluster is made"
    )
    leaf_validity_hours: Annotated[int, Field(ge=2, le=87600)] = Field(
        8760, description="lifetime of every other certificate"
    )
    leaf_renewal_hours: Annotated[int, Field(ge=1, le=87600)] = Field(
        2160, description="an up that runs within this time before the end renews the certificate"
    )
    rotation: PkiRotationSpec = Field(
        PkiRotationSpec(), description="CAs and signing keys that are replaced, step by step"
    )


class OsSpec(Section):
    packages: UpdateWord | None = Field(
        None,
        description="a word of yours, a date say: whenever it changes, packages of the operating "
        "system are brought up to date, machine by machine; default: they are left as they are",
    )
    reboot: Literal["if-needed", "always", "never"] = Field(
        "if-needed",
        description="after that: if-needed where /run/reboot-required or a newer kernel is there",
    )
    reboot_timeout_s: Annotated[int, Field(ge=60, le=7200)] = Field(
        600, description="seconds that a machine may take to be back"
    )
    hold: tuple[PackageName, ...] = Field(
        (), description="packages that stay as they are (apt-mark hold), updates of others go on"
    )


class ConvergeSpec(Section):
    generation: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1, description="raise it to run every node's phases again on the next up"
    )
