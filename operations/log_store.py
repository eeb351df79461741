"""The store of add-on logs, asked by `make logs`: one way to its pod, and pages of lines.

Loki listens in its pod alone, so the way is `kubectl port-forward` by the rights of the stack's
administrator. What follows a log asks again: collectors send within a second or two, each in its
own time.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from operations.engine import kubectl as kubectls
from operations.engine import sealing
from operations.engine.engine import StackError
from operations.engine.kubectl import Kubectl
from operations.engine.stack import Stack
from operations.holding import started
from operations.ssh import client
from stacks.catalogue import registry
from stacks.catalogue.logs import addon, names
from stacks.cluster.plan import Plan

LINES = 200  # of each node, without a time to begin at
_PAGE = 5000  # lines, as many as Loki gives at once
_BACK_S = 86400  # where the last lines are looked for
_LATE_S = 20  # by which a line may come behind others
_PAUSE_S = 1.0  # before what follows asks again
_OPEN_S = 20
_ANSWER_S = 60
_NS = 10**9
_FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:([0-9]+) ->")


class AwayError(Exception):
    """The store does not answer, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    nodes: tuple[str, ...]  # names; empty: all
    each: int  # how many nodes those are
    unit: str = ""
    pod: str = ""  # [namespace/]how its name begins
    since_s: int | None = None  # seconds back from now; None: the last lines
    follow: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Line:
    at_ns: int
    node: str
    who: str  # unit, or pod and container
    text: str

    def __str__(self) -> str:
        at = datetime.fromtimestamp(self.at_ns / _NS, UTC).isoformat(timespec="milliseconds")
        return f"{at} {self.who}: {self.text}"


def is_there(plan: Plan) -> bool:
    """Whether the config has a store that this can speak with."""
    return addon.NAME in registry.chosen(plan.spec) and not plan.spec.addons[addon.NAME].endpoint


def show(found: Stack, question: Question) -> int:
    """Print lines by their time, each behind its node's name where there are several.

    Raises AwayError before the first line where the store does not answer.
    """
    with opened(found) as url:
        empty = True
        try:
            for line in lines(url, question):
                empty = False
                prefix = "" if question.each == 1 else f"{line.node}  "
                for part in line.text.splitlines() or [""]:
                    shown = Line(line.at_ns, line.node, line.who, part)
                    print(client.plain(f"{prefix}{shown}"), flush=question.follow)
        except AwayError as error:
            if empty:
                raise
            sys.stderr.write(f"ERROR the store of logs does not answer any more: {error}\n")
            return 1
        if empty:
            sys.stderr.write("the store has no such lines\n")
    return 0


def selector(question: Question) -> str:
    """LogQL that finds them."""
    found = []
    if question.nodes:
        found.append((names.NODE, "=~", "|".join(map(re.escape, question.nodes))))
    if question.pod:
        namespace, slash, name = question.pod.rpartition("/")
        found += [(names.POD_NAMESPACE, "=", namespace)] if slash else []
        found.append((names.POD_NAME, "=~", f"{re.escape(name)}.*"))
    else:
        found.append((names.LOG, "=", "journal"))
    if question.unit:
        unit = question.unit
        whole = unit if "." in unit or unit in ("kernel", "other") else f"{unit}.service"
        found.append((names.UNIT, "=", whole))
    return ", ".join(f"{names.label(name)}{how}{json.dumps(what)}" for name, how, what in found)


def lines(url: str, question: Question) -> Iterator[Line]:
    """From the first on; without an end where they are followed."""
    query, now = f"{{{selector(question)}}}", time.time_ns()
    newest, seen = now - _LATE_S * _NS, set[Line]()
    begin = now - (question.since_s or _BACK_S) * _NS
    if question.since_s is None:
        most = min(_PAGE, LINES * question.each)
        first = iter(sorted(page(url, query, begin, now, most, "backward")))
    else:
        first = _all(url, query, begin, now)
    for line in first:
        newest = max(newest, line.at_ns)
        seen.add(line)
        yield line
    while question.follow:
        time.sleep(_PAUSE_S)
        begin = newest - _LATE_S * _NS
        for line in _all(url, query, begin, time.time_ns()):
            if line not in seen:
                newest = max(newest, line.at_ns)
                seen.add(line)
                yield line
        seen = {line for line in seen if line.at_ns >= newest - 2 * _LATE_S * _NS}


