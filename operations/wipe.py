"""`python -m operations.wipe STACK NODE`: everything of kube-ha goes from a machine that left.

Only from one that the stack remembers as released with its data, and that says itself that it was
that node of this cluster. Packages, users and SSH stay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from operations.engine import stack
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.ssh import client
from stacks.cluster.plan import Ssh
from stacks.edits import released
from stacks.edits.released import Released

_LIMIT_S = 300


def main(arguments: list[str]) -> int:
    """Exit code 0 when nothing of kube-ha is left there; 1 when it is refused or fails."""
    parser = argparse.ArgumentParser(
        prog="python -m operations.wipe",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    parser.add_argument("node", help="name that the machine had as a node")
    given = parser.parse_args(arguments)
    try:
        found = stack.read(given.stack, applied=True, whole=False)
        print(wipe(found, given.node))
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    return 0


def wipe(found: Stack, name: str) -> str:
    """What the machine said at its end. Raises StackError."""
    there = _machine(found, name)
    answer = client.run(
        _target(found, name, there), "leave", _values(found, name), limit_s=_LIMIT_S
    )
    if answer.status:
        raise StackError(
            f"{name} at {there.address} is not wiped: {answer.text}\n"
            "  do: fix that and run the same command again"
        )
    return answer.text


def _machine(found: Stack, name: str) -> Released:
    plan = found.plan
    if name in {node.name for node in (*plan.nodes, *plan.away)}:
        raise StackError(
            f"{name} is in the config of this stack: only machines that left are wiped\n"
            f"  do: take it off its pool's hosts and run pulumi up; to have it recreated, raise "
            f"nodes.{name}.generation"
        )
    known = released.read((found.remembered or {}).get("released"))
    if name not in known:
        listed = ", ".join(known) or "none"
        raise StackError(
            f"{name} is not a machine that left this stack and kept its data (there are: "
            f"{listed})\n"
            "  do: on the machine itself /usr/local/lib/kube-ha/leave wipes it"
        )
    return known[name]


def _target(found: Stack, name: str, there: Released) -> client.Target:
    ssh = found.plan.spec.machines.ssh
    with_key = Ssh(
        address=there.ssh_address or there.address,
        user=there.user,
        port=there.port,
        host_key=there.host_key,
        private_key_file=ssh.private_key_file,
        agent=ssh.agent,
        bastion=next((node.ssh.bastion for node in found.plan.nodes if node.ssh), None),
    )
    try:
        return client.of_config(with_key)
    except OSError as error:
        raise StackError(f"machines.ssh: the key for {name} cannot be read: {error}") from None


def _values(found: Stack, name: str) -> Mapping[str, str]:
    return {
        "NODE": name,
        "CLUSTER": found.plan.spec.cluster.name,
        "CLUSTER_ID": found.cluster_id,
        "CONTAINER": "1" if found.plan.containers else "0",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
