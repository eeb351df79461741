"""Keys of machines that are made in a cloud: user data brings them, connections use them."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_tls as tls
from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_command import remote

from components.machines import host_keys
from components.ssh import tunnel
from components.ssh.commands import Machine
from stacks.cluster import cloud_machines
from stacks.cluster.plan import Node, Plan
from stacks.providers.cloud import LOCAL, USER, bastion_name
from stacks.providers.resources import UserData
from stacks.render import cloud_init

# A machine answers a minute or two after it is made; each attempt waits for up to 15 s.
_DIALS = 40
# Those that are refused are 5 s apart. Meanwhile the bastion has to boot, the agent on it to begin,
# and a person to run `make tunnel`.
_TUNNEL_DIALS = 120
# Both, with a boot between them. A machine that drops packets, as behind a door that is closed,
# costs two minutes a try otherwise.
_DIAL_FOR = "20m"
_TUNNEL_WAIT_MIN = _TUNNEL_DIALS * 5 // 60


class Keys:
    """The user's key, and the host key of each machine, all from two keys of the stack."""

    def __init__(self, cluster: str, parent: ComponentResource) -> None:
        own = ResourceOptions(parent=parent)
        self._user = tls.PrivateKey(f"{cluster}-ssh", algorithm="ED25519", opts=own)
        self._seed = tls.PrivateKey(f"{cluster}-host-keys", algorithm="ED25519", opts=own)

    @property
    def public(self) -> Output[str]:
        """The user's public key, as machines know it."""
        return self._user.public_key_openssh.apply(str.strip)

    def user_data(self, said: UserData, disks: Input[Sequence[str]] | None) -> Output[str]:
        """What cloud-init makes of a machine; `disks`: paths of those that are etcd's."""
        known = Output.all(host=self._host_key(said.name), user=self.public, disks=disks)
        return Output.secret(
            known.apply(
                lambda values: cloud_init.user_data(
                    said.name,
                    host_key=values["host"],
                    host_key_public=host_keys.public(values["host"]),
                    authorized_key=values["user"],
                    disks=values["disks"],
                    ssm=said.ssm,
                    guest_agent=said.guest_agent,
                    pod_metadata=said.pod_metadata,
                )
            )
        )

    def jump(self, plan: Plan, address: Input[str] | None) -> remote.ProxyConnectionArgs:
        """The way through the bastion at a public address; without one through the tunnel."""
        cloud = cloud_machines.of_plan(plan)
        if address is None:
            _say_when_nobody_listens(cloud.tunnel_port)
        return remote.ProxyConnectionArgs(
            host=LOCAL if address is None else address,
            port=cloud.tunnel_port if address is None else None,
            user=USER,
            private_key=self._user.private_key_openssh,
            host_key=self._public(bastion_name(cloud)),
            dial_error_limit=_TUNNEL_DIALS if address is None else _DIALS,
        )

    def machine(
        self,
        node: Node,
        *,
        address: Input[str],
        through: remote.ProxyConnectionArgs | None,
        exists: Resource,
        instance: Resource,
        provider_id: Input[str] | None,
    ) -> Machine:
        """The machine of a node; `instance` takes all traces along when it is deleted."""
        return Machine(
            node=node,
            connection=remote.ConnectionArgs(
                host=address,
                user=USER,
                private_key=self._user.private_key_openssh,
                host_key=self._public(node.name),
                dial_error_limit=_DIALS,
                proxy=through,
            ),
            user=USER,
            exists=exists,
            deleted_with=instance,
            provider_id=provider_id,
            dial_for=_DIAL_FOR,
        )

    def _host_key(self, name: str) -> Output[str]:
        return self._seed.private_key_pem.apply(lambda seed: host_keys.private(seed, name))

    def _public(self, name: str) -> Output[str]:
        return Output.unsecret(self._host_key(name).apply(host_keys.public))


def _say_when_nobody_listens(port: int) -> None:
    """Refused connections alone would not tell what is missing."""
    if pulumi.runtime.is_dry_run() or tunnel.listens(port):
        return
    pulumi.warn(
        f"nothing listens at {LOCAL}:{port}, through which machines are reached: run "
        f"`make tunnel STACK={pulumi.get_stack()}` in another terminal and leave it running; this "
        f"up waits for it, {_TUNNEL_WAIT_MIN} minutes from the first command on"
    )
