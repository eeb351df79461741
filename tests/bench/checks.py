"""What health checks of many HAProxies cost API servers: their processor time with and without.

    python -m tests.bench.checks [--nodes 300] [--seconds 60]

Every node's HAProxy checks every API server: a TLS handshake and /readyz. Here one HAProxy on a
lab machine makes the checks of all nodes. It has the very text that a node of such a cluster has,
with the part of the API once for each node; so the checks are those of that many, and no memory is
needed for that many programs. Each size of settings has as many nodes as it is for, but at most
--nodes: who checks, three API servers and what they run on share this computer. What a check costs
does not depend on their number. Processor time is measured; let nothing else run here anyway.
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
from stacks.cluster.plan import Plan
from stacks.config.sizing import SIZES
from stacks.render import haproxy
from tests.bench.create import machine, say
from tests.e2e.harness import config
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-bench-checks"  # a lab of tests: tests.run free removes what a killed run leaves
SUBNET = "10.93.144.0/24"
MASTERS = 3
CHECKER = "worker-1"
FOLDER = "/run/checks"
FIRST_PORT = 20000  # of the API at the checking machine, one for each node; nobody else has them
_API = "listen kubernetes-api\n"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Seconds of processor time in a second: of an API server, on average, and of who checks."""

    what: str
    api_server: float
    checker: float
    rate: float = 0  # checks a second, of an API server
    failed: int = 0  # checks


@dataclass(frozen=True, slots=True)
class Checks:
    """What the checking HAProxy says: servers that are up, checks that failed so far."""

    up: int
    failed: int


def main() -> int:
    """Exit code: 0 when every check was answered with the settings for most nodes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=300, help="at most")
    parser.add_argument("--seconds", type=int, default=60, help="each measure takes so long")
    options = parser.parse_args()
    found: list[Measure] = []
    wanted = config.lab(NAME, SUBNET, masters=MASTERS, workers=1)
    with Stack("bench_checks", wanted) as stack:
        stack.up()
        stack.settled()
        found.append(_measured(stack, "no checks but those of 4 nodes", options.seconds))
        for size in SIZES:
            nodes = min(size, options.nodes)
            plan = sized(stack.config, size)
            interval_s = plan.spec.load_balancing.check_interval_ms / 1000
            _begin(stack, text_of(plan, nodes), MASTERS * nodes)
            failed = _checks(stack).failed
            what = f"checks of {nodes} nodes every {interval_s:.0f} s"
            measure = _measured(stack, what, options.seconds)
            failed = _checks(stack).failed - failed
            found.append(replace(measure, rate=nodes / interval_s, failed=failed))
            say(_line(found[-1], found[0]))
            _end(stack)
    print(f"\nMachine: {machine()}; {MASTERS} masters; {options.seconds} s each")
    for measure in found:
        print(f"  {_line(measure, found[0])}")
    return 1 if found[-1].failed else 0


def sized(wanted: Mapping[str, object], size: int) -> Plan:
    """The plan of a cluster with the settings of a size."""
    return load.planned(load.load({**wanted, "sizing": {"nodes": size}}, read_keys=False), None)


def text_of(plan: Plan, nodes: int) -> str:
    """haproxy.cfg that makes the checks of so many workers."""
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
    node.start_program(
        f"echo $$ >{FOLDER}/pid; exec haproxy -db -f {FOLDER}/haproxy.cfg >{FOLDER}/log 2>&1"
    )

    def missing() -> str:
        found = _checks(stack).up
        said = node.asked(f"tail -n 1 {FOLDER}/log").strip()
        return "" if found == servers else f"{found} of {servers} are up; it said: {said}"

    wait_for("every server of every node is up", missing, limit_s=120)


def _end(stack: Stack) -> None:
    node = stack.node(CHECKER)
    node.run(f"kill $(cat {FOLDER}/pid) && rm {FOLDER}/pid")
    wait_for("its end", lambda: node.asked("pgrep -x haproxy -a | grep -- -db"), limit_s=60)


def _checks(stack: Stack) -> Checks:
    """None is up while it does not answer."""
    said = stack.node(CHECKER).asked(f"echo 'show stat' | socat -t 10 - {FOLDER}/admin.sock")
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
    checker = f"[[ ! -e {FOLDER}/pid ]] || awk '{{print $14 + $15}}' /proc/$(cat {FOLDER}/pid)/stat"
    said = [node.run(of % "kube-apiserver") for node in servers]
    return [int(text or 0) for text in (*said, stack.node(CHECKER).run(checker))]


def _line(found: Measure, without: Measure) -> str:
    line = f"{found.what:<36} {found.api_server:6.3f} cores an API server"
    if not found.rate:
        return line
    check_ms = 1000 * (found.api_server - without.api_server) / found.rate
    return (
        f"{line}, {found.rate:3.0f} checks a second, {check_ms:.2f} ms each; {found.checker:.3f} "
        f"cores who checks; {found.failed} failed"
    )


if __name__ == "__main__":
    sys.exit(main())
