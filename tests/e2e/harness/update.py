"""One run of the engine: started, perhaps killed or interrupted, ended; and what it changed."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.harness.lab import ROOT

log = logging.getLogger("e2e")

_QUIET = frozenset({"same", "read", "discard", "read-discard", "remove-pending-replace"})


class Update:
    """`pulumi <verb>` under way or over. `log` holds what a person would see, `events` the engine's own log."""

    def __init__(
        self, words: list[str], env: Mapping[str, str], log_file: Path, *, checkout: Path = ROOT
    ) -> None:
        self.words = words
        self.log = log_file
        self.events = log_file.with_suffix(".events")
        self.ssh_log = log_file.with_suffix(".ssh")  # written by the stand-in plugin alone
        self.seconds = 0.0
        self._started = time.monotonic()
        self.events.touch()
        with log_file.open("wb") as output:
            # A group of its own, so that Ctrl-C can be sent as a terminal sends it.
            self._process = subprocess.Popen(
                ["pulumi", *words, "--event-log", str(self.events)],
                cwd=checkout,
                env={**env, "KUBE_HA_CONNECTION_LOG": str(self.ssh_log)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def end(self, *, limit_s: float = 900) -> int:
        """Exit code. Raises AssertionError when it does not end in time."""
        try:
            code = self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.stop()
            raise AssertionError(
                f"pulumi {self.words[0]} did not end within {limit_s:.0f} s\n{self.tail()}"
            ) from None
        self.seconds = time.monotonic() - self._started
        log.info(
            "pulumi %s: exit %d in %.1f s, %s",
            self.words[0],
            code,
            self.seconds,
            self._summary() or "nothing changed",
        )
        return code

    def stop(self) -> None:
        """End it whatever it does: the group, which are processes of this update alone."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def sigkill(self) -> None:
        """Kill the engine alone, as an out-of-memory killer would: its plugins become orphans."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def interrupt(self) -> None:
        """Ctrl-C, which a terminal sends to every process of the group."""
        os.killpg(self._process.pid, signal.SIGINT)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def tail(self, lines: int = 60) -> str:
        """What went wrong, else its last words, for the message of a failed test."""
        _, mark, told = self.output.rpartition("\nDiagnostics:\n")
        if mark:
            return told.partition("\nOutputs:\n")[0]
        return "\n".join(self.output.splitlines()[-lines:])

    @property
    def changes(self) -> dict[str, str]:
        """Operation by resource name, of everything that did not stay the same."""
        out: dict[str, str] = {}
        for event in self._events():
            step = event.get("resourcePreEvent")
            if isinstance(step, dict):
                name, operation = _step(step)
                # Components have an event at their start and one at their end.
                if operation not in _QUIET and operation not in out.get(name, "").split(", "):
                    out[name] = f"{out[name]}, {operation}" if name in out else operation
        return out

    @property
    def ssh_connections(self) -> list[str]:
        """Lines `time address resource` of SSH connections that were opened."""
        return self.ssh_log.read_text().splitlines() if self.ssh_log.exists() else []

    def has_begun(self, name: str) -> bool:
        """Whether the engine is at, or past, the step of the resource of that name."""
        return name in self.changes

    def durations(self) -> dict[str, tuple[int, int]]:
        """First and last second (of the epoch) of each changed resource."""
        out: dict[str, tuple[int, int]] = {}
        for event in self._events():
            stamp = event.get("timestamp")
            for key in ("resourcePreEvent", "resOutputsEvent"):
                step = event.get(key)
                if isinstance(step, dict) and isinstance(stamp, int):
                    name, operation = _step(step)
                    if operation not in _QUIET:
                        out[name] = (out.get(name, (stamp, stamp))[0], stamp)
        return out

    def _events(self) -> list[dict[str, object]]:
        """Events so far; the last line may be cut off while the engine runs or after it was killed."""
        out: list[dict[str, object]] = []
        with self.events.open(errors="replace") as lines:
            for line in lines:
                # Most lines are debug diagnostics; parsing them all takes seconds.
                if '"resourcePreEvent"' not in line and '"resOutputsEvent"' not in line:
                    continue
                try:
                    event: dict[str, object] = json.loads(line)
                except ValueError:
                    continue
                out.append(event)
        return out

    def _summary(self) -> str:
        counts: dict[str, int] = {}
        for operation in self.changes.values():
            counts[operation] = counts.get(operation, 0) + 1
        return ", ".join(f"{count} {operation}" for operation, count in sorted(counts.items()))


def _step(event: Mapping[str, object]) -> tuple[str, str]:
    """Resource name and operation of a step's event."""
    metadata = event.get("metadata")
    if not isinstance(metadata, dict):
        return "", "same"
    return str(metadata.get("urn")).rpartition("::")[2], str(metadata.get("op"))
