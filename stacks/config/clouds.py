"""Config sections of machines that are made in a cloud: where, how big, who may reach them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from stacks.config.fields import (
    AccountId,
    AwsId,
    BucketName,
    Cidr,
    CloudLabel,
    CloudName,
    HcloudImage,
    IdentityPool,
    ImageName,
    InstanceType,
    IssuerUrl,
    KmsArn,
    KmsName,
    PolicyArn,
    PortSpan,
    ProjectId,
    Region,
    Section,
    ServiceAccountName,
    ServiceRole,
    Zone,
    is_unsaid,
)

DiskGib = Annotated[int, Field(ge=10, le=16000)]
DEFAULT_TUNNEL_PORT = 20022
DEFAULT_API_PORT = 26443
# By Debian.
DEFAULT_IMAGE = "136693071363/debian-12"
# By Canonical; the agent of SSM is part of it, as a snap.
DEFAULT_BASTION_IMAGE = "099720109477/ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04"


GcpDisk = Literal["pd-balanced", "pd-ssd", "hyperdisk-balanced"]


class NodeRuleSpec(Section):
    """What nodes let in from nodes, beside what a cluster needs anyway."""

    protocol: Literal["tcp", "udp", "ipip", "esp", "all"] = Field(description="protocol")
    ports: PortSpan | None = Field(
        None, description="of tcp and udp: a port, or first-last; default: all"
    )

    @property
    def name(self) -> str:
        """Of the rule, without the cluster's."""
        return f"nodes-{self.protocol}" + (f"-{self.ports}" if self.ports else "")


class CloudSpec(Section):
    """What clouds have in common; `LACKS`: what one has not, and why, or empty: it says itself."""

    LACKS: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core)
        for key in cls.LACKS:
            handler.resolve_ref_schema(schema)["properties"].pop(cls.model_fields[key].alias)
        return schema

    access: Literal["bastion", "tunnel", "public"] = Field(
        "bastion",
        description="bastion: machines have no public address, a jump host and NAT are made; "
        "tunnel: the jump host has none either, `make tunnel` points to it (IAP, SSM); "
        "public: each has a static one",
    )
    tunnel_port: int = Field(
        DEFAULT_TUNNEL_PORT,
        ge=1024,
        le=65535,
        description="with access tunnel: port of 127.0.0.1 at which `make tunnel` listens",
    )
    api_port: int = Field(
        DEFAULT_API_PORT,
        ge=1024,
        le=65535,
        description="port of 127.0.0.1 at which `make api` listens, by which the kubeconfig goes",
    )
    bastion_machine_type: InstanceType | None = Field(
        None,
        description="of the bastion; default: the smallest there is, which does for some dozens of "
        "machines; another one replaces it",
    )
    ssh_from: tuple[Cidr, ...] = Field(
        (),
        description="networks from which SSH to the bastion, or to public machines, is let in; "
        "needed, but with access tunnel refused",
    )
    api_from: tuple[Cidr, ...] = Field(
        (),
        description="networks outside from which the API is let in; default: those of sshFrom, "
        "none with access tunnel",
    )
    node_ports_from: tuple[Cidr, ...] = Field(
        (), description="networks outside from which NodePorts are let in; default: none"
    )
    ingress_from: tuple[Cidr, ...] = Field(
        (),
        exclude_if=is_unsaid,
        description="with frontDoors.ingress: networks outside from which ports 80 and 443 are let "
        "in; default: all",
    )
    node_rules: tuple[NodeRuleSpec, ...] = Field(
        (),
        description="what nodes let in from each other beside what a cluster needs: metrics-server "
        "{protocol: tcp, ports: 10250}, node-exporter; with network.plugin none it is everything",
    )
    pod_routes: bool = Field(
        default=False,
        description="packets between machines may have addresses of pods, as those of a pod "
        "network that routes by the cloud's own table; for machines still to be made",
    )
    api_load_balancer: Literal["none", "internal", "external"] | None = Field(
        None,
        description="L4 load balancer before the masters; one that is said from the first master "
        "on keeps its address with any number of them; default: internal with two masters or more",
    )
    disk_gib: DiskGib = Field(50, description="boot disk of a machine, in GiB")
    etcd_disk_gib: DiskGib = Field(
        20,
        description="disk of its own at /var/lib/kube-ha of machines with etcd; it is kept when "
        "the machine is replaced, and can grow",
    )
    labels: dict[CloudLabel, CloudLabel] = Field(
        default_factory=dict, description="labels (tags on AWS) of all resources"
    )
    deletion_protection: bool = Field(
        default=True,
        description="machines with etcd cannot be deleted by hand; on GCP and Hetzner Cloud not by "
        "an update either, until an update with false has lifted it",
    )
    pod_metadata: bool = Field(
        default=False,
        description="pods without hostNetwork may ask the cloud's metadata service, as drivers of "
        "disks do: every pod may then do what its machine may in the cloud, and read the machine's "
        "SSH host key; for machines still to be made",
    )
    few_zones: bool = Field(
        default=False, description="true accepts that the loss of one zone stops etcd"
    )
    cloud_controller: Literal["none", "external"] = Field(
        "none",
        description="external: kubelets wait for a cloud controller manager, which an add-on "
        "brings, and know their machine's ID (docs/install/clouds.md)",
    )


