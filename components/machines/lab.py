"""Machines as containers on this computer: network and mirror first, then one container a node."""

from __future__ import annotations

import shlex
from pathlib import PurePath

import pulumi_tls as tls
from pulumi import ComponentResource, Output, Resource, ResourceOptions
from pulumi_command import local, remote

from components.machines import host_keys
from components.machines.token_pems import TokenPems
from components.ssh.commands import Machine
from stacks.cluster.plan import Node, Plan
from stacks.providers import lab

_SCRIPT = "lab/machine.sh"


def of(plan: Plan, _keys: TokenPems, opts: ResourceOptions | None = None) -> Lab:
    """The machines of a plan."""
    return Lab(plan, opts)


class Lab(ComponentResource):
    """Network, mirror and keys of the lab; `machine` makes one container of it."""

    def __init__(self, plan: Plan, opts: ResourceOptions | None = None) -> None:
        name = plan.spec.cluster.name
        super().__init__("kube-ha:index:Lab", f"{name}-machines", None, opts)
        self._name, self._again = name, plan.spec.converge.generation
        own = ResourceOptions(parent=self)
        self._user_key = tls.PrivateKey(f"{name}-lab-ssh", algorithm="ED25519", opts=own)
        self._host_seed = tls.PrivateKey(f"{name}-lab-host-keys", algorithm="ED25519", opts=own)
        self._ground = local.Command(
            f"{name}-lab",
            create=f"{_SCRIPT} lab-up",
            delete=f"{_SCRIPT} lab-down",
            environment={
                "LAB": name,
                "SUBNET": plan.spec.machines.lab.subnet,
                "BUNDLE": _bundle(plan),
            },
            logging=local.Logging.NONE,
            add_previous_output_in_env=False,
            opts=own,
        )
        self.register_outputs({})

    @property
    def api_address(self) -> None:
        """No load balancer is made."""

    @property
    def ingress_address(self) -> None:
        """None is made either."""

    def api_door(self) -> None:
        """No record is made."""

    def machine(self, node: Node, after: Resource | None) -> Machine:
        """The container of a node; `after` has to be done before it is made.

        Its SSH keys are known before the first connection. A raised generation replaces it; a
        raised converge.generation makes one that has vanished again, and leaves one that is there.
        """
        host_key = self._host_seed.private_key_pem.apply(
            lambda seed: host_keys.private(seed, node.name)
        )
        container = local.Command(
            f"{self._name}-{node.name}-machine",
            create=f"{_SCRIPT} up",
            delete=f"{_SCRIPT} down",
            environment={
                "LAB": self._name,
                "MACHINE": node.name,
                "ADDRESS": node.address,
                **({"GENERATION": str(node.generation)} if node.generation > 1 else {}),
                **({"CONVERGE": str(self._again)} if self._again > 1 else {}),
            },
            stdin=Output.all(private=host_key, user=self._user_key.public_key_openssh).apply(
                lambda keys: (
                    f"HOST_KEY={shlex.quote(keys['private'])}\n"
                    f"AUTHORIZED_KEY={shlex.quote(keys['user'].strip())}\n"
                )
            ),
            logging=local.Logging.NONE,
            add_previous_output_in_env=False,
            opts=ResourceOptions(
                parent=self, depends_on=[self._ground, *([after] if after else [])]
            ),
        )
        return Machine(
            node=node,
            connection=remote.ConnectionArgs(
                host=node.address,
                user="root",
                private_key=self._user_key.private_key_openssh,
                host_key=Output.unsecret(host_key.apply(host_keys.public)),
            ),
            user="root",
            exists=container,
            deleted_with=container,
        )


def _bundle(plan: Plan) -> str:
    """Folder of the bundle that the lab's mirror serves."""
    own = lab.mirror(plan.spec)
    served = plan.mirror if plan.mirror and plan.mirror.url == own.url else own
    return str(PurePath(served.manifest).parent)
