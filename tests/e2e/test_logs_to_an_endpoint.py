"""Story: logs to a store of the user's: with his header, by his certificate, and kept on the nodes while it refuses for a time."""

from __future__ import annotations

import gzip
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.e2e.harness import config, versions
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-log-endpoint"
SUBNET = "10.93.141.0/24"
HERE = "10.93.141.1"  # this computer, as machines of the lab see it
PORT = 24318
HEADER = "Basic dXNlcjpzZWNyZXQ="


class Endpoint(BaseHTTPRequestHandler):
    """Takes what it is sent, as OTLP has it; reads texts alone."""

    taken: ClassVar[list[bytes]] = []
    headers_seen: ClassVar[set[tuple[str, str]]] = set()
    status: ClassVar[int] = 200

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        self.headers_seen.add((self.path, self.headers.get("Authorization", "")))
        if self.status == 200:
            self.taken.append(gzip.decompress(sent))
        self.send_response(self.status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        del format, args


def wanted() -> config.Config:
    made = config.lab(NAME, SUBNET, masters=1, workers=1)
    return versions.with_logs(made, SUBNET)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its key and certificate in one file, of a CA that nobody knows."""
    file = tmp_path_factory.mktemp("endpoint") / "both.pem"
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    words = ("-subj", "/CN=logs", "-addext", f"subjectAltName=IP:{HERE}", "-days", "2")
    out = ("-keyout", str(file), "-out", str(file.with_suffix(".crt")))
    subprocess.run(["openssl", "req", *kind, *words, *out], check=True, capture_output=True)
    file.write_text(file.read_text() + file.with_suffix(".crt").read_text())
    return file


@pytest.fixture(scope="module")
def endpoint(stack: Stack, certificate: Path) -> Iterator[None]:
    """It serves; nodes trust it, and the cluster has the header."""
    server = ThreadingHTTPServer(("0.0.0.0", PORT), Endpoint)  # noqa: S104 - machines ask it
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)  # fmt: skip
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield
    server.shutdown()
    thread.join()
    server.server_close()


def test_lines_arrive_with_the_header_by_a_certificate_that_the_node_trusts(
    stack: Stack, endpoint: None, certificate: Path
) -> None:
    stack.up()
    for node in stack.nodes():
        node.put("/usr/local/share/ca-certificates/logs.crt", certificate.with_suffix(".crt").read_text())  # fmt: skip
        node.run("chmod 644 /usr/local/share/ca-certificates/logs.crt; update-ca-certificates")
    words = ["create", "secret", "generic", "log-header", f"--from-literal=authorization={HEADER}"]
    stack.kubectl("-n", "kube-system", *words)
    said = {"endpoint": f"https://{HERE}:{PORT}/otlp", "secret": "log-header"}
    stack.config["addons"] = {"logs": dict(said)}
    stack.write()
    stack.up()
    stack.node("worker-1").run("logger to-the-endpoint")
    wait_for("the line", lambda: untaken("to-the-endpoint"), limit_s=60)
    assert Endpoint.headers_seen == {("/otlp/v1/logs", HEADER)}
    for name in ("master-1", "worker-1"):
        wait_for(name, lambda n=name: untaken(n), limit_s=60)  # type: ignore[misc]
    assert stack.up().changes == {}


def test_what_it_refuses_for_a_time_waits_on_the_node(stack: Stack, endpoint: None) -> None:
    Endpoint.status = 503
    stack.node("worker-1").run("for n in $(seq 200); do logger waits-$n.; done")
    stack.node("worker-1").run("pkill -9 -x otelcol-contrib")
    Endpoint.status = 200
    for number in range(1, 201):
        wait_for(str(number), lambda n=number: untaken(f"waits-{n}."), limit_s=90)  # type: ignore[misc]


def test_neither_state_nor_config_has_the_header(stack: Stack) -> None:
    assert HEADER not in stack.file.read_text()
    for file in (stack.folder / "state").rglob("*.json"):
        assert HEADER not in file.read_text()
    kept = stack.kubectl("-n", "kube-system", "get", "configmap,daemonset", "-o", "yaml")
    assert HEADER not in kept


def untaken(text: str) -> str:
    return "" if any(text.encode() in one for one in Endpoint.taken) else f"{text} was not sent"
