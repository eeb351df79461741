"""What health checks of many HAProxies cost API servers: their processor time with and without.

    python -m tests.bench.checks [--nodes 1000] [--seconds 60]

Every node's HAProxy checks every API server: a TLS handshake and /readyz. Here one HAProxy on a
lab machine makes the checks of all nodes. It has the very text that a node of such a cluster has,
and the part of the API once for each node; so the checks are those of that many, and no memory is
needed for that many programs. What is left out is the network between them. Let nothing else run
on this computer.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stacks import load
from stacks.config.sizing import SIZES
from stacks.render import haproxy
from tests.bench.create import machine, say
from tests.e2e.harness import config
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-bench-checks"  # a lab of tests: tests.run free removes what a killed run leaves
SUBNET = "10.93.117.0/24"
MASTERS = 3
CHECKER = "worker-1"
FOLDER = "/run/checks"
FIRST_PORT = 10000  # of the API at the checking machine, one port for each node
_API = "listen kubernetes-api\n"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Seconds of processor time in a second: of an API server, on average, and of who checks."""

    what: str
    api_server: float
    checker: float
    failed: int = 0  # checks


@dataclass(frozen=True, slots=True)
class Checks:
    """What the checking HAProxy says: servers that are up, checks that failed so far."""

    up: int
    failed: int


def main() -> int:
    """Exit code: 0 when every check was answered with the settings for most nodes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=60, help="each measure takes so long")
    options = parser.parse_args()
    found: list[Measure] = []
    wanted = config.lab(NAME, SUBNET, masters=MASTERS, workers=1)
    with Stack("bench_checks", wanted) as stack:
        stack.up()
        stack.settled()
        found.append(_measured(stack, "no checks but those of 4 nodes", options.seconds))
        for size in SIZES:
            text = text_of(stack.config, size, options.nodes)
            _begin(stack, text, MASTERS * options.nodes)
            what = f"checks of {options.nodes} nodes, settings of size {size}"
            measure = _measured(stack, what, options.seconds)
            found.append(replace(measure, failed=_checks(stack).failed))
            say(_line(found[-1]))
            _end(stack)
    print(f"\nMachine: {machine()}; {MASTERS} masters; {options.seconds} s each")
    for measure in found:
        print(f"  {_line(measure)}")
    return 1 if found[-1].failed else 0


def text_of(wanted: Mapping[str, object], size: int, nodes: int) -> str:
    """haproxy.cfg that makes the checks of so many workers, each as one of a cluster of `size`."""
    sized = {**wanted, "sizing": {"nodes": size}}
    plan = load.planned(load.load(sized, read_keys=False), None)
    own = haproxy.local_api(plan, plan.workers[0])
    head, _, api = own.partition(_API)
    assert api, own
    head = head.replace("/run/haproxy/admin.sock", f"{FOLDER}/admin.sock")
    bind = next(line for line in api.splitlines() if line.startswith("  bind "))
    parts = [
        f"listen node-{number}\n{api.replace(bind, f'  bind 127.0.0.1:{FIRST_PORT + number}')}"
        for number in range(nodes)
    ]
    return head + "\n".join(parts)


def _begin(stack: Stack, text: str, servers: int) -> None:
    """Start the checks, and wait until each has been answered."""
    node = stack.node(CHECKER)
    node.put(f"{FOLDER}/haproxy.cfg", text)
    node.run(f"haproxy -c -f {FOLDER}/haproxy.cfg")
    node.start_program(f"exec haproxy -db -f {FOLDER}/haproxy.cfg")

    def missing() -> str:
        answer = node.asked(f"test -S {FOLDER}/admin.sock && echo there")
        found = _checks(stack).up if answer else 0
        return "" if found == servers else f"{found} of {servers} are up"

    wait_for("every server of every node is up", missing, limit_s=120)


def _end(stack: Stack) -> None:
    stack.node(CHECKER).run(f"pkill -f 'haproxy -db -f {FOLDER}' && rm -f {FOLDER}/admin.sock")


def _checks(stack: Stack) -> Checks:
    said = stack.node(CHECKER).run(f"echo 'show stat' | socat - {FOLDER}/admin.sock")
    rows = csv.DictReader(said.removeprefix("# ").splitlines())
    # Those without a check are the way out where all checks fail.
    servers = [
        row
        for row in rows
        if row["svname"].removesuffix("-unchecked") == row["svname"]
        and row["svname"] not in ("FRONTEND", "BACKEND")
    ]
    return Checks(
        up=sum(row["status"] == "UP" for row in servers),
        failed=sum(int(row["chkfail"] or 0) for row in servers),
    )


def _measured(stack: Stack, what: str, seconds: int) -> Measure:
    began, before = time.monotonic(), _ticks(stack)
    time.sleep(seconds)
    after, took = _ticks(stack), time.monotonic() - began
    spent = [(now - then) / _TICKS / took for now, then in zip(after, before, strict=True)]
    return Measure(what=what, api_server=sum(spent[:-1]) / MASTERS, checker=spent[-1])


def _ticks(stack: Stack) -> Sequence[int]:
    """Processor time so far, of each API server, then of who checks; 0 where nobody does."""
    servers = [stack.node(f"master-{number + 1}") for number in range(MASTERS)]
    of = "awk '{print $14 + $15}' /proc/$(pgrep -xo %s)/stat"
    checker = f"pid=$(pgrep -of 'haproxy -db -f {FOLDER}') || {{ echo 0; exit; }}; awk '{{print $14 + $15}}' /proc/$pid/stat"
    said = [node.run(of % "kube-apiserver") for node in servers]
    return [int(text) for text in (*said, stack.node(CHECKER).run(checker))]


def _line(found: Measure) -> str:
    return (
        f"{found.what:<45} {found.api_server:6.3f} cores an API server, {found.checker:6.3f} who "
        f"checks, {found.failed} failed"
    )


if __name__ == "__main__":
    sys.exit(main())
