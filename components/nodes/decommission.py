"""Machines that have left the cluster and are kept as they are."""

from __future__ import annotations

from collections.abc import Mapping

from pulumi import Resource
from pulumi_command import remote

from components.nodes.prepared import look
from components.ssh.commands import Identity, Machine, after, converge, copy_scripts
from stacks.cluster import digests
from stacks.phases import scripts as phase_scripts


def decommission(
    name: str,
    machine: Machine,
    preflight: Mapping[str, str],
    *,
    identity: Identity,
    parent: Resource,
    out: Resource,
) -> remote.Command:
    """Resource `<name>-decommission`: everything of ours is stopped, machine and disks stay.

    `out`: the machine is no longer in the list of nodes. Its scripts and its preflight, by which it
    can leave for good one day, are kept.
    """
    scripts = copy_scripts(
        f"{name}-scripts",
        machine,
        wanted=digests.digest("decommission", phase_scripts.script_sum("decommission")),
        opts=after(machine.exists, parent=parent),
    )
    kept = look(name, machine, scripts, preflight, identity=identity, anew=False, parent=parent)
    return converge(
        f"{name}-decommission",
        machine,
        "decommission",
        {},
        identity=identity,
        stamp=scripts.id,
        opts=after(kept, out, parent=parent),
    )
