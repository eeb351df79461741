"""What an operation knows of a stack: its plan, and how its machines are reached and marked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from components.ssh import tunnel
from components.ssh.hop import Hop
from operations.engine.engine import Engine, StackError
from operations.ssh import client
from operations.ssh.client import Target
from stacks.cluster import clouds
from stacks.cluster.plan import Node, Plan
from stacks.cluster.resolve import plan
from stacks.config import defaults, stack_file
from stacks.config.problems import SpecError
from stacks.config.sizing import SMALLEST
from stacks.config.stack_file import StackFileError
from stacks.edits import memory
from stacks.explain import formats
from stacks.load import load, planned
from stacks.providers.cloud import LOCAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    plan: Plan
    targets: Mapping[str, Target]  # by node name
    cluster_id: str  # empty: the stack was never applied
    remembered: Mapping[str, object] | None = None  # by stacks.edits.memory, of its last success
    backup_key: str = ""  # opens snapshots of etcd, secret; empty before the first success
    backup_keys: Mapping[str, str] = field(default_factory=dict)  # by seed, where it was replaced
    kubeconfig: str = ""  # an administrator's, secret; empty before the first success

    def of_seed(self, generation: int | None) -> Stack:
        """The same with the key of snapshots that an earlier seed made; None: the present one's.

        Raises StackError.
        """
        if generation is None:
            return self
        key = self.backup_keys.get(str(generation))
        if key is None:
            known = ", ".join(sorted(self.backup_keys)) or "that of its first day alone"
            raise StackError(
                f"this stack has no key of seed {generation}; it has: {known}\n"
                "  do: name the generation of pki.rotation.seed when the snapshot was made"
            )
        return replace(self, backup_key=key)

    def target(self, name: str) -> Target:
        """How the machine of a node is reached. Raises StackError."""
        if name in self.targets:
            return self.targets[name]
        known = ", ".join(self.targets)
        if any(node.name == name for node in self.plan.nodes):
            raise StackError(
                f"{name} is in the config, but its machine was not made yet; there are: {known}\n"
                "  do: apply the config first (make up)"
            )
        raise StackError(
            f"there is no node {name or 'without a name'}; there are: {known}\n  do: NODE=name"
        )

    def identity(self, node: Node) -> dict[str, str]:
        """The values that every phase gets."""
        return {
            "NODE": node.name,
            "CLUSTER": self.plan.spec.cluster.name,
            "CLUSTER_ID": self.cluster_id,
            "INCARNATION": str(node.generation),
            "CONTAINER": "1" if self.plan.containers else "0",
        }


def read(name: str, *, applied: bool, whole: bool = True, connects: bool = True) -> Stack:
    """The stack of Pulumi.<name>.yaml.

    `applied`: there has to be a cluster; without it adopted machines are found by the config alone.
    `whole`: every machine of the config has to be there; without it some may lack a target, for
    they are still to be made. `connects`: machines will be asked, so the tunnel to them has to be
    there, where they are behind one. Raises StackError.
    """
    engine = Engine(name)
    outputs = engine.outputs()
    known = remembered(outputs)
    wanted = plan_of(name, known)
    by_config = {
        node.name: _of_config(node, wanted) for node in wanted.nodes if node.ssh is not None
    }
    if not outputs and (applied or len(by_config) < len(wanted.nodes)):
        raise StackError(
            f"stack {name} has no outputs: it was never applied to its end\n"
            f"  do: pulumi up --stack {name}"
        )
    targets = by_config if by_config else _of_outputs(outputs.get("ssh"))
    missing = [node.name for node in wanted.nodes if node.name not in targets]
    if missing and (whole or not targets):
        raise StackError(
            f"{', '.join(missing)}: in Pulumi.{name}.yaml, but not in the stack\n"
            f"  do: pulumi up --stack {name}"
        )
    if connects and clouds.in_cloud(wanted.spec):
        _see_tunnel(name, targets)
    cluster_id = str(outputs.get("clusterId") or engine.cluster_id())
    return Stack(
        plan=wanted,
        targets=targets,
        cluster_id=cluster_id,
        remembered=known,
        backup_key=str(outputs.get("backupKey") or ""),
        backup_keys=_keys(outputs.get("backupKeys")),
        kubeconfig=str(outputs.get("kubeconfig") or ""),
    )


def _keys(found: object) -> dict[str, str]:
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _see_tunnel(name: str, targets: Mapping[str, Target]) -> None:
    bastions = (target.bastion for target in targets.values() if target.bastion)
    for port in {hop.port for hop in bastions if hop.address == LOCAL}:
        if not tunnel.listens(port):
            raise StackError(
                f"nothing listens at {LOCAL}:{port}, through which machines are reached\n"
                f"  do: make tunnel STACK={name}, in another terminal, and leave it running"
            )


def plan_of(name: str, remembered: Mapping[str, object] | None = None) -> Plan:
    """The plan of Pulumi.<name>.yaml, of the cluster that is `remembered`. Raises StackError."""
    file = Path(f"Pulumi.{name}.yaml")
    try:
        said = stack_file.look(file)
    except StackFileError as error:
        raise StackError(f"{file}: {error}") from None
    try:
        config = load(said.config, misread=said.problems)
        return planned(config, None if remembered is None else memory.read(remembered))
    except memory.UnreadableMemoryError:
        return plan(config, level=defaults.OLDEST, size=SMALLEST)  # the next update says so
    except SpecError as error:
        raise StackError(formats.problems(str(file), said.located(error.problems))) from None


def remembered(outputs: Mapping[str, object]) -> Mapping[str, object] | None:
    """Of a stack's outputs, its memory of the last success."""
    applied = outputs.get("applied")
    try:
        found: object = json.loads(str(applied)) if applied else None
    except ValueError:
        return None  # the next update says so; who only looks can do without
    return found if isinstance(found, dict) else None


def _of_config(node: Node, wanted: Plan) -> Target:
    if node.ssh is None:
        raise StackError(f"{node.name} has no connection in the config")
    try:
        return client.of_config(node.ssh)
    except OSError as error:
        raise StackError(f"machines.ssh: key file cannot be read: {error}") from None


def _of_outputs(ssh: object) -> dict[str, Target]:
    found = ssh if isinstance(ssh, dict) else {}
    return {
        str(name): Target(
            hop=_hop(facts), bastion=_hop(facts["bastion"]) if facts.get("bastion") else None
        )
        for name, facts in found.items()
    }


def _hop(facts: Mapping[str, str | int | None]) -> Hop:
    return Hop(
        address=str(facts["host"]),
        port=int(facts.get("port") or 22),
        user=str(facts["user"]),
        host_key=str(facts["hostKey"]),
        key=str(facts["privateKey"]),
    )
