"""In which waves a change reaches the workers: from the config alone, never from what changes.

So that taking an edit back rolls back in the same waves, and a wave is the same whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stacks.cluster.names import spoken
from stacks.cluster.plan import Node, Plan
from stacks.config import engine_yaml, local_file
from stacks.config.engine_yaml import NoYamlError
from stacks.config.problems import shown
from stacks.config.rollout import NodeGroupSpec
from stacks.config.rollout_values import minutes, of_share

WAVES_LIMIT = 100  # each is a step in the longest chain of the graph


class RolloutFileError(ValueError):
    """Why a file with waves cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWave:
    number: int  # from 1
    group: str  # in words: "canary", "pool worker"
    nodes: tuple[str, ...]  # names, in order


def node_waves(plan: Plan) -> tuple[NodeWave, ...]:
    """The waves of all workers, first to last. Raises RolloutFileError."""
    found: list[NodeWave] = []
    for group, size, names in _groups(plan):
        for start in range(0, len(names), size):
            nodes = tuple(names[start : start + size])
            found.append(NodeWave(number=len(found) + 1, group=group, nodes=nodes))
    return tuple(found)


def budget(plan: Plan) -> int:
    """How many workers may fail in a rollout."""
    return len(plan.workers) * plan.spec.rollout.failure_budget_percent // 100


def absent_budget(plan: Plan) -> int:
    """How many workers may be silent without ending an update."""
    said = plan.spec.rollout.absent_budget
    return 0 if said == "0" else of_share(said, len(plan.workers))


def windows(plan: Plan) -> tuple[tuple[int, int], ...]:
    """When waves may begin, in minutes of the week; none: at any time."""
    return minutes(plan.spec.rollout.windows)


def _groups(plan: Plan) -> Iterator[tuple[str, int, list[str]]]:
    """Each group in words, how many of it make a wave, and its names; none is empty."""
    wanted = plan.spec.rollout
    left = {node.name: node for node in plan.workers}

    def take(names: Iterable[str]) -> list[str]:
        return [name for name in names if left.pop(name, None) is not None]

    for number, names in enumerate(listed(wanted.plan) if wanted.plan else (), start=1):
        taken = take(names)
        if taken:
            yield f"wave {number} of {wanted.plan}", len(taken), taken
    ordered = [name for group in wanted.order for name in _matching(group, plan.workers)]
    ordered += [node.name for node in _by_pool(plan.workers)]
    if wanted.canary is not None:
        first = list(dict.fromkeys(ordered))[: wanted.canary.count]
        taken = take(wanted.canary.nodes or first)
        if taken:
            yield "canary", len(taken), taken
    for place, group in enumerate(wanted.order, start=1):
        taken = take(_matching(group, plan.workers))
        if taken:
            size = of_share(wanted.parallel, len(taken))
            yield f"group {place} ({said(group)})", size, taken
    for pool in sorted({node.pool for node in left.values()}):
        taken = take([node.name for node in plan.workers if node.pool == pool])
        yield f"pool {pool}", of_share(wanted.parallel, len(taken)), taken


def _by_pool(workers: Sequence[Node]) -> list[Node]:
    return sorted(workers, key=lambda node: (node.pool, node.ordinal, node.name))


def _matching(group: NodeGroupSpec, workers: Sequence[Node]) -> list[str]:
    """Names of the workers that a group means, in the plan's order or that of its own list."""
    found = [
        node.name
        for node in workers
        if (not group.pools or node.pool in group.pools)
        and (not group.zones or node.zone in group.zones)
        and (not group.nodes or node.name in group.nodes)
        and set(group.labels.items()) <= set(node.labels)
    ]
    if group.nodes and not (group.pools or group.zones or group.labels):
        return [name for name in dict.fromkeys(group.nodes) if name in found]
    return found


def said(group: NodeGroupSpec) -> str:
    """A group in words."""
    parts = [f"pool {', '.join(group.pools)}"] if group.pools else []
    parts += [f"zone {', '.join(group.zones)}"] if group.zones else []
    parts += [spoken(group.nodes)] if group.nodes else []
    parts += [f"{key}={value}" for key, value in sorted(group.labels.items())]
    return "; ".join(parts)


def listed(path: str) -> tuple[tuple[str, ...], ...]:
    """The waves that another tool has written, as lists of names. Raises RolloutFileError."""
    try:
        said = local_file.read(local_file.place(path), local_file.CONFIG_MOST).decode()
        content, misread, _ = engine_yaml.read(said)
    except (OSError, UnicodeDecodeError) as error:
        raise RolloutFileError(f"{path!r} cannot be read ({error})") from None
    except NoYamlError as error:
        raise RolloutFileError(f"{path!r} is neither YAML nor JSON ({_line(error)})") from None
    for _, words in misread:
        raise RolloutFileError(f"{path!r}: {words}")
    if not isinstance(content, list) or not content:
        raise RolloutFileError(f"{path!r} holds no list of waves; write [[worker-1], [worker-2]]")
    for number, wave in enumerate(content, start=1):
        if not isinstance(wave, list) or not wave or not all(isinstance(n, str) for n in wave):
            text = f"wave {number} of {path!r} is not a list of names: {shown(wave)}"
            raise RolloutFileError(text)
    return tuple(tuple(wave) for wave in content)


def _line(error: NoYamlError) -> str:
    return str(error).splitlines()[0]
