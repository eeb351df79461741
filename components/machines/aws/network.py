"""The network of machines on AWS: one that is there, or a VPC with subnets by zone."""

from __future__ import annotations

import pulumi_aws as aws
from pulumi import Input, Resource, ResourceOptions

from stacks.cluster import cloud_machines, clouds
from stacks.cluster.plan import Plan
from stacks.config.clouds import AwsSubnetSpec
from stacks.providers.aws.quotas import nat_zone

_ANYWHERE = "0.0.0.0/0"


class Network:
    """VPC, and by zone the machines' subnet and the public one; ways out where they are ours."""

    def __init__(self, plan: Plan, *, opts: ResourceOptions) -> None:
        said = plan.spec.machines.aws
        if said is None:
            msg = "machines.aws is missing"
            raise ValueError(msg)
        self._plan, self._said, self._opts = plan, said, opts
        self._name = plan.spec.cluster.name
        self.ways: list[Resource] = []  # machines reach nothing outside before these are done
        self.subnets: dict[str, Input[str]] = {}
        self.public: dict[str, Input[str]] = {}
        self.vpc: Input[str] = said.vpc_id or ""
        zones = {zone: said.subnets[zone] for zone in clouds.zones(plan.spec)}
        if said.vpc_id is not None:
            # Their routes are their owner's.
            self.subnets = {zone: subnet.id or "" for zone, subnet in zones.items()}
            self.public = {zone: s.public_id for zone, s in zones.items() if s.public_id}
            return
        self.vpc = aws.ec2.Vpc(
            f"{self._name}-vpc",
            cidr_block=said.cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=cloud_machines.tags(plan, self._name),
            opts=opts,
        ).id
        gateway = aws.ec2.InternetGateway(
            f"{self._name}-internet",
            vpc_id=self.vpc,
            tags=cloud_machines.tags(plan, self._name),
            opts=opts,
        )
        outside = self._table("public")
        self.ways.append(
            aws.ec2.Route(
                f"{self._name}-public-route",
                route_table_id=outside.id,
                destination_cidr_block=_ANYWHERE,
                gateway_id=gateway.id,
                opts=opts,
            )
        )
        self._nats: dict[str, Input[str]] = {}
        for zone, subnet in zones.items():
            self._zone(zone, subnet, outside)

    def _zone(self, zone: str, said: AwsSubnetSpec, outside: aws.ec2.RouteTable) -> None:
        self.subnets[zone] = self._subnet(f"subnet-{zone}", zone, said.cidr)
        if said.public_cidr is not None:
            self.public[zone] = self._subnet(f"public-{zone}", zone, said.public_cidr)
            self._routed(f"public-{zone}", self.public[zone], outside)
        if self._said.access == "public":
            self._routed(f"subnet-{zone}", self.subnets[zone], outside)
            return
        inside = self._table(f"subnet-{zone}")
        self._routed(f"subnet-{zone}", self.subnets[zone], inside)
        self.ways.append(
            aws.ec2.Route(
                f"{self._name}-subnet-{zone}-route",
                route_table_id=inside.id,
                destination_cidr_block=_ANYWHERE,
                nat_gateway_id=self._nat(nat_zone(self._said, clouds.zones(self._plan.spec), zone)),
                opts=self._opts,
            )
        )

    def _nat(self, zone: str) -> Input[str]:
        """One a zone: the loss of another zone takes nobody's way out, and no traffic is charged
        for crossing zones; or the one of all, which is in the first.
        """
        if zone in self._nats:
            return self._nats[zone]
        name = f"{self._name}-nat-{zone}"
        address = aws.ec2.Eip(
            f"{name}-address",
            domain="vpc",
            tags=cloud_machines.tags(self._plan, name),
            opts=self._opts,
        )
        nat = aws.ec2.NatGateway(
            name,
            subnet_id=self.public[zone],
            allocation_id=address.allocation_id,
            tags=cloud_machines.tags(self._plan, name),
            opts=ResourceOptions.merge(self._opts, ResourceOptions(depends_on=list(self.ways[:1]))),
        )
        found: Input[str] = nat.id
        self._nats[zone] = found
        return found

    def _subnet(self, what: str, zone: str, cidr: str) -> Input[str]:
        name = f"{self._name}-{what}"
        found: Input[str] = aws.ec2.Subnet(
            name,
            vpc_id=self.vpc,
            availability_zone=zone,
            cidr_block=cidr,
            map_public_ip_on_launch=False,
            tags=cloud_machines.tags(self._plan, name, owned=True) | self._role(what),
            opts=self._opts,
        ).id
        return found

    def _role(self, what: str) -> dict[str, str]:
        """Which load balancers of Services a cloud controller manager may put there."""
        if not clouds.has_controller(self._plan.spec):
            return {}
        is_public = what.startswith("public-") or self._said.access == "public"
        return {f"kubernetes.io/role/{'elb' if is_public else 'internal-elb'}": "1"}

    def _table(self, what: str) -> aws.ec2.RouteTable:
        name = f"{self._name}-{what}-routes"
        return aws.ec2.RouteTable(
            name, vpc_id=self.vpc, tags=cloud_machines.tags(self._plan, name), opts=self._opts
        )

    def _routed(self, what: str, subnet: Input[str], table: aws.ec2.RouteTable) -> None:
        self.ways.append(
            aws.ec2.RouteTableAssociation(
                f"{self._name}-{what}-routed",
                subnet_id=subnet,
                route_table_id=table.id,
                opts=self._opts,
            )
        )
