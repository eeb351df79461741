"""Machines that are given: reached over SSH as the config says, never created or deleted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pulumi import Resource, ResourceOptions
from pulumi_command import remote

from components.machines.token_pems import TokenPems
from components.ssh.commands import Machine
from stacks.cluster.plan import Bastion, Node, Plan


def of(plan: Plan, _keys: TokenPems, opts: ResourceOptions | None = None) -> Adopted:
    """The machines of a plan; no resource is made, so `opts` are of none."""
    return Adopted(plan)


@dataclass(frozen=True, slots=True)
class Adopted:
    """The machines of a plan whose pools name hosts."""

    plan: Plan

    @property
    def api_address(self) -> None:
        """No load balancer is made."""

    @property
    def ingress_address(self) -> None:
        """None is made either."""

    def api_door(self) -> None:
        """No record is made."""

    def machine(self, node: Node, after: Resource | None) -> Machine:
        """The machine of a node whose pool names hosts; `after` has to be done before it is used.

        Raises ValueError for a node without a connection, which load() accepts in the lab only.
        """
        ssh = node.ssh
        if ssh is None:
            msg = f"{node.name} has no connection"
            raise ValueError(msg)
        return Machine(
            node=node,
            connection=remote.ConnectionArgs(
                host=ssh.address,
                port=ssh.port,
                user=ssh.user,
                private_key=_key(ssh.private_key_file),
                host_key=ssh.host_key,
                proxy=_proxy(ssh.bastion) if ssh.bastion else None,
            ),
            user=ssh.user,
            exists=after,
            # The machine outlives its node, so leaving must really be done on it.
            deleted_with=None,
            keep=self.plan.spec.machines.on_release == "keep",
        )


def _proxy(bastion: Bastion) -> remote.ProxyConnectionArgs:
    return remote.ProxyConnectionArgs(
        host=bastion.address,
        port=bastion.port,
        user=bastion.user,
        private_key=_key(bastion.private_key_file),
        host_key=bastion.host_key,
    )


def _key(path: str | None) -> str | None:
    """Text of a private key; None leaves it to the SSH agent.

    That it can be read was checked with the config.
    """
    return Path(path).expanduser().read_text() if path else None
