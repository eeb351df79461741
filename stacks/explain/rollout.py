"""The rollout of workers in words: each wave with its nodes, what opens it, and what ends it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from stacks.cluster import rollout
from stacks.cluster.names import spoken
from stacks.cluster.plan import Plan
from stacks.edits.memory import Memory
from stacks.explain.actions import NodeChange, Wave
from stacks.explain.checks import WAVE


def waves(plan: Plan, changed: Sequence[NodeChange], drained: Collection[str]) -> Iterator[Wave]:
    """The waves that have something to do; each keeps its number. `drained`: workers whose pods are
    evicted for it.
    """
    known = {node.name: node for node in changed}
    found, told = rollout.node_waves(plan), _with(plan, known)
    dry = any(not {*drained}.isdisjoint(wave.nodes) for wave in told)
    for wave in told:
        evicted = not {*drained}.isdisjoint(wave.nodes)
        is_first, is_last = wave is told[0], wave is told[-1]
        yield Wave(
            title=f"workers, wave {wave.number} of {len(found)} ({wave.group})",
            order="in parallel",
            nodes=tuple(known[name] for name in wave.nodes if name in known),
            lines=tuple(_lines(plan, wave.number, evicted=evicted, dry=dry, is_first=is_first)),
            checked=_checked(plan, wave, is_last=is_last),
            abort=_abort(
                sum(name in known for name in wave.nodes), evicted=evicted, is_last=is_last
            ),
        )


def asked_again(
    before: Memory | None, plan: Plan, changed: Collection[str], gates: Collection[int]
) -> Iterator[Wave]:
    """Gates that run though nothing changes in their wave: other nodes are in it, or one is absent.

    That before the first wave is told with any other, and with another `rollout`, which is told
    where no wave has anything to do. `changed`: names of workers that are told.
    """
    told = {wave.number for wave in _with(plan, changed)}
    other = settings(before, plan) if gates and not told else ()
    yield from other
    first = {0} if told or other else set()
    left = [str(number) for number in sorted({*gates} - told - first)]
    if not left:
        return
    number = len(rollout.node_waves(plan))
    which = f"gates {spoken(left)} of {number} ask"
    if len(left) == 1:
        which = f"gate {left[0]} of {number} asks"
    text = f"{which} again whether the workers of the waves are as wanted"
    yield Wave(
        title="gates between waves of workers",
        order="one by one",
        nodes=(),
        lines=(f"{text}; nothing changes on them",),
        checked="every node of these waves is Ready and has announced what it applied",
        abort="nothing that was not there before; the next update asks again",
    )


def _with(plan: Plan, nodes: Collection[str]) -> list[rollout.NodeWave]:
    """Waves that have one of these nodes."""
    return [wave for wave in rollout.node_waves(plan) if not {*nodes}.isdisjoint(wave.nodes)]


def _lines(plan: Plan, number: int, *, evicted: bool, dry: bool, is_first: bool) -> Iterator[str]:
    wanted = plan.spec.rollout
    if dry and is_first:  # of all waves at once, also where this one evicts nobody
        yield "before any node is cordoned all evictions are tried dry"
    if wanted.hold_after is not None and wanted.hold_after < number:
        yield f"not in this update: rollout.holdAfter is {wanted.hold_after}"
    if evicted:
        limit = f"{wanted.drain.timeout_s} s a node"
        yield f"pods are evicted first, as PodDisruptionBudgets allow, within {limit}"
    if is_first and wanted.windows:
        yield f"waves begin only {', '.join(wanted.windows)}"


def _checked(plan: Plan, wave: rollout.NodeWave, *, is_last: bool) -> str:
    wanted = plan.spec.rollout
    may = rollout.budget(plan)
    text = WAVE
    if may:
        text = f"{text}, but for {may} that may fail in all waves together"
        critical = [name for name in wanted.critical if name in wave.nodes]
        text += f", {spoken(critical)} not among them" if critical else ""
    if wanted.pause_s and not is_last:
        text = f"{text}; then a pause of {wanted.pause_s} s"
    return text


def _abort(workers: int, *, evicted: bool, is_last: bool) -> str:
    """What an interruption leaves of so many workers that change."""
    many = "some workers of this wave old, some new" if workers > 1 else "the worker old or new"
    cordoned = ", one in progress perhaps cordoned" if workers > 1 else ", and perhaps cordoned"
    later = "" if is_last else ", and later waves are untouched"
    return f"{many}{cordoned if evicted else ''}; the next update resumes{later}"


def settings(before: Memory | None, plan: Plan) -> tuple[Wave, ...]:
    """What another `rollout` is, where no worker changes."""
    if before is None or before.plan is None or before.plan.spec.rollout == plan.spec.rollout:
        return ()
    return (
        Wave(
            title="rollout",
            order="once",
            nodes=(),
            lines=("how changes reach the workers: it counts from their next change on",),
            checked="no node is touched",
            abort="the old or the new rollout",
        ),
    )
