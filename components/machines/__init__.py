"""Where machines come from: each provider makes or finds the machine of a node.

The SDKs of clouds are big (250 MB of Python): whoever does not use one does not import it.
"""

from __future__ import annotations

import importlib
from typing import Protocol

from pulumi import Input, Resource, ResourceOptions, RunError

from components.machines.api_door import ApiDoor
from components.machines.token_pems import TokenPems
from components.ssh.commands import Machine
from stacks.cluster.plan import Node, Plan


class Machines(Protocol):
    """The machines of a plan, whoever makes them."""

    @property
    def api_address(self) -> Input[str] | None:
        """Address or name of the load balancer before the masters; None: the provider has none."""

    @property
    def ingress_address(self) -> Input[str] | None:
        """The same of the load balancer for what runs in the cluster."""

    def api_door(self) -> ApiDoor | None:
        """Where the API's name leads, once every machine is registered; None: no record is made."""

    def machine(self, node: Node, after: Resource | None) -> Machine:
        """The machine of a node; `after` has to be done before it is made or used."""


# The module of each beside the clouds, which makes or finds them by `of`.
MODULES = {
    "lab": "components.machines.lab",
    "adopt": "components.machines.adopted",
}
_CLOUD = "components.machines.cloud"  # of all clouds: what they have is data of stacks/providers


def of(plan: Plan, keys: TokenPems, opts: ResourceOptions | None = None) -> Machines:
    """The machines of the plan's provider; what they stand on is registered with `opts`.

    `keys`: by which others check tokens of the cluster.

    Raises RunError where the SDK of a cloud is not installed.
    """
    module = importlib.import_module(MODULES.get(plan.spec.machines.provider, _CLOUD))
    try:
        made: Machines = module.of(plan, keys, opts)
    except ModuleNotFoundError as error:
        sdk = (error.name or "").replace("_", "-")
        if not sdk.startswith("pulumi-"):
            raise
        raise RunError(
            f"provider {plan.spec.machines.provider} needs the package {sdk}, which is not "
            "installed; nothing was touched\n  do: pip install -r requirements.txt"
        ) from None
    return made
