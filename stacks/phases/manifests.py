"""What phase `manifests` is told of an add-on of the user's."""

from __future__ import annotations

import hashlib
import shlex

from stacks.cluster import addon_secrets
from stacks.cluster.plan import Plan
from stacks.cluster.user_addons import Addon
from stacks.config.spec import AddonSpec
from stacks.phases.scripts import STDIN_LIMIT

_OTHER_VALUES = 500  # bytes, as of any command: names of values, of cluster and node, sums


def manifests(plan: Plan, addon: Addon) -> dict[str, str]:
    """Values of the manifests phase: which files, and which objects are in them.

    A list of objects that does not fit into a command is a file, too.
    """
    lines = [
        f"{shipped(addon, number)} {total} {path}"
        for number, (path, total) in enumerate(addon.files)
    ]
    values = {
        "NAME": addon.name,
        "FILES": "\n".join(lines),
        "OBJECTS": objects(addon),
        "GENERATION": str(plan.spec.converge.generation),
        **({"RECONCILE": "1"} if _said(plan, addon).reconcile else {}),
    }
    size = sum(len(f"{name}={shlex.quote(text)}\n".encode()) for name, text in values.items())
    if size + _OTHER_VALUES <= STDIN_LIMIT:
        return values
    total = hashlib.sha256(values["OBJECTS"].encode()).hexdigest()
    return {**values, "OBJECTS": "", "LIST": f"addon.{addon.name}.{total[:12]}.objects {total}"}


def objects(addon: Addon) -> str:
    """Lines "kind namespace name ..." of what is in it, in its order."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in addon.objects:
        groups.setdefault((one.kind, one.namespace), []).append(one.name)
    return "\n".join(" ".join([*where, *found]) for where, found in groups.items())


def outline(plan: Plan, addon: Addon) -> str:
    """The Secrets that it brings, each value by its name; empty: none."""
    said = _said(plan, addon)
    names = {name: name for name in addon_secrets.values(said)}
    return addon_secrets.manifest(said, names) if names else ""


def _said(plan: Plan, addon: Addon) -> AddonSpec:
    """What the config says of it; of a memory it may be nothing."""
    return plan.spec.addons.get(addon.name, AddonSpec())


def compared(plan: Plan) -> str:
    """For phase addons: lines "namespace name type key ..." of the Secrets of all add-ons."""
    return "\n".join(
        " ".join([*place, secret.type, *sorted(secret.data)])
        for _, said in sorted(plan.spec.addons.items())
        for place in addon_secrets.places(said)
        for secret in [said.secrets[place[1]]]
    )


def shipped(addon: Addon, number: int) -> str:
    """Name of one of its files on the master that applies it: another one for other content."""
    return f"addon.{addon.name}.{number + 1}.{addon.files[number][1][:12]}.yaml"
