"""Checks of a rollout that need all nodes: another tool's file, and how many waves there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from stacks.cluster import rollout as cluster_rollout
from stacks.cluster.names import spoken
from stacks.cluster.plan import Plan
from stacks.cluster.rollout import WAVES_LIMIT, RolloutFileError
from stacks.config.problems import Problem


def problems(plan: Plan) -> list[Problem]:
    """What shows only with all nodes known: another tool's file, and how many waves there are."""
    wanted = plan.spec.rollout
    try:
        found = cluster_rollout.node_waves(plan)
        out = _of_file(plan, cluster_rollout.listed(wanted.plan)) if wanted.plan else []
    except RolloutFileError as error:
        return [Problem("rollout.plan", str(error))]
    if len(found) > WAVES_LIMIT:
        path = "rollout.plan" if wanted.plan else "rollout.parallel"
        text = f"makes {len(found)} waves, {WAVES_LIMIT} fit"
        way = "list more nodes in a wave" if wanted.plan else _fitting(plan)
        out.append(Problem(path, f"{text}; {way}"))
    if found and wanted.hold_after is not None and wanted.hold_after >= len(found):
        text = f"{wanted.hold_after} is the last of {len(found)} waves or none, and holds nothing"
        out.append(Problem("rollout.holdAfter", f"{text}; use 0 to {len(found) - 1}"))
    return out


def _fitting(plan: Plan) -> str:
    """A share of workers at a time that makes few enough waves, or the way where none does."""
    said = plan.spec.rollout
    for share in ("20%", "25%", "34%", "50%", "100%"):
        rollout = said.model_copy(update={"parallel": share})
        spec = plan.spec.model_copy(update={"rollout": rollout})
        if len(cluster_rollout.node_waves(replace(plan, spec=spec))) <= WAVES_LIMIT:
            return f"{said.parallel!r} of each group is too small; use {share!r}, or bigger groups"
    return "name several pools in one group of rollout.order; each pool by itself is one or more"


def _of_file(plan: Plan, listed: Sequence[Sequence[str]]) -> list[Problem]:
    known = {node.name for node in plan.workers} | {node.name for node in plan.away}
    names = [name for wave in listed for name in wave]
    out = []
    strange = sorted({name for name in names if name not in known})
    if strange:
        text = f"names {spoken(strange)}, which are not workers of this cluster; take them out"
        out.append(Problem("rollout.plan", text))
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        text = f"has {spoken(twice)} twice; a node is in one wave"
        out.append(Problem("rollout.plan", text))
    return out
