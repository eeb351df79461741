"""What phase `wave` is told: the gate before each wave of workers that exist."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from stacks.cluster import digests, rollout
from stacks.cluster.plan import Plan
from stacks.networks import registry
from stacks.phases import nodes
from stacks.phases.gate import may_be_silent

_STALL_S = 300  # besides the time for evictions: an update of one node takes about a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One of the gates: 0 stands before all workers, gate k after wave k."""

    number: int
    opens: tuple[str, ...]  # workers whose changes it lets through
    concerned: tuple[str, ...]  # whose hashes make it run
    lists: Mapping[str, tuple[str, ...]]  # values that are the lines of some nodes; none is empty
    settings: Mapping[str, str]  # all other values; none where it lists nobody


def gates(plan: Plan, settled: Collection[str]) -> tuple[Gate, ...]:
    """One for each wave; `settled` are the nodes that exist, others are in no wave yet."""
    waves = rollout.node_waves(plan)
    return tuple(_gate(plan, number, waves, settled) for number in range(len(waves)))


def _gate(
    plan: Plan, number: int, waves: Sequence[rollout.NodeWave], settled: Collection[str]
) -> Gate:
    done = [name for wave in waves[: max(0, number - 1)] for name in wave.nodes]
    own = waves[number - 1].nodes if number else ()
    later = [name for wave in waves[number:] for name in wave.nodes]
    parts = {
        key: tuple(name for name in names if name in settled)
        for key, names in (("EARLIER", done), ("NODES", own), ("LATER", later))
    }
    lists = {key: names for key, names in parts.items() if names}
    return Gate(
        number=number,
        opens=waves[number].nodes,
        concerned=own or tuple(later),
        lists=lists,
        settings=_settings(plan, number, len(waves), parts["NODES"]) if lists else {},
    )


def lines(plan: Plan, names: Collection[str], hashes: Mapping[str, str]) -> str:
    """Of some workers; `hashes` is what each announces once it is as wanted."""
    known = set(names)
    return nodes.wanted([node for node in plan.workers if node.name in known], hashes)


def trigger(plan: Plan, gate: Gate, hashes: Mapping[str, str]) -> str:
    """What makes a gate run: not who is in the wave, or each that comes would move others."""
    drain = nodes.drain(plan, plan.spec.rollout.drain.when) if gate.number == 0 else ""
    return digests.digest(drain, *sorted({hashes[name] for name in gate.concerned}))


def _settings(plan: Plan, number: int, total: int, own: Collection[str]) -> dict[str, str]:
    """What the config says of it; `own` are the nodes of the wave."""
    wanted = plan.spec.rollout
    windows = rollout.windows(plan)
    return {
        "WAVE": str(number),
        "WAVES": str(total),
        "BUDGET": str(rollout.budget(plan)),
        "CRITICAL": " ".join(name for name in wanted.critical if name in own),
        "PAUSE_S": str(wanted.pause_s) if number else "0",
        "WINDOWS": " ".join(f"{start}-{end}" for start, end in windows),
        "WINDOWS_SAID": ", ".join(wanted.windows),
        "HOLD": "1" if wanted.hold_after == number else "",
        "STALL_S": str(_STALL_S + wanted.drain.timeout_s + nodes.more_s(plan)),
        "IDLE_S": str(nodes.IDLE_S),
        "NETWORK": "1" if registry.of(plan.spec).PROVED else "0",
        **may_be_silent(plan),
        **({} if number else _evictions(plan)),
    }


def _evictions(plan: Plan) -> dict[str, str]:
    """What gate 0 needs to know whose pods will be evicted, and how."""
    packages = plan.spec.os.packages or ""
    return {
        "DRAIN": nodes.drain(plan, plan.spec.rollout.drain.when),
        "VERSIONS": _versions(plan),
        "OS": packages,
    }


def _versions(plan: Plan) -> str:
    return f"kubelet={plan.versions.kubernetes} containerd={plan.versions.containerd}"
