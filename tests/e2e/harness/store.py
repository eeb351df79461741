"""The store of add-on logs in a cluster of a story, and programs that write numbered lines."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from stacks.catalogue.logs import names
from stacks.releases import versions
from tests.e2e.harness import config
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

Labels = dict[str, str]
_MOST = 5000


@dataclass(frozen=True, slots=True)
class Store:
    stack: Stack

    @contextmanager
    def open(self) -> Iterator[str]:
        """URL of it, by `kubectl port-forward`."""
        words = ["-n", names.NAMESPACE, "port-forward", f"pod/{names.POD}", f":{names.STORE_PORT}"]
        kubeconfig = ["--kubeconfig", str(self.stack.kubeconfig())]
        command = [str(ROOT / ".local/bin/kubectl"), *kubeconfig, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as way:  # fmt: skip
            try:
                assert way.stdout is not None
                told = way.stdout.readline()
                found = re.search(r"127\.0\.0\.1:([0-9]+)", told)
                if found is None:
                    raise URLError(f"no way to {names.POD}: {told}")
                yield f"http://127.0.0.1:{found[1]}"
            finally:
                way.terminate()

    def lines(self, query: str, *, back_s: int = 1800) -> list[tuple[Labels, str]]:
        """Labels and text of all that LogQL finds, page by page."""
        with self.open() as url:
            return [(labels, text) for _, labels, text in _all(url, query, back_s)]

    def missing(self, query: str) -> str:
        """Empty once there is a line."""
        try:
            return "" if self.lines(query) else f"nothing of {query}"
        except (OSError, ValueError) as error:
            return str(error)

    def numbers(self, query: str, mark: str) -> list[int]:
        """Those of numbered lines that arrived, as often as they did."""
        pattern = re.compile(rf"{re.escape(mark)} ([0-9]+)")
        texts = (text for _, text in self.lines(query))
        return sorted(int(found[1]) for text in texts if (found := pattern.search(text)))

    def delay_s(self, query: str, write: str, node: str) -> float:
        """Seconds from a line that is written on a node until the store shows it."""
        with self.open() as url:
            begin = time.monotonic()
            self.stack.node(node).run(write)
            wrote = time.monotonic()
            wait_for(query, lambda: "" if _all(url, query, 600) else "nothing", limit_s=30, every_s=0.1)  # fmt: skip
            return time.monotonic() - (begin + wrote) / 2


def writer(name: str, node: str, mark: str, count: int, pause_s: float) -> str:
    """A pod that writes numbered lines on a node, in JSON."""
    image = f"registry.k8s.io/e2e-test-images/agnhost:{versions.for_kubernetes(config.kubernetes()).agnhost}"
    loop = f"n=0; while [ $n -lt {count} ]; do n=$((n+1)); echo {mark} $n; sleep {pause_s}; done"
    container = {"name": "writer", "image": image, "command": ["sh", "-c", loop]}
    pod = {"restartPolicy": "Never", "nodeName": node, "containers": [container]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod})


def unit(mark: str, count: int, pause_s: float) -> str:
    """Bash that starts a unit which writes numbered lines by logger."""
    loop = f"for n in $(seq {count}); do logger {mark} $n; sleep {pause_s}; done"
    return f"systemd-run -q --unit={mark} --collect bash -c '{loop}'"


def _all(url: str, query: str, back_s: int) -> list[tuple[int, Labels, str]]:
    begin, out = time.time_ns() - back_s * 10**9, list[tuple[int, Labels, str]]()
    while True:
        said = {"query": query, "start": begin, "end": time.time_ns() + 10**10, "limit": _MOST, "direction": "forward"}  # fmt: skip
        with urlopen(f"{url}/loki/api/v1/query_range?{urlencode(said)}", timeout=30) as answer:  # noqa: S310
            result = json.load(answer)["data"]["result"]
        found = [(int(at), one["stream"], text) for one in result for at, text, *_ in one["values"]]
        found.sort(key=lambda line: line[0])
        out += [line for line in found if line not in out[-_MOST:]]
        if len(found) < _MOST:
            return out
        begin = found[-1][0]