def _all(url: str, query: str, begin: int, end: int) -> Iterator[Line]:
    """Page by page. Lines of the last moment of one begin the next one."""
    last: set[Line] = set()
    while True:
        found = sorted(page(url, query, begin, end, _PAGE, "forward"))
        yield from (line for line in found if line not in last)
        if len(found) < _PAGE:
            return
        begin = found[-1].at_ns
        if begin == found[0].at_ns:
            begin += 1  # more in one moment than it gives
        last = {line for line in found if line.at_ns == begin}


def page(url: str, query: str, begin: int, end: int, most: int, way: str) -> list[Line]:
    """At most so many lines from `begin` (ns) until before `end`. Raises AwayError."""
    said = {"query": query, "start": begin, "end": end, "limit": most, "direction": way}
    asked = f"{url}/loki/api/v1/query_range?{urllib.parse.urlencode(said)}"
    try:
        with urllib.request.urlopen(asked, timeout=_ANSWER_S) as answer:  # noqa: S310 - http alone
            found = json.load(answer)["data"]["result"]
        return [
            _line(stream["stream"], int(at), str(text))
            for stream in found
            for at, text, *_ in stream["values"]
        ]
    except urllib.error.HTTPError as error:
        told = error.read(300).decode(errors="replace")
        raise AwayError(f"HTTP {error.code}: {_first(told)}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AwayError(str(error) or type(error).__name__) from None


def _line(labels: dict[str, str], at_ns: int, text: str) -> Line:
    def of(attribute: str) -> str:
        return str(labels.get(names.label(attribute), ""))

    pod = f"{of(names.POD_NAMESPACE)}/{of(names.POD_NAME)}/{of(names.CONTAINER)}"
    who = pod if of(names.POD_NAME) else of(names.UNIT) or of(names.LOG)
    if who == "other":
        who = labels.get("syslog_identifier", who)
    return Line(at_ns, of(names.NODE), who, text)


@contextmanager
def opened(found: Stack) -> Iterator[str]:
    """URL of the store, while the way to it is held. Raises AwayError."""
    if not found.kubeconfig:
        raise AwayError("the stack was never applied to its end")
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        kubeconfig = sealing.put(Path(folder) / "kubeconfig", found.kubeconfig.encode())
        try:
            asked = Kubectl(program=kubectls.program(), kubeconfig=kubeconfig)
        except StackError as error:
            raise AwayError(str(error).splitlines()[0]) from None
        words = ("--namespace", names.NAMESPACE, "port-forward", f"pod/{names.POD}")
        command = asked.command(*words, f":{names.STORE_PORT}")
        with started(command) as (process, told):
            yield f"http://127.0.0.1:{_port(process, told)}"


def _port(process: subprocess.Popen[bytes], told: IO[str]) -> int:
    """The port of this computer that kubectl has taken. Raises AwayError."""
    end, text = time.monotonic() + _OPEN_S, ""
    while time.monotonic() < end:
        ended = process.poll() is not None
        told.seek(0)
        text = told.read()
        if port := _FORWARDING.search(text):
            return int(port[1])
        if ended:
            break
        time.sleep(0.05)
    raise AwayError(_first(text) if text else "no answer of the API")


def _first(text: str) -> str:
    return client.plain((text.strip().splitlines() or ["no answer"])[0])


def of_nodes(chosen: Sequence[str], every: Sequence[str]) -> tuple[str, ...]:
    """Names to ask for; none where all are meant."""
    return () if set(chosen) == set(every) else tuple(chosen)
