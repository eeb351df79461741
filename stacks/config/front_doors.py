"""Config section of the doors by which clients outside reach the cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import (
    Cidr,
    DnsLabel,
    DnsName,
    FilePath,
    Interface,
    Ipv4,
    Port,
    ProjectId,
    Section,
    SubjectName,
    ZoneId,
)


class VipSpec(Section):
    address: Ipv4 = Field(
        description="free address of the masters' network, or of that of the load balancers where "
        "there are any; one of them at a time has it"
    )
    # Not the API's own: API servers listen on that one at every address of their machine.
    port: Port = Field(8443, description="port of the API there; HAProxy of the holder answers")
    subnet: Cidr | None = Field(
        None,
        description="network in which it and all that can hold it lie; default: that of the lab, "
        "else the /24 around the address",
    )
    interface: Interface = Field(
        "eth0", description="of each of them: the interface that has the machine's address"
    )
    router_id: Annotated[int, Field(ge=1, le=255)] = Field(
        51, description="VRRP's number of it, which nothing else in that network may have"
    )
    failover: Literal["keepalived", "own"] = Field(
        "keepalived",
        description="who moves the address: keepalived on those machines, or something of your "
        "own; HAProxy of each answers at it in both cases",
    )


class EtcdDoorSpec(Section):
    pools: tuple[DnsLabel, ...] = Field(
        description="pools on whose nodes HAProxy leads 127.0.0.1 to etcd's members; those with a "
        "member of their own have one there anyway"
    )
    port: Port = Field(2379, description="port of it at 127.0.0.1")


class GivenCertificateSpec(Section):
    certificate: FilePath = Field(description="PEM file: the certificate, then those between")
    key: FilePath = Field(description="PEM file of its private key, readable by you alone")


class IngressSpec(Section):
    hosts: tuple[SubjectName, ...] = Field(
        (), description="names in one certificate of the cluster's own CA; `*.` may stand before"
    )
    certificates: tuple[GivenCertificateSpec, ...] = Field(
        (), description="certificates of your own; each is shown for the names that it holds"
    )
    node_port: Port = Field(
        30080, description="NodePort of the ingress controller's Service, for HTTP without TLS"
    )
    pools: tuple[DnsLabel, ...] = Field(
        (), description="pools on whose nodes the controller may be; default: all with role worker"
    )
    proxy_protocol: bool = Field(
        default=False, description="tell the controller the client's address by PROXY protocol v2"
    )


class DnsZoneSpec(Section):
    domain: DnsName = Field(description="domain of the zone; the name in cluster.endpoint is of it")
    id: ZoneId | None = Field(
        None,
        description="zone that is there: at Google its name, on AWS its ID; default: a private one "
        "is made, which the cluster's network alone sees",
    )
    private: bool = Field(
        default=False,
        description="only networks that belong to the zone see it; the record points to private "
        "addresses, and masters look the name up",
    )
    project: ProjectId | None = Field(
        None, description="Google: project of the zone; default: that of the machines"
    )


class FrontDoorsSpec(Section):
    vip: VipSpec | None = Field(
        None, description="virtual IP: an address that outlives every single machine"
    )
    ingress: IngressSpec | None = Field(
        None,
        description="TLS at ports 80 and 443 of the VIP, for what runs in the cluster; in clouds a "
        "load balancer that hands them on to nodes as they are (docs/install/clouds.md)",
    )
    etcd: EtcdDoorSpec | None = Field(
        None, description="etcd at 127.0.0.1 of some nodes, for programs that know no members"
    )
    verify: Literal["here", "masters", "none"] = Field(
        "none",
        description="from where every update asks for the API at cluster.endpoint before it "
        "counts as done: here (the computer that runs pulumi), masters (the first of them), none",
    )
    dns: Literal["managed", "unmanaged", "none"] = Field(
        "none",
        description="managed: the stack makes the record of the name in cluster.endpoint, in zone, "
        "at Google Cloud or AWS; unmanaged: the name points to the VIP, or round-robin to "
        "the masters, "
        "by records that you make as the output dnsRecords says; every update looks at "
        "them in both "
        "cases; none: nobody looks",
    )
    zone: DnsZoneSpec | None = Field(None, description="zone of the record with dns managed")
