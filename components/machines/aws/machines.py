"""Machines on AWS: network and doors first, then one instance a node."""

from __future__ import annotations

import pulumi_aws as aws
from pulumi import ComponentResource, Input, InvokeOptions, Output, Resource, ResourceOptions
from pulumi_command import remote

from components.machines.api_door import ApiDoor
from components.machines.aws.account import account
from components.machines.aws.balancer import Balancer
from components.machines.aws.dns import Record
from components.machines.aws.instance import IOPS, InstanceArgs, Instances
from components.machines.aws.network import Network
from components.machines.aws.security_groups import Doors
from components.machines.cloud import Keys
from components.ssh.commands import Machine
from stacks.cluster import api_record, cloud_machines, clouds, firewall
from stacks.cluster.plan import Node, Plan
from stacks.providers.aws import bastions, regions
from stacks.providers.cloud import bastion_name

_BASTION_DISK_GIB = 10
_DEVICE = "/dev/sdf"  # asked for; on Nitro machines the disk is found by its volume's ID


def of(plan: Plan, opts: ResourceOptions | None = None) -> Aws:
    """The machines of a plan."""
    return Aws(plan, opts)


class Aws(ComponentResource):
    """Everything around the machines of a plan; `machine` makes one of them."""

    def __init__(self, plan: Plan, opts: ResourceOptions | None = None) -> None:
        name = plan.spec.cluster.name
        super().__init__("kube-ha:index:Aws", f"{name}-machines", None, opts)
        said = plan.spec.machines.aws
        if said is None:
            msg = "machines.aws is missing"
            raise ValueError(msg)
        self._name, self._plan, self._said = name, plan, said
        provider = aws.Provider(
            f"{name}-aws",
            region=said.region,
            # Credentials of another account end the first call, before anything is made.
            allowed_account_ids=[said.account] if said.account else None,
            opts=ResourceOptions(parent=self),
        )
        self._own = ResourceOptions(parent=self, provider=provider)
        self._asked = InvokeOptions(parent=self, provider=provider)
        self._images: dict[tuple[str, str], Input[str]] = {}  # by what is said, and architecture
        self._public: dict[str, Input[str]] = {}  # addresses of the masters, by name
        self._keys = Keys(name, self)
        self._network = Network(plan, opts=self._own)
        self._doors = Doors(plan, self._network, opts=self._own)
        self._ground: list[Resource] = [*self._network.ways, *self._doors.rules]
        self._instances = Instances(
            plan=plan,
            doors=self._doors,
            disk_type=said.disk_type,
            pod_routes=said.pod_routes,
            opts=self._own,
        )
        self._profile = account(plan, "nodes", said.policies, opts=self._own)
        self._apart = aws.ec2.PlacementGroup(
            f"{name}-etcd-apart",
            name=f"{name}-etcd",
            strategy="spread",
            tags=cloud_machines.tags(plan, f"{name}-etcd"),
            opts=self._own,
        )
        self._through = None if said.access == "public" else self._bastion()
        self._balancer = Balancer(plan, self._network, self._doors, opts=self._own)
        self.api_address = self._balancer.address
        self.register_outputs({})

    def api_door(self) -> ApiDoor | None:
        """Where the API's name leads, once every machine is registered; None: no record is made."""
        said = api_record.zone(self._plan.spec)
        if said is None:
            return None
        record = Record(self._plan, said, self._network, opts=self._own, asked=self._asked)
        addresses = self._balancer.addresses or [*(api_record.known(self._plan) or ())]
        if not addresses:
            addresses = [self._public[node.name] for node in self._plan.masters]
        return ApiDoor(
            addresses=addresses,
            parts=self._balancer.parts,
            record=lambda after: record.make(addresses, self._balancer.balancer, after),
            alias=self._plan.balancer == "external",
        )

    def machine(self, node: Node, after: Resource | None) -> Machine:
        """The instance of a node; `after` has to be done before it is made."""
        name, made_of = f"{self._name}-{node.name}", cloud_machines.hardware(self._plan, node)
        volume = self._etcd_disk(node)
        disks = [volume.id.apply(_path)] if volume else None
        instance = self._instances.make(
            f"{name}-machine",
            InstanceArgs(
                name=name,
                subnet=self._network.subnets[node.zone or ""],
                groups=firewall.groups(node.roles),
                address=node.address,
                machine_type=made_of.type,
                disk_gib=made_of.disk_gib,
                image=self._image(self._said.image, node.arch),
                profile=self._profile,
                user_data=self._keys.user_data(
                    node.name, disks=disks, pod_metadata=self._said.pod_metadata
                ),
                pod_metadata=self._said.pod_metadata,
                placement=self._apart.name if node.is_etcd else None,
                protected=node.is_etcd and self._said.deletion_protection,
                owned=True,
            ),
            opts=ResourceOptions(
                depends_on=[*self._ground, *([after] if after else [])],
                replacement_trigger=str(node.generation),
            ),
        )
        exists = self._attached(name, instance, volume) if volume else instance
        public = self._public_address(name, instance) if self._through is None else None
        if node.is_master:
            self._balancer.add(node)
            if public:
                self._public[node.name] = public.public_ip
        return self._keys.machine(
            node,
            address=public.public_ip if public else node.address,
            through=self._through,
            exists=exists,
            instance=instance,
            provider_id=self._provider_id(node, instance),
        )

    def _provider_id(self, node: Node, instance: aws.ec2.Instance) -> Output[str] | None:
        if not clouds.has_controller(self._plan.spec):
            return None
        found: Output[str] = instance.id.apply(
            lambda id_: cloud_machines.provider_id(self._plan, node, id_)
        )
        return found

    def _attached(self, name: str, instance: aws.ec2.Instance, volume: aws.ebs.Volume) -> Resource:
        attached: Resource = aws.ec2.VolumeAttachment(
            f"{name}-etcd-disk-attached",
            device_name=_DEVICE,
            volume_id=volume.id,
            instance_id=instance.id,
            # A disk in use cannot be taken away.
            stop_instance_before_detaching=True,
            # It ends with its machine. Asked for by itself, AWS would be told to stop that one, and
            # refuse for one that it has terminated.
            opts=ResourceOptions.merge(
                self._own, ResourceOptions(delete_before_replace=True, deleted_with=instance)
            ),
        )
        return attached

    def _etcd_disk(self, node: Node) -> aws.ebs.Volume | None:
        size = cloud_machines.hardware(self._plan, node).etcd_disk_gib
        if size is None:
            return None
        name = f"{self._name}-{node.name}-etcd-disk"
        return aws.ebs.Volume(
            name,
            availability_zone=node.zone,
            size=size,
            type=self._said.etcd_disk_type,
            iops=IOPS if self._said.etcd_disk_type == "io2" else None,
            encrypted=True,
            tags=cloud_machines.tags(self._plan, name, owned=True),
            opts=ResourceOptions.merge(
                self._own,
                ResourceOptions(delete_before_replace=True),
            ),
        )

    def _bastion(self) -> remote.ProxyConnectionArgs:
        what = bastion_name(self._said)
        name, zone = f"{self._name}-{what}", clouds.zones(self._plan.spec)[0]
        tunnel = self._said.access == "tunnel"
        args = InstanceArgs(
            name=name,
            subnet=(self._network.subnets if tunnel else self._network.public)[zone],
            groups=("bastion",),
            address=cloud_machines.bastion_address(self._plan),
            machine_type=cloud_machines.bastion_type(self._plan),
            disk_gib=_BASTION_DISK_GIB,
            image=self._image(
                bastions.image(self._plan.spec), cloud_machines.bastion_arch(self._plan)
            ),
            # Nothing: it is the machine that the internet reaches.
            profile=self._agent(what) if tunnel else None,
            user_data=self._keys.user_data(what, ssm=tunnel),
        )
        opts = ResourceOptions(
            depends_on=list(self._ground),
            replacement_trigger=cloud_machines.bastion_mark(self._plan),
        )
        instance = self._instances.make(name, args, opts=opts)
        public = None if tunnel else self._public_address(name, instance)
        self._ground.append(public or instance)
        return self._keys.jump(self._plan, public.public_ip if public else None)

    def _agent(self, whose: str) -> aws.iam.InstanceProfile:
        may = (regions.ssm_policy(self._said.region),)
        return account(self._plan, whose, may, opts=self._own)

    def _public_address(self, name: str, instance: aws.ec2.Instance) -> aws.ec2.Eip:
        return aws.ec2.Eip(
            f"{name}-address",
            domain="vpc",
            instance=instance.id,
            tags=cloud_machines.tags(self._plan, name),
            opts=ResourceOptions.merge(
                self._own, ResourceOptions(depends_on=list(self._network.ways))
            ),
        )

    def _image(self, said: str, arch: str) -> Input[str]:
        """The newest image of the owner now; machines that are there keep theirs."""
        owner, _, prefix = said.partition("/")
        if not prefix:
            return owner
        if (said, arch) not in self._images:
            found = aws.ec2.get_ami_output(
                most_recent=True,
                owners=[owner],
                filters=[
                    aws.ec2.GetAmiFilterArgs(name="name", values=[f"{prefix}-{arch}-*"]),
                    aws.ec2.GetAmiFilterArgs(
                        name="architecture", values=["arm64" if arch == "arm64" else "x86_64"]
                    ),
                    aws.ec2.GetAmiFilterArgs(name="virtualization-type", values=["hvm"]),
                    aws.ec2.GetAmiFilterArgs(name="root-device-type", values=["ebs"]),
                ],
                opts=self._asked,
            )
            self._images[said, arch] = found.id
        return self._images[said, arch]


def _path(volume: str) -> str:
    """Where udev shows a volume of a Nitro machine: its serial number is the ID without hyphen."""
    return f"/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{volume.replace('-', '')}"