class GcpIdentitySpec(Section):
    pool: IdentityPool = Field(
        description="ID of the pool that is made; Google keeps that of a deleted one for 30 days"
    )
    roles: dict[ServiceAccountName, tuple[ServiceRole, ...]] = Field(
        description="by service account of the cluster: its roles in the project"
    )


class GcpSpec(CloudSpec):
    project: ProjectId = Field(description="ID of the project that everything is made in")
    region: Region = Field(description="region, as europe-west3; pools name its zones")
    cidr: Cidr = Field(
        "10.20.0.0/20", description="range of the subnet; with subnetwork: its range, as it is"
    )
    network: CloudName | None = Field(
        None, description="VPC network that is there; default: one is made"
    )
    subnetwork: CloudName | None = Field(
        None, description="subnet of network that is there, with its own NAT; default: one is made"
    )
    network_project: ProjectId | None = Field(
        None,
        description="project that network and subnetwork are in, where it is another one (Shared "
        "VPC); firewall rules are made there",
    )
    address_offset: Annotated[int, Field(ge=2, le=65000)] = Field(
        3,
        description="the first of three addresses of cidr that the stack takes for itself, counted "
        "from its own: bastion of a tunnel, bastion, load balancer; machines of pools come behind",
    )
    image: ImageName = Field(
        "ubuntu-os-cloud/ubuntu-2404-lts-amd64",
        description="image family or image with cloud-init, as project/name; read when a machine "
        "is made",
    )
    image_arm64: ImageName = Field(
        "ubuntu-os-cloud/ubuntu-2404-lts-arm64", description="the same for pools of arm64"
    )
    machine_type: InstanceType = Field("e2-standard-2", description="machine type")
    disk_type: GcpDisk | None = Field(
        None,
        description="boot disks; default: pd-balanced, or hyperdisk-balanced where the machine "
        "type takes no other, as n4 and c4a",
    )
    etcd_disk_type: GcpDisk | None = Field(
        None,
        description="etcd's disks; default: pd-ssd, or hyperdisk-balanced where the machine type "
        "takes no other",
    )
    disk_key: KmsName | None = Field(
        None,
        exclude_if=is_unsaid,
        description="key of Cloud KMS that encrypts disks still to be made, as projects/PROJECT/"
        "locations/REGION/keyRings/RING/cryptoKeys/KEY; default: Google's own",
    )
    secure_boot: bool = Field(
        default=True,
        description="false for an image that is not signed for it, as many of arm64; for machines "
        "still to be made",
    )
    service_account_roles: tuple[ServiceRole, ...] = Field(
        (), description="roles of the machines' own service account in the project; default: none"
    )
    workload_identity: GcpIdentitySpec | None = Field(
        None,
        exclude_if=is_unsaid,
        description="roles of service accounts of the cluster, by the tokens of their pods",
    )


class AwsIdentitySpec(Section):
    bucket: BucketName | None = Field(
        None,
        description="bucket that is made, from which everybody may read how to check tokens of the "
        "cluster; https://BUCKET.s3.REGION.amazonaws.com is in controlPlane.serviceAccountIssuers",
    )
    issuer: IssuerUrl | None = Field(
        None,
        description="one of controlPlane.serviceAccountIssuers whose documents you serve yourself, "
        "in place of bucket",
    )
    policies: dict[ServiceAccountName, tuple[PolicyArn, ...]] = Field(
        description="by service account of the cluster: the IAM policies of its role, by ARN"
    )


