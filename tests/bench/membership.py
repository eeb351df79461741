"""Time of one machine more and one less at 3 masters and 2 workers, and what clients feel.

    python -m tests.bench.membership [--n 3]

Artefacts and machine image are there; let nothing else run on this computer. Each round adds a
worker, takes it out, adds a master, takes it out, each by one number in the config and one
`pulumi up`, while clients go on: through a worker's HAProxy, from outside by the contexts of the
kubeconfig, and at etcd itself.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.create import machine, say
from tests.e2e.harness import config
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

NAME = "test-bench-members"  # a lab of tests: tests.run free removes what a killed run leaves
SUBNET = "10.93.101.0/24"
MASTERS, WORKERS = 3, 2
EDITS = (  # what it is called, path, value
    ("one worker more", "pools.worker.count", WORKERS + 1),
    ("one worker less", "pools.worker.count", WORKERS),
    ("one master more", "pools.master.count", MASTERS + 1),
    ("one master less", "pools.master.count", MASTERS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One update of one edit."""

    seconds: float
    resources: int  # changed, the deleted ones too
    gap_ms: int  # longest time without a good answer, of reads or writes, at any client
    failed: int  # requests that had no answer at the first attempt
    harm: int  # requests that a retry did not help; acknowledged writes lost; stale reads


def main() -> int:
    """Exit code: 0 when no client was harmed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=3, help="rounds of all four edits")
    options = parser.parse_args()
    found: dict[str, list[Measure]] = {name: [] for name, _, _ in EDITS}
    wanted = config.lab(NAME, SUBNET, masters=MASTERS, workers=WORKERS)
    with Stack("bench_membership", wanted) as stack:
        stack.up()
        for round_ in range(1, options.n + 1):
            for name, path, value in EDITS:
                stack.edit(path, value)
                found[name].append(_measured(stack, f"{name} {round_}"))
                say(f"round {round_} of {options.n}: {name:<16} {found[name][-1].seconds:6.1f} s")
    print(f"\nMachine: {machine()}; n = {options.n}; {MASTERS} masters, {WORKERS} workers")
    print(f"  {'edit':<16} {'up, median':>11} {'resources':>10} {'longest gap':>12} {'failed':>7}")
    for name, measures in found.items():
        print(f"  {name:<16} {_line(measures)}")
    harm = sum(measure.harm for measures in found.values() for measure in measures)
    print(f"  requests that a retry did not help, lost writes and stale reads: {harm}")
    return 0 if harm == 0 else 1


def _measured(stack: Stack, name: str) -> Measure:
    """The update of an edit that is written, under load."""
    with Load(stack, name) as load:
        update = stack.up()
    seen = load.seen().values()
    return Measure(
        seconds=update.seconds,
        resources=len(update.changes),
        gap_ms=max(one.longest_gap_ms for one in seen),
        failed=sum(one.failed for one in seen),
        harm=sum(one.failed_twice + one.lost + one.stale for one in seen),
    )


def _line(measures: Sequence[Measure]) -> str:
    seconds = statistics.median(one.seconds for one in measures)
    resources = max(one.resources for one in measures)
    gap_s = max(one.gap_ms for one in measures) / 1000
    failed = sum(one.failed for one in measures)
    every = ", ".join(f"{one.seconds:.1f}" for one in measures)
    return f"{seconds:9.1f} s {resources:10d} {gap_s:10.1f} s {failed:7d}   ({every})"


if __name__ == "__main__":
    sys.exit(main())
