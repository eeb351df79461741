"""Add-ons of the user's: their files brought to a master, which applies them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pulumi import Resource

from components.ssh.commands import Identity, Machine, after, converge, copy_file
from stacks.cluster import digests
from stacks.cluster.plan import Plan
from stacks.phases import manifests, scripts


def apply_manifests(
    cluster: str,
    plan: Plan,
    machine: Machine,
    *,
    identity: Identity,
    parent: Resource,
    waits_for: Sequence[Resource],
) -> list[Resource]:
    """Resources `<cluster>-addon-<name>`, each after `-addon-<name>-file-<n>` and the one before.

    What leaves, an object or all of an add-on, is deleted by the list of nodes at the end.
    """
    made: list[Resource] = []
    for addon in plan.addons:
        name, values = f"{cluster}-addon-{addon.name}", manifests.manifests(plan, addon)
        wanted = digests.digest(scripts.script_sum("manifests"), *values.values())
        copied = [
            copy_file(
                f"{name}-file-{number + 1}",
                machine,
                str(Path(path).expanduser()),
                manifests.shipped(addon, number),
                wanted=wanted,
                opts=after(*waits_for, parent=parent),
            )
            for number, (path, _) in enumerate(addon.files)
        ]
        made.append(
            converge(
                name,
                machine,
                "manifests",
                values,
                identity=identity,
                # All are copied anew together.
                stamp=copied[0].id,
                opts=after(*waits_for, *made[-1:], *copied, parent=parent),
            )
        )
    return made
