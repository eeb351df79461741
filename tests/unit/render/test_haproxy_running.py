"""A real HAProxy with the rendered config, in front of small TLS servers that play API servers."""

from __future__ import annotations

import gc
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from stacks.render import haproxy
from tests.unit.render.examples import lab, local_api, program
from tests.unit.render.haproxy_process import for_anybody, free_port, until_open

pytestmark = pytest.mark.slow


class Connection(ssl.SSLSocket):
    """A TLS connection that is closed too when the other end was gone before the handshake.

    SSLSocket leaves it open then: it looks for the other end outside of what it cleans up after.
    """

    def getpeername(self) -> object:
        try:
            return super().getpeername()
        except OSError:
            self.close()
            raise


class TlsServer(ThreadingHTTPServer):
    """TLS begins in a connection's own thread: a slow client holds up no other."""

    request_queue_size = 128  # with the few of the default, clients wait a second to be let in

    def __init__(self, handler: type[BaseHTTPRequestHandler], certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.sslsocket_class = Connection
        self._context.load_cert_chain(certificate)

    def finish_request(self, request: object, client_address: object) -> None:
        assert isinstance(request, socket.socket)
        try:
            with self._context.wrap_socket(request, server_side=True) as connection:
                super().finish_request(connection, client_address)
        except OSError:
            pass  # clients come and go as they like


class ApiServer:
    """Answers /readyz as told and everything else with its name."""

    def __init__(self, name: str, certificate: Path) -> None:
        self.ready = True
        this = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                ready = this.ready or self.path != "/readyz"
                body = name.encode()
                self.send_response(200 if ready else 500)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = TlsServer(Handler, certificate)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.port = self._http.server_address[1]

    def die(self) -> None:
        self._http.shutdown()
        self._http.server_close()


class Door:
    """The node's way to the API."""

    def __init__(self, port: int, log: Path) -> None:
        self._port = port
        self._log = log

    def ask(self) -> str:
        """Name of the master that answers a new connection. Raises OSError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.sslsocket_class = Connection
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = HTTPSConnection("127.0.0.1", self._port, timeout=10, context=context)
        try:
            connection.request("GET", "/api")
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def answers(self, *, retries: int = 0) -> set[str]:
        return {self._ask_again(retries) for _ in range(40)}

    def _ask_again(self, retries: int) -> str:
        for _ in range(retries):
            try:
                return self.ask()
            except OSError:
                continue
        return self.ask()

    def wait_for(self, wanted: set[str], *, within_s: float) -> None:
        end = time.monotonic() + within_s
        while (seen := self.answers()) != wanted:
            assert time.monotonic() < end, f"wanted {wanted} within {within_s} s, saw {seen}"

    def wait_until_down(self, names: Iterable[str], *, within_s: float) -> None:
        """Until HAProxy has said of each that its health check failed."""
        end = time.monotonic() + within_s
        while missing := [name for name in names if f"{name} is DOWN" not in self._log.read_text()]:
            assert time.monotonic() < end, f"{missing} not down within {within_s} s"
            time.sleep(0.1)


Cluster = tuple[Door, dict[str, ApiServer]]
Start = Callable[..., Cluster]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts HAProxy, as on a worker or with the given text, and three masters whose certificate
    holds the given name.
    """
    running: list[subprocess.Popen[bytes]] = []
    masters: dict[str, ApiServer] = {}

    def begin(certificate_name: str, text: str = "") -> Cluster:
        ca, leaf = _certificates(tmp_path, certificate_name)
        masters.update({f"master-{n}": ApiServer(f"master-{n}", leaf) for n in (1, 2, 3)})
        port = free_port()
        config = tmp_path / "haproxy.cfg"
        config.write_text(_here(text or local_api(lab()), ca, port, masters))
        log = tmp_path / "haproxy.log"
        command = [program("haproxy", tmp_path), "-db", "-f", str(config)]
        with log.open("wb") as output:
            running.append(subprocess.Popen(command, stderr=output))
        door = Door(port, log)
        until_open(port)
        return door, masters

    yield begin
    for process in running:
        process.kill()
        process.wait()
    for master in masters.values():
        master.die()


def _here(text: str, ca: Path, port: int, masters: dict[str, ApiServer]) -> str:
    """The config with files and addresses of the test, and without what only root may do."""
    text = text.replace("/etc/kube-ha/ca.crt", str(ca)).replace(":3446", f":{port}")
    for number, master in enumerate(masters.values(), start=1):
        text = text.replace(f"10.92.0.1{number}:6443", f"127.0.0.1:{master.port}")
    return for_anybody(text)


def test_all_masters_share_the_work(start: Start) -> None:
    door, masters = start("kubernetes")
    door.wait_for(set(masters), within_s=60)


def test_no_request_fails_when_a_master_dies(start: Start) -> None:
    door, masters = start("kubernetes")
    door.wait_for(set(masters), within_s=60)
    masters.pop("master-2").die()
    # From the first moment on, long before a health check can know. What the dying server had
    # accepted may be cut: one retry, as every client of the API does.
    assert door.answers(retries=1) == {"master-1", "master-3"}


def test_a_draining_master_gets_no_new_connections(start: Start) -> None:
    # The limits are for a busy computer; how long HAProxy takes follows from its config.
    door, masters = start("kubernetes")
    door.wait_for(set(masters), within_s=60)
    masters["master-1"].ready = False
    door.wait_for({"master-2", "master-3"}, within_s=60)
    masters["master-1"].ready = True
    door.wait_for(set(masters), within_s=60)


def of_master(size: int = 100) -> str:
    """haproxy.cfg of master-2."""
    plan = lab(sizing={"nodes": size})
    return haproxy.local_api(plan, plan.node("master-2"))


def test_on_a_master_its_own_api_server_answers_and_no_other(start: Start) -> None:
    door, _ = start("kubernetes", of_master())
    assert door.answers() == {"master-2"}


def test_others_answer_while_a_masters_own_api_server_is_not_ready(start: Start) -> None:
    door, masters = start("kubernetes", of_master())
    masters["master-2"].ready = False
    door.wait_for({"master-1", "master-3"}, within_s=60)
    masters["master-2"].ready = True
    door.wait_for({"master-2"}, within_s=60)


def test_others_answer_from_the_moment_a_masters_own_api_server_dies(start: Start) -> None:
    """Every try after the first asks another one, whatever the checks know by then."""
    door, masters = start("kubernetes", of_master())
    assert door.answers() == {"master-2"}
    masters.pop("master-2").die()
    assert door.answers(retries=1) == {"master-1", "master-3"}


def test_a_master_whose_checks_are_all_wrong_keeps_the_api(start: Start) -> None:
    door, masters = start("another-name", of_master())
    door.wait_until_down(masters, within_s=60)
    assert door.answers() == set(masters)


def test_a_connection_that_fails_is_noticed_long_before_the_next_check(start: Start) -> None:
    """With a minute between checks; without `observe` it would take as long."""
    slow = of_master(1000).replace(" inter 5s ", " inter 60s ")
    door, masters = start("kubernetes", slow)
    assert door.answers() == {"master-2"}
    masters.pop("master-2").die()
    door.answers(retries=1)
    door.wait_until_down(["master-2"], within_s=15)


def test_a_health_check_that_is_wrong_about_all_masters_does_not_take_the_api_away(
    start: Start,
) -> None:
    """Wrong, for instance, because certificates expired or the clock of this node is off."""
    door, masters = start("another-name")
    door.wait_until_down(masters, within_s=60)
    assert door.answers() == set(masters)


def test_a_client_that_is_gone_before_the_handshake_leaves_nothing_open(tmp_path: Path) -> None:
    """What HAProxy's health checks do on a busy computer."""
    master = ApiServer("master-1", _certificates(tmp_path, "kubernetes")[1])
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", master.port)) as client:
            # No time for what is left to say: the other end gets a reset.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    door = Door(master.port, tmp_path / "none")
    assert door.answers() == {"master-1"}
    master.die()
    gc.collect()


def _certificates(folder: Path, name: str) -> tuple[Path, Path]:
    """Files: a CA, and a certificate with key that it signed for `name`."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test CA")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    ca_cert = (
        _builder(ca_name, ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    cert = (
        _builder(ca_name, subject, key.public_key())
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "ca.crt").write_bytes(ca_cert.public_bytes(pem))
    (folder / "leaf.pem").write_bytes(cert.public_bytes(pem) + private)
    return folder / "ca.crt", folder / "leaf.pem"


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer,
        subject,
        key,
        x509.random_serial_number(),
        now - timedelta(hours=1),
        now + timedelta(days=1),
    )