class AwsSubnetSpec(Section):
    cidr: Cidr = Field(description="range of the machines' subnet; with id: its range, as it is")
    public_cidr: Cidr | None = Field(
        None,
        description="range of the subnet for NAT gateway, bastion and external load balancer; "
        "needed unless publicId is given",
    )
    id: AwsId | None = Field(
        None, description="subnet that is there, with its own routes; default: one is made"
    )
    public_id: AwsId | None = Field(None, description="public subnet that is there")


class AwsSpec(CloudSpec):
    account: AccountId | None = Field(
        None,
        description="number of the account that everything is made in: with credentials of another "
        "one nothing is touched; default: whichever the credentials are of",
    )
    region: Region = Field(description="region, as eu-central-1; pools name its zones")
    cidr: Cidr = Field("10.20.0.0/16", description="range of the VPC, within which subnets lie")
    vpc_id: AwsId | None = Field(
        None, description="VPC that is there; each subnet then needs an id; default: one is made"
    )
    subnets: dict[Zone, AwsSubnetSpec] = Field(
        description="subnets by availability zone, as eu-central-1a; all zones that pools name"
    )
    image: ImageName = Field(
        DEFAULT_IMAGE,
        description="owner/prefix of AMI names, which go on -amd64- or -arm64-, and of which the "
        "newest is read when a machine is made; or ami-...; the owner here is Debian",
    )
    bastion_image: ImageName | None = Field(
        None,
        description="the same for the bastion; default: image, with access tunnel "
        f"{DEFAULT_BASTION_IMAGE} by Canonical, which has the agent of SSM",
    )
    nat_gateways: Literal["zone", "one"] = Field(
        "zone",
        description="zone: one in each, so that the loss of another takes no way out; one: in the "
        "first zone, for all, which costs less and an Elastic IP instead of one a zone",
    )
    machine_type: InstanceType = Field("m6i.large", description="instance type, a Nitro one")
    disk_type: Literal["gp3", "io2"] = Field("gp3", description="boot disks")
    etcd_disk_type: Literal["gp3", "io2"] = Field("gp3", description="etcd's disks")
    etcd_disk_iops: Annotated[int, Field(ge=100, le=64000)] | None = Field(
        None,
        exclude_if=is_unsaid,
        description="operations a second of etcd's disks: gp3 from 3000 to 16000, 500 a GiB at "
        "most; io2 1000 a GiB at most; default: 3000",
    )
    etcd_disk_throughput: Annotated[int, Field(ge=125, le=1000)] | None = Field(
        None,
        exclude_if=is_unsaid,
        description="MiB/s of etcd's disks, of gp3 alone, a quarter of etcdDiskIops at most; "
        "default: 125",
    )
    disk_key: KmsArn | None = Field(
        None,
        exclude_if=is_unsaid,
        description="key of KMS that encrypts disks still to be made, by ARN; default: AWS's own",
    )
    policies: tuple[PolicyArn, ...] = Field(
        (), description="IAM policies of the machines' own role, by ARN; default: none"
    )
    workload_identity: AwsIdentitySpec | None = Field(
        None,
        exclude_if=is_unsaid,
        description="roles for service accounts of the cluster (IRSA), by the tokens of their pods",
    )


class HcloudSpec(CloudSpec):
    LACKS: ClassVar[Mapping[str, str]] = {
        "tunnel_port": "",
        "bastion_machine_type": "",
        "ingress_from": "does not hold: load balancers of Hetzner let in everybody",
        "pod_routes": "is not a setting of Hetzner's servers",
        "disk_gib": "is not said here: the boot disk is as big as the server type has it",
    }
    access: Literal["public"] = Field(
        "public",
        description="each machine has a static IPv4 address and a firewall; there is no NAT",
    )
    network_zone: Literal["eu-central", "us-east", "us-west", "ap-southeast"] = Field(
        "eu-central",
        description="where the private network is; pools name its locations as zones: fsn1, nbg1, "
        "hel1; ash; hil; sin",
    )
    cidr: Cidr = Field(
        "10.20.0.0/20", description="range of the private network, one of RFC 1918 that is unused"
    )
    image: HcloudImage = Field(
        "debian-12",
        description="image with cloud-init, or ID of a snapshot; read when a machine is made",
    )
    machine_type: InstanceType = Field("cx33", description="server type")
    load_balancer_type: Literal["lb11", "lb21", "lb31"] = Field(
        "lb11", description="of each load balancer: up to 25, 75 or 150 machines behind it"
    )
