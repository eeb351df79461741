"""Config section of what the cluster is."""

from __future__ import annotations

from pydantic import Field

from stacks.config.fields import (
    Cidr,
    ClusterName,
    DefaultsLevel,
    DnsName,
    Endpoint,
    Section,
    Version,
)


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
    defaults: DefaultsLevel | None = Field(
        None,
        description="level of what is not said: 1 as clusters had it before there was a choice, 2 "
        "hardened (docs/reference/cis.md); default: the newest for a new cluster, else the one it "
        "was made with",
    )
    endpoint: Endpoint | None = Field(
        None, description="host[:port] by which clients outside reach the API; default: a master"
    )
