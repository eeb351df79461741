"""`python -m operations.logs STACK`: logs of nodes, read on their machines, with or without an API.

Of one node, else of all nodes of a pool or a role, each line behind its node's name. A unit's from
the journal, a pod's from the files that the kubelet keeps, a phase's from what its programs wrote;
without any of these the whole journal. Text of machines is printed as printable ASCII.

Where the cluster has a store of logs (add-on logs), that is asked, and the machines where it does
not answer; `--source` says who alone.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from operations import log_store
from operations.engine import stack
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.ssh import client
from operations.ssh.client import Target
from stacks.cluster.plan import Node
from stacks.phases import scripts

_LINES = log_store.LINES
_SSHS = 32  # at a time, where nothing is followed
_STATE = "/var/lib/kube-ha/state"
_PODS = "/var/log/pods"  # of kubelets: <namespace>_<pod>_<uid>/<container>/<restarts>.log
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_UNIT = re.compile(r"[A-Za-z0-9:_.@-]+")
_POD = re.compile(r"(?:[a-z0-9-]+/)?[a-z0-9.-]+")
_SINCE = re.compile(r"([1-9][0-9]{0,6})([smhd])")
_LOG = re.compile(r"\$STATE/([a-z-]+\.log)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which log, from when on."""

    unit: str = ""
    pod: str = ""
    phase: str = ""
    since_s: int | None = None  # seconds back from now; None: the last lines
    follow: bool = False


def main(arguments: list[str]) -> int:
    """Print the lines. Exit code 1 where a machine gave none, 130 after Ctrl-C."""
    given = _arguments().parse_args(arguments)
    try:
        wanted = _wanted(given)
        found = stack.read(given.stack, applied=False, whole=False)
        nodes = _nodes(found, given)
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    try:
        if _by_store(found, nodes, wanted, given.source):
            try:
                return log_store.show(found, _question(found, nodes, wanted))
            except log_store.AwayError as error:
                sys.stderr.write(_away(error, given.source))
                if given.source == "store":
                    return 1
        return show(found, nodes, wanted)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:  # as of `head`; what is left in the buffer has no reader either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _by_store(found: Stack, nodes: Sequence[Node], wanted: Wanted, source: str | None) -> bool:
    """Whether the store is asked: it has neither phases nor machines without a kubelet."""
    if source == "machines":
        return False
    there = log_store.is_there(found.plan) and not wanted.phase
    return source == "store" or (there and all(node.in_kubernetes for node in nodes))


def _question(found: Stack, nodes: Sequence[Node], wanted: Wanted) -> log_store.Question:
    every = [node.name for node in found.plan.nodes if node.in_kubernetes]
    chosen = [node.name for node in nodes]
    return log_store.Question(
        nodes=log_store.of_nodes(chosen, every),
        each=len(nodes),
        unit=wanted.unit,
        pod=wanted.pod,
        since_s=wanted.since_s,
        follow=wanted.follow,
    )


def _away(error: log_store.AwayError, source: str | None) -> str:
    if source == "store":
        do = "kubectl -n kube-system describe pod logs-store-0; SOURCE=machines reads the nodes"
        return f"ERROR the store of logs does not answer: {error}\n  do: {do}\n"
    return f"the store of logs does not answer ({error}): machines are asked\n"


def show(found: Stack, nodes: Sequence[Node], wanted: Wanted) -> int:
    """Node by node in their order; followed ones line by line as they come."""
    readers = [Reader(found.target(node.name), command(wanted)) for node in nodes]
    width = max(len(node.name) for node in nodes) if len(nodes) > 1 else 0
    prefixes = [f"{node.name.ljust(width)}  " if width else "" for node in nodes]
    one_at_a_time = threading.Lock()

    def follow(prefix: str, reader: Reader) -> None:
        for line in reader.lines():
            with one_at_a_time:
                print(f"{prefix}{line}", flush=True)

    with ThreadPoolExecutor(len(nodes) if wanted.follow else min(len(nodes), _SSHS)) as pool:
        try:
            if wanted.follow:
                list(pool.map(follow, prefixes, readers))
            else:
                taken = pool.map(lambda reader: [*reader.lines()], readers)
                for prefix, lines in zip(prefixes, taken, strict=True):
                    print("".join(f"{prefix}{line}\n" for line in lines), end="", flush=True)
        finally:  # Ctrl-C, or nobody reads this any more
            pool.shutdown(wait=False, cancel_futures=True)
            for reader in readers:
                reader.end()
    for node, reader in zip(nodes, readers, strict=True):
        if reader.is_empty and not wanted.follow:
            sys.stderr.write(f"{node.name}: no lines\n")
    failed = [(node, reader) for node, reader in zip(nodes, readers, strict=True) if reader.status]
    for node, reader in failed:
        sys.stderr.write(f"ERROR {node.name} ({node.address}): {reader.reason}\n")
    return 1 if failed else 0


