"""Requests from a worker to the API, one after another on new connections."""

from __future__ import annotations

import itertools
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.harness import lab
from tests.e2e.harness.node import Node
from tests.e2e.harness.waiting import wait_for

# Reads and writes of a real object with the kubelet's identity, which may do that to its own Node.
# One line each: kind, start and end in ms of the epoch, HTTP status (000: no answer).
_LOOP = r"""
stop=/run/probe-$door.stop
rm -f "$stop"
key=/var/lib/kubelet/pki/kubelet-client-current.pem
url=https://$door/api/v1/nodes/$(hostname)
ask() { curl -s -o /dev/null -w '%{http_code}' --max-time 10 --cacert /etc/kube-ha/ca.crt --cert $key --key $key "$@" "$url"; }
loop() {
  kind=$1; shift
  while [ ! -e "$stop" ]; do
    start=$(date +%s%3N)
    code=$(ask "$@" -H "X-Probe: $start")
    printf '%s %s %s %s\n' "$kind" "$start" "$(date +%s%3N)" "$code"
    sleep 0.1
  done
}
write() {
  loop write -X PATCH -H 'Content-Type: application/merge-patch+json' \
    -d '{"metadata":{"annotations":{"test.kube-ha.io/probe":"'$RANDOM'"}}}'
}
loop read & write & wait
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a client felt."""

    requests: int
    failed: int
    failed_twice: int  # the next one, 0.1 s later, failed as well: a retry would not have helped
    longest_gap_ms: int  # between two answers that were good

    def __str__(self) -> str:
        return f"{self.failed} of {self.requests} failed, longest gap {self.longest_gap_ms} ms"


class Probe:
    """Use as a context: requests run until its end; then `seen` tells.

    They go to `door`: as a rule the node's own HAProxy.
    """

    def __init__(self, node: Node, file: Path, *, door: str = "127.0.0.1:3446") -> None:
        self._node = node
        self._door = door
        self._file = file
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Probe:
        command = lab.engine_command(
            "exec", self._node.container, "bash", "-c", f"door={self._door}\n{_LOOP}"
        )
        with self._file.open("wb") as output:
            self._process = subprocess.Popen(
                command, cwd=lab.ROOT, stdin=subprocess.DEVNULL, stdout=output
            )
        wait_for("first answers", lambda: "" if self._good() else "none yet", limit_s=30)
        return self

    def __exit__(self, *_: object) -> None:
        self._node.asked(f"touch /run/probe-{self._door}.stop")
        if self._process is not None:
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def seen(self, kind: str) -> Seen:
        """Of all requests of that kind (read, write)."""
        rows = [row for row in self._rows() if row[0] == kind]
        good = [code == "200" for *_, code in rows]
        ends = [int(end) for _, _, end, code in rows if code == "200"]
        gaps = [later - earlier for earlier, later in itertools.pairwise(ends)]
        return Seen(
            requests=len(rows),
            failed=good.count(False),
            failed_twice=sum(
                not one and not next_one for one, next_one in itertools.pairwise(good)
            ),
            longest_gap_ms=max(gaps, default=0),
        )

    def _good(self) -> bool:
        return {row[0] for row in self._rows() if row[3] == "200"} == {"read", "write"}

    def _rows(self) -> list[list[str]]:
        rows = [line.split() for line in self._file.read_text().splitlines()]
        return [row for row in rows if len(row) == 4]
