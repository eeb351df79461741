"""Add-ons of the user's in the change plan: which objects come, change, go and stay."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from stacks.cluster import addon_secrets, user_addons
from stacks.cluster.plan import Plan
from stacks.cluster.user_addons import Addon, KubernetesObject

_MOST = 12  # objects that are named one by one


def made(plan: Plan) -> tuple[tuple[str, str], ...]:
    """(name, what happens) of all of them, in a cluster that has none of them yet."""
    return tuple(
        (
            addon.name,
            "; ".join([f"is made: {_some(addon.objects)}", *_kept(None, plan, addon.name)]),
        )
        for addon in plan.addons
    )


def changed(then: Plan, plan: Plan, *, again: Collection[str]) -> list[tuple[str, str]]:
    """(name, what happens); `again`: those that are applied, also where they are as they were."""
    was = {addon.name: addon for addon in then.addons}
    wanted = {one for addon in plan.addons for one in addon.objects}
    out = []
    for addon in plan.addons:
        old = was.get(addon.name)
        words = [f"is made: {_some(addon.objects)}"]
        kept = [*_kept(then, plan, addon.name)]
        if old:
            chart = plan.spec.addons[addon.name].chart
            words = [
                *_difference(old, addon, wanted, is_chart=chart is not None),
                *_secrets(then, plan, old, addon),
            ]
        if words or kept:
            out.append((addon.name, "; ".join([*words, *kept])))
        elif addon.name in again:
            out.append((addon.name, "is applied again, nothing restarts"))
    left = sorted(set(was) - {addon.name for addon in plan.addons})
    out += [(name, "; ".join(["leaves", *_gone(was[name].objects, wanted)])) for name in left]
    return out


def _kept(then: Plan | None, plan: Plan, name: str) -> Iterator[str]:
    """Whether a timer puts it back from now on."""
    was, now = (of.spec.addons.get(name) if of else None for of in (then, plan))
    if bool(now and now.reconcile) != bool(was and was.reconcile):
        yield (
            "put back every 5 minutes from now on"
            if now and now.reconcile
            else "no longer put back between updates"
        )


def _difference(
    old: Addon, addon: Addon, wanted: set[KubernetesObject], *, is_chart: bool
) -> list[str]:
    if old == addon:
        return []
    new = [one for one in addon.objects if one not in old.objects]
    gone = [one for one in old.objects if one not in addon.objects]
    words = []
    contents = dict(old.files)
    other = [path for path, total in addon.files if contents.get(path) != total]
    if other and is_chart:
        words.append(f"is applied as helm renders {other[0]} now")
    elif other:
        words.append(f"is applied from {', '.join(other)}, which changed")
    if new:
        words.append(f"new: {_some(new)}")
    return [*(words or ["is applied again"]), *_gone(gone, wanted)]


def _secrets(then: Plan, plan: Plan, old: Addon, addon: Addon) -> Iterator[str]:
    """Those of both that are other ones, where something may be known of the old."""
    was, said = (of.spec.addons.get(addon.name) for of in (then, plan))
    if was is None or said is None:
        return
    other = addon_secrets.changed(then.outside, plan.outside, was, said)
    there = [one for one in addon.objects if one in user_addons.secrets(said)]
    listed = [one for one in there if one.name in other and one in old.objects]
    if listed:
        yield f"{_some(listed)} {'change' if len(listed) > 1 else 'changes'}"


def _gone(objects: Sequence[KubernetesObject], wanted: set[KubernetesObject]) -> list[str]:
    """What happens to objects that leave; those that another add-on takes over are none."""
    left = [one for one in objects if one not in wanted]
    stay = user_addons.kept(left)
    deleted = [one for one in left if one not in stay]
    return [
        *([f"deleted at the end: {_some(deleted)}"] if deleted else []),
        *([f"kept, for you to delete: {_some(stay)}"] if stay else []),
    ]


def _some(objects: Iterable[KubernetesObject]) -> str:
    listed = [str(one) for one in objects]
    rest = f" and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    return ", ".join(listed[:_MOST]) + rest if listed else "no object that could be read"
