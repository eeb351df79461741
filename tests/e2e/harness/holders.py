"""Which machine has an address at which moment, as the machines themselves saw it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.node import Node
from tests.e2e.harness.waiting import wait_for

_PROGRAM = ROOT / "tests/e2e/harness/clients/holds.sh"
# On a disk: what a machine saw before its power was cut tells too.
_FOLDER = "/var/lib/kube-ha-test-holds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One machine has the address, from its first sight of it to its last."""

    node: str
    start_ms: int  # of the epoch
    end_ms: int


class Holders:
    """Use as a context; `watch` a machine again when it has come back."""

    def __init__(self, nodes: Iterable[Node], address: str) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._address = address
        self._lines: dict[str, str] = {}  # the last that could be read, by name

    def __enter__(self) -> Holders:
        for node in self._nodes.values():
            node.run(f"rm -rf {_FOLDER}")
            self.watch(node)
        return self

    def __exit__(self, *_: object) -> None:
        for node in self._nodes.values():
            node.asked(f"touch {_FOLDER}/stop")

    def watch(self, node: Node) -> None:
        node.put(f"{_FOLDER}/program", _PROGRAM.read_text())
        node.run(f"rm -f {_FOLDER}/stop")
        node.start_program(f"bash {_FOLDER}/program {self._address} {_FOLDER} >>{_FOLDER}/lines")

    def now(self) -> list[str]:
        """Names of those that have it."""
        there = f"ip -o -4 addr show | grep -c ' {self._address}/' || true"
        return [name for name, node in self._nodes.items() if node.asked(there).strip() == "1"]

    def wait_for_one(self, *, but: str = "", limit_s: float = 30) -> str:
        """Name of the only one that has it."""
        found: list[str] = []

        def missing() -> str:
            found[:] = self.now()
            fine = len(found) == 1 and found[0] != but
            return "" if fine else f"{self._address} is on {found or 'nobody'}"

        wait_for("one holder", missing, limit_s=limit_s)
        return found[0]

    def holds(self) -> list[Hold]:
        """By time of their beginning; of a machine that is gone what it had told when this was last asked."""
        for name, node in self._nodes.items():
            self._lines[name] = node.asked(f"cat {_FOLDER}/lines") or self._lines.get(name, "")
        found = [hold for name, text in self._lines.items() for hold in _of_lines(name, text)]
        return sorted(found, key=lambda hold: hold.start_ms)

    def moves(self) -> list[str]:
        """Names in the order in which they got it."""
        return [hold.node for hold in self.holds()]

    def longest_gap_ms(self) -> int:
        """The longest that nobody had it, between the first and the last that had."""
        longest, end = 0, None
        for hold in self.holds():
            if end is not None:
                longest = max(longest, hold.start_ms - end)
            end = max(end or 0, hold.end_ms)
        return longest

    def longest_overlap_ms(self) -> int:
        """The longest that two had it."""
        longest, end = 0, 0
        for hold in self.holds():
            longest = max(longest, min(end, hold.end_ms) - hold.start_ms)
            end = max(end, hold.end_ms)
        return longest


def _of_lines(name: str, text: str) -> list[Hold]:
    holds: list[Hold] = []
    start = last = None
    for line in text.splitlines():
        words = line.split()
        if len(words) != 2:
            continue  # the power was cut while it was written
        at, has = int(words[0]), words[1] == "1"
        if start is not None and last is not None and not has:
            # `begun`: it was dead since the last line, or has not been watched.
            holds.append(Hold(node=name, start_ms=start, end_ms=last))
            start = None
        if has:
            start, last = start or at, at
    if start is not None and last is not None:
        holds.append(Hold(node=name, start_ms=start, end_ms=last))
    return holds