class Reader:
    """One command on one machine, by root's shell, and what it prints."""

    def __init__(self, target: Target, wanted: str) -> None:
        root = [] if target.hop.user == "root" else ["sudo", "-n"]
        self._target, self._shell = target, shlex.join([*root, "bash", "-c", wanted])
        self._process: subprocess.Popen[str] | None = None
        self._error = ""
        self.status = 0
        self.is_empty = True

    def lines(self) -> Iterator[str]:
        """Each line as it comes, as printable ASCII."""
        with tempfile.TemporaryDirectory(prefix="kube-ha-") as name:
            folder = Path(name)
            words = [*client.client(self._target, folder), self._shell]
            with (
                (folder / "stderr").open("w+", errors="replace") as errors,
                subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    errors="replace",
                ) as self._process,
            ):
                for line in self._process.stdout or ():
                    self.is_empty = False
                    yield client.plain(line.rstrip("\n"))
                self.status = self._process.wait()
                self.is_empty = self.is_empty and not self.status
                errors.seek(0)
                self._error = client.plain(errors.read()).strip()

    def end(self) -> None:
        """End it, where it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    @property
    def reason(self) -> str:
        """Why there is no log, and what to do."""
        said = self._error.splitlines()[-1] if self._error else "no answer"
        if self.status == client.UNREACHABLE:
            return f"cannot be reached: {said}\n  do: see that it runs; make status tells more"
        return f"exit code {self.status}: {said}\n  do: see that UNIT, POD or PHASE is of this node"


def command(wanted: Wanted) -> str:
    """What is run on the machine, by root's shell."""
    if wanted.pod:
        namespace, slash, name = wanted.pod.rpartition("/")
        files = f"{_PODS}/{namespace if slash else '*'}_{name}*_*/*/*.log"
        return _files(wanted, files, f"no log of a pod {wanted.pod}")
    if wanted.phase:
        names = _LOG.findall(scripts.whole(wanted.phase))
        files = " ".join(f"{_STATE}/{name}" for name in dict.fromkeys(names))
        return _files(wanted, files, f"no log of phase {wanted.phase}")
    words = ["journalctl", "--no-pager", "--quiet", "-o", "short-iso"]
    words += ["-u", wanted.unit] if wanted.unit else []
    words += ["-n", str(_LINES)] if wanted.since_s is None else ["--since", f"-{wanted.since_s}s"]
    return shlex.join([*words, *(["-f"] if wanted.follow else [])])


def _files(wanted: Wanted, files: str, none: str) -> str:
    """Last lines of files, those that there are; of pods' from a time on.

    Each line of a pod's log begins with its time, in the machine's own zone.
    """
    there = f'shopt -s nullglob; f=(); for p in {files}; do [[ -f $p ]] && f+=("$p"); done; '
    there += f"((${{#f[@]}})) || {{ echo {shlex.quote(none + ' here')} >&2; exit 1; }}; "
    follow = " -F" if wanted.follow else ""
    if wanted.since_s is None or wanted.phase:
        return f'{there}tail -n {_LINES}{follow} -- "${{f[@]}}"'
    begin = f"$(date -d '{wanted.since_s} seconds ago' +%FT%T)"
    shown = f"awk -v b=\"{begin}\" '/^==> / || $1 >= b {{ print; fflush() }}'"
    return f'{there}tail -n +1{follow} -- "${{f[@]}}" | {shown}'


def _wanted(given: argparse.Namespace) -> Wanted:
    """Raises StackError with every argument that is none."""
    trouble = []
    chosen = [name for name in ("unit", "pod", "phase") if getattr(given, name)]
    if len(chosen) > 1:
        trouble.append(f"{' and '.join(name.upper() for name in chosen)}: one of them at a time")
    if given.unit and not _UNIT.fullmatch(given.unit):
        trouble.append(f"UNIT: {given.unit!r} is not the name of a systemd unit, as kubelet")
    if given.pod and not _POD.fullmatch(given.pod):
        trouble.append(f"POD: {given.pod!r} is not a pod's name, as kube-system/coredns")
    phases = (*scripts.NODE_PHASES, *scripts.CLUSTER_PHASES)
    with_log = [name for name in phases if _LOG.search(scripts.whole(name))]
    if given.phase and given.phase not in with_log:
        trouble.append(f"PHASE: {given.phase!r} keeps no log; these do: {', '.join(with_log)}")
    since = _SINCE.fullmatch(given.since or "")
    if given.since and not since:
        trouble.append(f"SINCE: {given.since!r} is not a time back from now, as 15m, 2h or 1d")
    if trouble:
        raise StackError("\n  ".join(trouble))
    return Wanted(
        unit=given.unit or "",
        pod=given.pod or "",
        phase=given.phase or "",
        since_s=int(since[1]) * _SECONDS[since[2]] if since else None,
        follow=given.follow,
    )


def _nodes(found: Stack, given: argparse.Namespace) -> list[Node]:
    """Nodes that are meant, with a machine. Raises StackError where there are none."""
    if given.node:
        found.target(given.node)
        return [found.plan.node(given.node)]
    nodes = [
        node
        for node in found.plan.nodes
        if node.name in found.targets
        and given.pool in (None, node.pool)
        and (given.role is None or given.role in node.roles)
    ]
    if nodes:
        return nodes
    pools = sorted({node.pool for node in found.plan.nodes})
    roles = sorted({role for node in found.plan.nodes for role in node.roles})
    raise StackError(
        f"there is no node of that pool and role\n"
        f"  do: POOL={'|'.join(pools)}, ROLE={'|'.join(roles)}, or NODE=name"
    )


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m operations.logs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    parser.add_argument("--node", help="one node; default: all")
    parser.add_argument("--pool", help="all nodes of this pool")
    parser.add_argument("--role", help="all nodes with this role")
    parser.add_argument("--unit", help="a systemd unit, as kubelet")
    parser.add_argument("--pod", help="[namespace/]name or how it begins, as kube-system/coredns")
    parser.add_argument("--phase", help="what programs of this phase wrote the last time")
    parser.add_argument("--since", help="15m, 2h, 1d; default: the last lines")
    parser.add_argument("--source", choices=("store", "machines"), help="default: who there is")
    parser.add_argument("--follow", action="store_true", help="continue until Ctrl-C")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
