"""How long a rollout of many workers takes: the program's own graph, replayed with times of nodes.

    python -m tests.bench.rollout [--nodes 1000] [--worker 25] [--slots 8 64]

The whole program runs under the recording engine of the plan tests, first as it is and then with a
change of every node. What changed is replayed in the order of its dependencies, as many steps at a
time as the engine has slots; a gate holds one until the nodes of its wave are done. Only times of
single steps are taken from elsewhere: of a worker and a master as a story on the lab measured them.
"""

from __future__ import annotations

import argparse
import heapq
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stacks.cluster import rollout
from stacks.cluster.resolve import plan
from stacks.load import load
from tests.plan.big import big
from tests.plan.graph import Graph
from tests.plan.recording import Engine
from tests.plan.settled import Stacks
from tests.unit.configs import edited

_CHANGE = {"converge.generation": 2}
_SHARES = ("2%", "5%", "10%", "25%", "100%")
_STEP_S = 0.5  # a command that has nothing to do: login, checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    worker_s: float
    master_s: float


def main() -> None:
    """Print the wall time by share and slots."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rollout", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--worker", type=float, default=25, help="seconds of one worker")
    parser.add_argument("--master", type=float, default=73, help="seconds of one master")
    parser.add_argument("--slots", type=int, nargs="+", default=[8, 32, 128])
    given = parser.parse_args()
    times = Times(worker_s=given.worker, master_s=given.master)
    with tempfile.TemporaryDirectory() as folder:
        before = Stacks(Path(folder)).new(big(given.nodes))
        before.up(big(given.nodes))
        print(f"  {given.nodes} nodes; {given.worker} s a worker, {given.master} s a master")
        print("  parallel  waves  " + "".join(f"{slots:>7} slots" for slots in given.slots))
        for share in _SHARES:
            wanted = edited(big(given.nodes), {"rollout": {"parallel": share}})
            waits, waves = _steps(before.fork(), wanted)
            took = [replay(waits, waves, times=times, slots=slots) for slots in given.slots]
            cells = "".join(f"{seconds / 60:>9.1f} min" for seconds in took)
            print(f"  {share:>8}  {len(waves):>5}  {cells}", flush=True)


def _steps(
    engine: Engine, wanted: Mapping[str, object]
) -> tuple[dict[str, frozenset[str]], list[frozenset[str]]]:
    """What changes, each with those of it that it waits for; and the node phases of each wave."""
    engine.up(wanted)  # only the waves: no node changes
    run = engine.up(edited(wanted, _CHANGE))
    graph, changed = Graph(run), {change.name for change in run.changes}
    # Through resources that do not change the order continues.
    behind: dict[str, frozenset[str]] = {}
    for name in graph.order:
        found: set[str] = set()
        for other in graph.needs(name):
            found |= {other} if other in changed else behind[other]
        behind[name] = frozenset(found)
    waves = [
        frozenset(f"prod-{name}-node" for name in wave.nodes)
        for wave in rollout.node_waves(plan(load(wanted, read_keys=False)))
    ]
    return {name: behind[name] for name in graph.order if name in changed}, waves


def replay(
    waits: Mapping[str, frozenset[str]],
    waves: list[frozenset[str]],
    *,
    times: Times,
    slots: int,
) -> float:
    """Seconds from the first step to the end of the last, `slots` at a time at most.

    Raises ValueError when nothing can go on.
    """
    done: set[str] = set()
    left = dict(waits)
    under_way: list[tuple[float, str]] = []
    asking: set[str] = set()  # gates that hold a slot
    now = 0.0
    while left or under_way or asking:
        ready = [name for name, others in left.items() if others <= done]
        for name in sorted(ready, key=lambda name: not _wave_of(name)):  # gates are known first
            if len(under_way) + len(asking) >= slots:
                break
            del left[name]
            if _wave_of(name):
                asking.add(name)
            else:
                heapq.heappush(under_way, (now + _seconds(name, times), name))
        passed = {gate for gate in asking if _passes(gate, waves, done, waits)}
        if passed:
            asking -= passed
            done |= passed
            continue
        if not under_way:
            raise ValueError(f"nothing moves: {sorted(asking)[:3]}, {len(left)} left")
        now, name = heapq.heappop(under_way)
        done.add(name)
    return now


def _wave_of(name: str) -> int:
    """The number of the wave that a gate waits for, 0 for gate 0 and for what is not a gate."""
    found = re.search(r"-wave-([0-9]+)$", name)
    return int(found[1]) if found else 0


def _passes(
    gate: str, waves: list[frozenset[str]], done: set[str], waits: Mapping[str, frozenset[str]]
) -> bool:
    return all(name in done or name not in waits for name in waves[_wave_of(gate) - 1])


def _seconds(name: str, times: Times) -> float:
    if re.search(r"-worker-[0-9]+-node$", name):
        return times.worker_s
    if re.search(r"-master-[0-9]+-master$", name):
        return times.master_s
    return _STEP_S


if __name__ == "__main__":
    main()
