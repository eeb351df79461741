"""Time of `pulumi up` for 3 masters and 2 workers, against the bare path of the same steps.

    python -m tests.bench.create [--n 3] [--masters 3] [--workers 2]

Artefacts and machine image are there; let nothing else run on this computer. Tool and bare path
alternate in one run, on machines recreated each time. Then: resources and bytes of state per node,
and the time of an update that has nothing to do against the floor: a program without resources.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench import replay
from tests.e2e.harness import config, lab
from tests.e2e.harness.stack import Stack

ROOT = Path(__file__).resolve().parents[2]
NAME = "test-bench"  # a lab of tests: tests.run free removes what a killed run leaves
SUBNET = "10.93.100.0/24"
GOAL = 1.15
NOTHING_TO_DO_RUNS = 3


def main() -> int:
    """Exit code: 0 when the goal was met."""
    options = _options()
    parallel = 4 * (os.cpu_count() or 1)  # the engine's own default
    tool, bare, idle = [], [], []
    wanted = config.lab(NAME, SUBNET, masters=options.masters, workers=options.workers)
    with Stack("bench", wanted) as stack:
        for round_ in range(1, options.n + 1):
            tool.append(stack.up().seconds)
            say(f"round {round_} of {options.n}: pulumi up   {tool[-1]:6.1f} s")
            deployment = stack.export()
            if round_ == 1:
                idle = [stack.up().seconds for _ in range(NOTHING_TO_DO_RUNS)]
                state = json.loads(stack.state_file.read_text())
            stack.destroy()
            bare.append(_replayed(deployment, parallel))
            say(f"round {round_} of {options.n}: bare path   {bare[-1]:6.1f} s")
            lab.free(NAME)
        floor = _floor(stack)
    nodes = options.masters + options.workers
    print(f"\nMachine: {machine()}; n = {options.n}; parallel {parallel}; {nodes} nodes")
    print(f"  pulumi up        median {_median(tool)}   {_listed(tool)}")
    print(f"  bare path        median {_median(bare)}   {_listed(bare)}")
    ratio = statistics.median(tool) / statistics.median(bare)
    print(f"  ratio            {ratio:.2f} (goal: at most {GOAL})")
    print(f"  nothing to do    median {_median(idle)}   {_listed(idle)}")
    print(f"  engine's floor   median {_median(floor)}   {_listed(floor)}")
    _print_state(state)
    return 0 if ratio <= GOAL else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=3, help="rounds of tool and bare path")
    parser.add_argument("--masters", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    return parser.parse_args()


def _replayed(deployment: Mapping[str, object], parallel: int) -> float:
    """Seconds of the bare path."""
    steps = replay.steps(deployment)
    started = time.monotonic()
    asyncio.run(replay.replay(steps, parallel=parallel))
    return time.monotonic() - started


def _floor(stack: Stack) -> list[float]:
    """Seconds of ups of a program that has no resources, with the same engine and Python."""
    folder = stack.folder / "empty"
    folder.mkdir()
    runtime = {"name": "python", "options": {"virtualenv": str(ROOT / ".venv")}}
    (folder / "Pulumi.yaml").write_text(json.dumps({"name": "empty", "runtime": runtime}))
    (folder / "__main__.py").write_text("import pulumi\n")
    words = ["--stack", "floor", "--non-interactive"]
    _pulumi(stack, folder, ["stack", "init", "floor", "--no-select", "--non-interactive"])
    out = []
    for _ in range(NOTHING_TO_DO_RUNS + 1):
        started = time.monotonic()
        _pulumi(stack, folder, ["up", "--yes", "--skip-preview", *words])
        out.append(time.monotonic() - started)
    return out[1:]  # the first one makes the stack


def _pulumi(stack: Stack, folder: Path, words: Sequence[str]) -> None:
    subprocess.run(
        ["pulumi", *words],
        cwd=folder,
        env=stack.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )


def _print_state(state: Mapping[str, Mapping[str, Mapping[str, list[dict[str, object]]]]]) -> None:
    """Resources and bytes of state of each kind of node, by resource name."""
    resources = state["checkpoint"]["latest"]["resources"]
    by_node: dict[str, list[int]] = {}
    for entry in resources:
        name = str(entry["urn"]).rpartition("::")[2].removeprefix(f"{NAME}-").removeprefix("pki-")
        parts = name.split("-")
        node = "-".join(parts[:2]) if len(parts) > 1 and parts[1].isdigit() else "the cluster"
        by_node.setdefault(node, []).append(len(json.dumps(entry)))
    print(f"  state            {len(resources)} resources, {sum(map(sum, by_node.values()))} bytes")
    for node, sizes in sorted(by_node.items()):
        print(f"    {node:<14} {len(sizes):4d} resources, {sum(sizes):8d} bytes")


def machine() -> str:
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    return f"{os.cpu_count()} cores, {memory_kib / 2**20:.0f} GiB, Linux {platform.release()}"


def _median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):6.1f} s"


def _listed(values: Sequence[float]) -> str:
    return "(" + ", ".join(f"{value:.1f}" for value in values) + ")"


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} bench   {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
