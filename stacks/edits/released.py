"""Adopted machines that left a cluster and keep their data: where they are, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from stacks.cluster.plan import Node, Plan
from stacks.config.problems import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    address: str
    user: str
    port: int  # of SSH
    host_key: str | None  # OpenSSH public key; None: not pinned, by the user's explicit word
    ssh_address: str | None = None  # or name; None: the same


def after(then: Plan | None, known: Mapping[str, Released], plan: Plan) -> dict[str, Released]:
    """By node name, once `plan` is applied: those that were known, and those that leave by it.

    Whoever is in the config again is not among them, under its name or at its address.
    """
    here = [*plan.nodes, *plan.away]
    left = {**known, **_leaving(then, plan)}
    names, addresses = {node.name for node in here}, {node.address for node in here}
    return {
        name: machine
        for name, machine in sorted(left.items())
        if name not in names and machine.address not in addresses
    }


def _leaving(then: Plan | None, plan: Plan) -> dict[str, Released]:
    if then is None or plan.spec.machines.on_release != "keep":
        return {}
    # To a lost one nobody goes: what is on it is not known.
    return of(node for node in (*then.nodes, *then.away) if node.state != "lost")


def warnings_of(then: Plan | None, plan: Plan) -> list[Problem]:
    """What becomes of machines that leave one day is nothing that shows on any machine now."""
    if then is None or plan.made:
        return []
    was, now = (one.spec.machines.on_release for one in (then, plan))
    text = {
        "keep": "machines that leave from now on keep their data; until now they were wiped",
        "wipe": "machines that leave from now on are WIPED, data too; until now they kept it",
    }
    return [Problem("machines.onRelease", text[now])] if was != now else []


def of(nodes: Iterable[Node]) -> dict[str, Released]:
    """Adopted machines by node name; others have no connection of the config."""
    return {
        node.name: Released(
            address=node.address,
            user=node.ssh.user,
            port=node.ssh.port,
            host_key=node.ssh.host_key,
            ssh_address=None if node.ssh.address == node.address else node.ssh.address,
        )
        for node in nodes
        if node.ssh is not None
    }


def dumped(found: Mapping[str, Released]) -> dict[str, object]:
    """Plain JSON values, read back by `read`."""
    return {name: _dumped(machine) for name, machine in found.items()}


def _dumped(machine: Released) -> dict[str, object]:
    held = asdict(machine)
    if machine.ssh_address is None:
        del held["ssh_address"]  # as versions before wrote it
    return held


def read(found: object) -> dict[str, Released]:
    """What `dumped` wrote; entries that it did not write are left out."""
    out = {}
    for name, entry in found.items() if isinstance(found, Mapping) else ():
        match entry:
            case {
                "address": str(address),
                "user": str(user),
                "port": int(port),
                "host_key": str() | None as key,
            }:
                way = entry.get("ssh_address")
                out[str(name)] = Released(
                    address=address,
                    user=user,
                    port=port,
                    host_key=key,
                    ssh_address=way if isinstance(way, str) else None,
                )
    return out
