"""What phase `manifests` is told of an add-on of the user's."""

from __future__ import annotations

from stacks.cluster import addon_secrets
from stacks.cluster.plan import Plan
from stacks.cluster.user_addons import Addon


def manifests(plan: Plan, addon: Addon) -> dict[str, str]:
    """Values of the manifests phase: which files, and which objects are in them."""
    lines = [
        f"{shipped(addon, number)} {total} {path}"
        for number, (path, total) in enumerate(addon.files)
    ]
    groups: dict[tuple[str, str], list[str]] = {}
    for one in addon.objects:
        groups.setdefault((one.kind, one.namespace), []).append(one.name)
    return {
        "NAME": addon.name,
        "FILES": "\n".join(lines),
        "OBJECTS": "\n".join(" ".join([*where, *found]) for where, found in groups.items()),
        "GENERATION": str(plan.spec.converge.generation),
    }


def outline(plan: Plan, addon: Addon) -> str:
    """The Secrets that it brings, each value by its name; empty: none."""
    said = plan.spec.addons[addon.name]
    names = {name: name for name in addon_secrets.values(said)}
    return addon_secrets.manifest(said, names) if names else ""


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
