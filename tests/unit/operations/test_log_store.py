"""The store of add-on logs: what it is asked, how its answers are put together, and what is said where it is away."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from components.ssh.hop import Hop
from operations import log_store, logs
from operations.engine import stack
from operations.log_store import Question
from operations.ssh.client import Target
from stacks.cluster.resolve import plan
from stacks.load import load
from tests.unit.configs import host_key, lab

S = 10**9
HOP = Hop(address="192.0.2.11", port=22, user="ops", host_key=host_key(1), key="hidden")
KUBECTL = """\
#!{python}
import sys, time
if "pod/logs-store-0" not in sys.argv: sys.exit("error: who is asked?")
if not {port}: sys.exit("error: pod not found")
print("Forwarding from 127.0.0.1:{port} -> 3100", flush=True)
time.sleep(60)
"""


class Loki(BaseHTTPRequestHandler):
    """Its answers to queries, of lines (time in ns, node, unit, text)."""

    lines: ClassVar[list[tuple[int, str, str, str]]] = []
    asked: ClassVar[list[dict[str, str]]] = []
    most: ClassVar[int] = 5000
    status: ClassVar[int] = 200

    def do_GET(self) -> None:
        said = {key: value for key, (value,) in parse_qs(urlsplit(self.path).query).items()}
        self.asked.append(said)
        backward = said["direction"] == "backward"
        found = [line for line in self.lines if int(said["start"]) <= line[0] < int(said["end"])]
        found.sort(reverse=backward)
        streams: dict[tuple[str, str], list[list[str]]] = {}
        for at, node, unit, text in found[: min(int(said["limit"]), self.most)]:
            streams.setdefault((node, unit), []).append([str(at), text])
        result = [
            {"stream": {"k8s_node_name": node, "unit": unit}, "values": values}
            for (node, unit), values in streams.items()
        ]
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(json.dumps({"data": {"result": result}}).encode())

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture
def loki() -> Iterator[str]:
    Loki.lines, Loki.asked, Loki.most, Loki.status = [], [], 5000, 200
    server = ThreadingHTTPServer(("127.0.0.1", 0), Loki)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cluster(loki: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stack with the add-on, whose kubectl leads to that server, and machines that have one line."""
    one = plan(load(lab({"addons": {"logs": {}}})))
    found = stack.Stack(
        plan=one,
        targets={node.name: Target(hop=HOP) for node in one.nodes},
        cluster_id="1",
        kubeconfig="{}",
    )
    monkeypatch.setattr(stack, "read", lambda *_, **__: found)
    kubectl(tmp_path, int(loki.rpartition(":")[2]))
    monkeypatch.setattr("operations.engine.kubectl.program", lambda: tmp_path / "kubectl")
    (tmp_path / "ssh").write_text("#!/bin/bash\necho of the machine\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def kubectl(folder: Path, port: int) -> None:
    (folder / "kubectl").write_text(KUBECTL.format(python=sys.executable, port=port))
    (folder / "kubectl").chmod(0o755)


def test_filters_are_those_of_machines() -> None:
    def of(**said: object) -> str:
        return log_store.selector(replace(Question(nodes=(), each=1), **said))  # type: ignore[arg-type]

    assert of() == 'log="journal"'
    assert of(unit="kubelet") == 'log="journal", unit="kubelet.service"'
    assert of(unit="kernel", nodes=("a-1", "b.c")) == (
        'k8s_node_name=~"a\\\\-1|b\\\\.c", log="journal", unit="kernel"'
    )
    assert of(pod="shop/cart") == 'k8s_namespace_name="shop", k8s_pod_name=~"cart.*"'
    assert of(pod="cart") == 'k8s_pod_name=~"cart.*"'


@pytest.mark.usefixtures("cluster")
def test_lines_of_several_nodes_are_printed_by_their_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = time.time_ns() - 60 * S
    Loki.lines = [
        (now + 2, "master-1", "kubelet.service", "third"),
        (now, "worker-1", "kubelet.service", "first\033[2J"),
        (now + 1, "master-1", "kubelet.service", "second\nof two"),
    ]
    assert logs.main(["dev", "--unit", "kubelet"]) == 0
    told = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(words[0], words[2], *words[3:]) for words in told] == [
        ("worker-1", "kubelet.service:", "first", "[2J"),
        ("master-1", "kubelet.service:", "second"),
        ("master-1", "kubelet.service:", "of", "two"),
        ("master-1", "kubelet.service:", "third"),
    ]
    (asked,) = Loki.asked
    assert asked["query"] == '{log="journal", unit="kubelet.service"}'
    assert asked["direction"] == "backward"


def test_from_a_time_on_all_pages_are_read_and_no_line_twice(
    loki: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns() - 60 * S
    # Pages end within a moment that several lines share.
    Loki.lines = [(now + number // 3, "n", "u", str(number)) for number in range(50)]
    monkeypatch.setattr(log_store, "_PAGE", 7)
    question = Question(nodes=(), each=1, since_s=3600)
    assert [int(line.text) for line in sorted(log_store.lines(loki, question))] == sorted(
        range(50), key=lambda number: (number // 3, str(number))
    )


def test_what_is_followed_comes_once_even_where_it_comes_late(
    loki: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_store, "_PAUSE_S", 0)
    now = time.time_ns()
    Loki.lines = [(now - 5 * S, "a", "u", "1")]
    found = log_store.lines(loki, Question(nodes=(), each=1, follow=True))
    assert next(found).text == "1"
    Loki.lines += [(now - 3 * S, "b", "u", "3"), (now - 4 * S, "a", "u", "2")]
    assert [next(found).text, next(found).text] == ["2", "3"]
    # Of a node that was slower than the others.
    Loki.lines.append((now - 6 * S, "c", "u", "0"))
    assert next(found).text == "0"


def test_where_the_store_is_away_machines_are_asked_unless_it_alone_is_wanted(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubectl(cluster, 0)
    assert logs.main(["dev", "--node", "worker-1"]) == 0
    told = capsys.readouterr()
    assert told.out == "of the machine\n"
    assert (
        told.err == "the store of logs does not answer (error: pod not found): machines are asked\n"
    )
    assert logs.main(["dev", "--node", "worker-1", "--source", "store"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "SOURCE=machines" in told.err
    Loki.status = 503


@pytest.mark.usefixtures("cluster")
def test_what_the_store_does_not_have_is_asked_of_machines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words in (["--phase", "master"], ["--source", "machines"]):
        assert logs.main(["dev", "--node", "master-1", *words]) == 0
        assert capsys.readouterr().out == "of the machine\n"
    assert Loki.asked == []


@pytest.mark.usefixtures("cluster")
def test_an_answer_that_is_none_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    Loki.status = 503
    assert logs.main(["dev", "--node", "worker-1", "--source", "store"]) == 1
    assert "HTTP 503" in capsys.readouterr().err


@pytest.mark.usefixtures("cluster")
def test_no_line_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert logs.main(["dev", "--node", "worker-1"]) == 0
    assert capsys.readouterr().err == "the store has no such lines\n"


def test_only_a_store_in_the_cluster_is_there_to_be_asked() -> None:
    def of(said: dict[str, object] | None) -> bool:
        return log_store.is_there(
            plan(load(lab({"addons": {"logs": said}} if said is not None else {})))
        )

    assert of({})
    assert not of({"endpoint": "https://loki.example.com/otlp"})
    assert not of(None)
