"""Config section of etcd: timings, size, snapshots, and the store that they go to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import (
    AccessKey,
    BaseUrl,
    BucketName,
    Certificates,
    Ciphers,
    FilePath,
    ObjectPrefix,
    Section,
    StoreRegion,
    is_unsaid,
)


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
    access_key: AccessKey | None = Field(
        None,
        exclude_if=is_unsaid,
        description="ID of the key that nodes use; its secret is kube-ha:backupSecretKey "
        "(pulumi config set --secret); default: none, machines of a cloud show its store who "
        "they are (docs/install/clouds.md)",
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
    backup: BackupSpec = Field(
        BackupSpec(), description="snapshots of etcd (docs/operate/back-up-and-restore.md)"
    )
    tls_ciphers: Ciphers | None = Field(
        None, description="of etcd, for TLS 1.2; default: strong with cluster.defaults 2"
    )
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
