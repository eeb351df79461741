"""The program alone with many nodes: time of a run, resources, bytes of state, depth of the graph.

    python -m tests.bench.plan [--nodes 1000]

Runs the whole program under the recording engine of the plan tests, as 3 masters and workers on
adopted machines: no engine, no SSH, real certificates.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.plan.big import big
from tests.plan.graph import Graph
from tests.plan.recording import Engine
from tests.plan.registration import Run
from tests.plan.settled import Stacks
from toolchain.values import encode


def main() -> None:
    """Print the measures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.plan", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    nodes: int = parser.parse_args().nodes
    with tempfile.TemporaryDirectory() as folder:
        engine = Stacks(Path(folder)).new(big(nodes))
        first = _timed(f"first update of {nodes} nodes", engine, big(nodes))
        _timed("nothing to do", engine, big(nodes))
        _timed("one worker more", engine, big(nodes + 1))
    _sizes(first, nodes)
    print(f"  machine: {os.cpu_count()} x {platform.machine()}, Python {platform.python_version()}")


def _timed(what: str, engine: Engine, config: Mapping[str, object]) -> Run:
    started, used = time.monotonic(), time.process_time()
    run = engine.up(config)
    wall_s, cpu_s = time.monotonic() - started, time.process_time() - used
    print(
        f"  {what:24} {wall_s:6.1f} s ({cpu_s:.1f} s of processor, "
        f"{1000 * cpu_s / len(run.resources):.1f} ms a resource), {len(run.changes)} changes"
    )
    return run


def _sizes(run: Run, nodes: int) -> None:
    state = sum(
        encode(resource.inputs).ByteSize() + encode(resource.outputs).ByteSize()
        for resource in run.custom
    )
    stdin = max(run.commands, key=lambda resource: len(resource.text("stdin")))
    depths = Graph(run).depths
    print(f"  resources                {len(run.custom)}, {len(run.custom) / nodes:.1f} a node")
    print(f"  inputs and outputs       {state / 1e6:.1f} MB, {state / nodes / 1e3:.1f} KB a node")
    print(f"  biggest stdin            {len(stdin.text('stdin').encode())} bytes ({stdin.name})")
    print(f"  longest chain            {max(depths.values())} resources")


if __name__ == "__main__":
    main()
