"""Machines on Google Cloud: network and doors first, then one instance a node."""

from __future__ import annotations

import pulumi_gcp as gcp
from pulumi import ComponentResource, Input, InvokeOptions, Output, Resource, ResourceOptions
from pulumi_command import remote

from components.machines.api_door import ApiDoor
from components.machines.cloud import Keys
from components.machines.gcp.balancer import Balancer
from components.machines.gcp.dns import Record
from components.machines.gcp.instance import DISK, InstanceArgs, Instances
from components.machines.gcp.network import Network
from components.ssh.commands import Machine
from stacks.cluster import api_record, cloud_machines, clouds, firewall
from stacks.cluster.plan import Node, Plan
from stacks.providers.cloud import bastion_name, role_name, short_name
from stacks.providers.gcp import disks
from stacks.providers.site import Rule

_BASTION_DISK_GIB = 10


def of(plan: Plan, opts: ResourceOptions | None = None) -> Gcp:
    """The machines of a plan."""
    return Gcp(plan, opts)


class Gcp(ComponentResource):
    """Everything around the machines of a plan; `machine` makes one of them."""

    def __init__(self, plan: Plan, opts: ResourceOptions | None = None) -> None:
        name = plan.spec.cluster.name
        super().__init__("kube-ha:index:Gcp", f"{name}-machines", None, opts)
        said = plan.spec.machines.gcp
        if said is None:
            msg = "machines.gcp is missing"
            raise ValueError(msg)
        self._name, self._plan, self._said = name, plan, said
        provider = gcp.Provider(
            f"{name}-gcp",
            project=said.project,
            region=said.region,
            opts=ResourceOptions(parent=self),
        )
        self._own = ResourceOptions(parent=self, provider=provider)
        self._asked = InvokeOptions(parent=self, provider=provider)
        self._public: dict[str, Input[str]] = {}  # addresses of the masters, by name
        self._labels = {"kube-ha-cluster": name, **said.labels}
        self._keys = Keys(name, self)
        self._network = Network(name, said, opts=self._own)
        self._ground: list[Resource] = [
            *self._network.ways_out,
            *(self._let_in(rule) for rule in firewall.rules(plan)),
        ]
        self._instances = Instances(
            cluster=name,
            labels=self._labels,
            subnetwork=self._network.subnetwork,
            secure_boot=said.secure_boot,
            pod_routes=said.pod_routes,
            opts=self._own,
        )
        self._account = self._service_account()
        self._through = None if said.access == "public" else self._bastion()
        self._balancer = Balancer(name, plan, self._network, labels=self._labels, opts=self._own)
        self.api_address = self._balancer.address
        self.register_outputs({})

    def api_door(self) -> ApiDoor | None:
        """Where the API's name leads, once every machine is registered; None: no record is made."""
        said = api_record.zone(self._plan.spec)
        if said is None:
            return None
        record = Record(
            self._plan,
            said,
            self._network,
            labels=self._labels,
            opts=self._own,
            asked=self._asked,
        )
        addresses: list[Input[str]] = [*(api_record.known(self._plan) or ())]
        if self._balancer.address is not None:
            addresses = [self._balancer.address]
        elif not addresses:
            addresses = [self._public[node.name] for node in self._plan.masters]
        return ApiDoor(
            addresses=addresses,
            parts=self._balancer.parts,
            record=lambda after: record.make(addresses, after),
        )

    def machine(self, node: Node, after: Resource | None) -> Machine:
        """The instance of a node; `after` has to be done before it is made."""
        name, made_of = f"{self._name}-{node.name}", cloud_machines.hardware(self._plan, node)
        disk = self._etcd_disk(node)
        public = self._address(f"{name}-address", name) if self._through is None else None
        disks = [f"/dev/disk/by-id/google-{DISK}"] if disk else None
        instance = self._instances.make(
            f"{name}-machine",
            InstanceArgs(
                name=name,
                zone=node.zone or "",
                groups=firewall.groups(node.roles),
                address=node.address,
                public=public,
                machine_type=made_of.type,
                disk_type=self._said.disk_type,
                disk_gib=made_of.disk_gib,
                image=self._image(node.arch),
                user_data=self._user_data(node, disks),
                account=self._account,
                etcd_disk=disk,
                protected=node.is_etcd and self._said.deletion_protection,
            ),
            opts=ResourceOptions(
                depends_on=[*self._ground, *([after] if after else [])],
                replacement_trigger=str(node.generation),
            ),
        )
        if node.is_master:
            self._balancer.add(node, instance)
            if public:
                self._public[node.name] = public.address
        has_id = clouds.has_controller(self._plan.spec)
        return self._keys.machine(
            node,
            address=public.address if public else node.address,
            through=self._through,
            exists=instance,
            instance=instance,
            provider_id=cloud_machines.provider_id(self._plan, node, name) if has_id else None,
        )

    def _user_data(self, node: Node, disks: list[str] | None) -> Output[str]:
        return self._keys.user_data(
            node.name, disks=disks, guest_agent=True, pod_metadata=self._said.pod_metadata
        )

    def _etcd_disk(self, node: Node) -> gcp.compute.Disk | None:
        size = cloud_machines.hardware(self._plan, node).etcd_disk_gib
        if size is None:
            return None
        name = f"{self._name}-{node.name}-etcd-disk"
        return gcp.compute.Disk(
            name,
            name=name,
            zone=node.zone,
            size=size,
            type=disks.etcd(
                cloud_machines.hardware(self._plan, node).type, self._said.etcd_disk_type
            ),
            labels=self._labels,
            opts=ResourceOptions.merge(
                self._own,
                # A bigger one grows where it is; another type is another disk, which is refused.
                ResourceOptions(delete_before_replace=True, ignore_changes=["type"]),
            ),
        )

    def _bastion(self) -> remote.ProxyConnectionArgs:
        what = bastion_name(self._said)
        name = f"{self._name}-{what}"
        tunnel = self._said.access == "tunnel"
        public = None if tunnel else self._address(f"{name}-address", name)
        args = InstanceArgs(
            name=name,
            zone=clouds.zones(self._plan.spec)[0],
            groups=("bastion",),
            address=cloud_machines.bastion_address(self._plan),
            public=public,
            machine_type=cloud_machines.bastion_type(self._plan),
            disk_type=None,
            disk_gib=_BASTION_DISK_GIB,
            image=self._image(cloud_machines.bastion_arch(self._plan)),
            user_data=self._keys.user_data(what, guest_agent=True),
            # Nobody: it is the machine that the internet reaches.
            account=None,
        )
        opts = ResourceOptions(
            depends_on=list(self._ground),
            replacement_trigger=cloud_machines.bastion_mark(self._plan),
        )
        self._ground.append(self._instances.make(name, args, opts=opts))
        return self._keys.jump(self._plan, public.address if public else None)

    def _image(self, arch: str) -> str:
        return self._said.image_arm64 if arch == "arm64" else self._said.image

    def _address(self, resource: str, name: str) -> gcp.compute.Address:
        return gcp.compute.Address(
            resource,
            name=name,
            address_type="EXTERNAL",
            region=self._said.region,
            labels=self._labels,
            opts=self._own,
        )

    def _service_account(self) -> gcp.serviceaccount.Account:
        """An account of their own: the project's default one may do nearly everything."""
        account = gcp.serviceaccount.Account(
            f"{self._name}-account",
            account_id=short_name(self._name, "nodes", limit=30),
            display_name=f"Machines of cluster {self._name}",
            opts=self._own,
        )
        for role in self._said.service_account_roles:
            gcp.projects.IAMMember(
                f"{self._name}-account-{role_name(role)}",
                project=self._said.project,
                role=role,
                member=account.email.apply(lambda email: f"serviceAccount:{email}"),
                opts=self._own,
            )
        return account

    def _let_in(self, rule: Rule) -> Resource:
        name = f"{self._name}-{rule.name}"
        ports = None
        if rule.ports:
            first, last = rule.ports
            ports = [str(first) if first == last else f"{first}-{last}"]
        firewall: Resource = gcp.compute.Firewall(
            f"{name}-let-in",
            name=name,
            network=self._network.network,
            # Of a network that another project shares rules are made there.
            project=self._said.network_project,
            direction="INGRESS",
            allows=[gcp.compute.FirewallAllowArgs(protocol=rule.protocol, ports=ports)],
            source_tags=[f"{self._name}-{group}" for group in rule.groups] or None,
            source_ranges=list(rule.ranges) or None,
            target_tags=[f"{self._name}-{rule.to}"],
            opts=self._own,
        )
        return firewall
