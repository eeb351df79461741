"""Runs upstream's test program, several of its processes at a time, by ginkgo."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from operations.engine.engine import StackError

REPORT = "report.json"
LOG = "run.log"
_SAY_EVERY_S = 60
_LOOK_S = 0.5
_LIST_LIMIT_S = 120
# After its own limit ginkgo ends specs and removes their namespaces.
_GRACE_S = 300
_NAME = re.compile(r"^ {4}\S+:\d+: (.+)$", re.MULTILINE)
# Lines of the log: one for each spec that ended.
_ENDED = re.compile(rb"^\xe2\x80\xa2 \[", re.MULTILINE)
_FAILED = re.compile(rb"^\xe2\x80\xa2 \[(FAILED|PANICKED|TIMEDOUT|INTERRUPTED)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The programs of one version, and where a run keeps its files."""

    program: Path  # e2e.test
    ginkgo: Path
    kubectl: Path
    kubeconfig: Path
    folder: Path

    def specs(self) -> list[str]:
        """Names of all specs that there are. Raises StackError."""
        return _NAME.findall(self._listed("--list-tests"))

    def images(self) -> list[str]:
        """References of all images that specs use. Raises StackError."""
        return sorted({*self._listed("--list-images").split()})

    def run(
        self, *, focus: str, skip: Sequence[str], at_once: int, unready: int, limit_s: int
    ) -> int:
        """Run them to their end, or to the limit; ginkgo's exit code. Says how far it is."""
        command = [
            str(self.ginkgo), "run", f"--procs={at_once}", "--no-color", "-v", "--silence-skips",
            f"--timeout={limit_s}s", f"--output-dir={self.folder}", f"--json-report={REPORT}",
            f"--focus={focus}", *(f"--skip={word}" for word in skip), str(self.program), "--",
            f"--kubeconfig={self.kubeconfig}", f"--kubectl-path={self.kubectl}",
            "--provider=skeleton", f"--e2e-output-dir={self.folder}",
            *([f"--allowed-not-ready-nodes={unready}"] if unready else []),
        ]  # fmt: skip
        with (self.folder / LOG).open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env=_environment(), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, process_group=0,
            )  # fmt: skip
            try:
                return self._wait(process, limit_s + _GRACE_S)
            except BaseException:
                # Ctrl-C, or the end of what started this: it removes its namespaces.
                print("interrupted: waiting for the specs that run", flush=True)
                _end(process)
                raise

    def _wait(self, process: subprocess.Popen[bytes], limit_s: float) -> int:
        start = said = time.monotonic()
        while (code := process.poll()) is None:
            now = time.monotonic()
            if now - start > limit_s:
                _end(process)
                return 1
            if now - said >= _SAY_EVERY_S:
                said = now
                text = (self.folder / LOG).read_bytes()
                ended, failed = len(_ENDED.findall(text)), len(_FAILED.findall(text))
                minutes = (now - start) / 60
                print(f"{minutes:.0f} min: {ended} specs ended, {failed} failed", flush=True)
            time.sleep(_LOOK_S)
        return code

    def _listed(self, option: str) -> str:
        done = subprocess.run(
            [str(self.program), option, f"--kubeconfig={self.kubeconfig}"],
            cwd=self.folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIST_LIMIT_S,
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise StackError(f"e2e.test {option} ended with {done.returncode}: {last}")
        return done.stdout


def _environment() -> dict[str, str]:
    """Without what would let it talk to another cluster."""
    return {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}


def _end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
