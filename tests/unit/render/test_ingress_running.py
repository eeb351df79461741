"""The ingress tier as systemd runs it: real TLS clients before it, small web servers as NodePorts behind it."""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from stacks.render.ingress import config
from tests.unit.render.examples import lab, program
from tests.unit.render.haproxy_process import Clients, for_anybody, free_port, until_open

pytestmark = pytest.mark.slow

SHOP, BLOG = "shop.example.com", "blog.example.com"
WORKERS = 3


class Web:
    """A node's NodePort: tells its name, and what it was asked for."""

    def __init__(self, name: str) -> None:
        web = self
        self.heard: list[tuple[str, str]] = []  # headers of the last request

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                web.heard = self.headers.items()
                words = [name, self.headers["Host"], self.headers["X-Forwarded-Proto"] or "-"]
                body = " ".join([*words, self.headers["X-Forwarded-For"] or "-"]).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 128
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # health checks come and go as they like

        self._http = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.port = self._http.server_address[1]

    def die(self) -> None:
        self._http.shutdown()
        self._http.server_close()


class Authority:
    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test CA")])
        self.cert = self._signed(self._name, self._key.public_key(), ca=True)
        self._serial = 100

    def pem(self, host: str) -> bytes:
        """A new certificate of this host with its key, as HAProxy takes them."""
        key = ec.generate_private_key(ec.SECP256R1())
        cert = self._signed(x509.Name([]), key.public_key(), host=host)
        return cert + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        host: str = "",
        ca: bool = False,
    ) -> bytes:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            self._name, subject, key, x509.random_serial_number()
        ).add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        if host:
            names = x509.SubjectAlternativeName([x509.DNSName(host)])
            builder = builder.add_extension(names, critical=not subject.rdns)
        builder = builder.not_valid_before(now - timedelta(hours=1))
        signed = builder.not_valid_after(now + timedelta(days=1)).sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)


@dataclass
class Tier:
    folder: Path
    authority: Authority
    http: int
    https: int
    workers: dict[str, Web]
    process: subprocess.Popen[bytes]

    @property
    def pems(self) -> Path:
        return self.folder / "pems"

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.authority.cert.decode())

    @contextmanager
    def _connected(self, host: str) -> Iterator[ssl.SSLSocket]:
        with (
            socket.create_connection(("127.0.0.1", self.https), timeout=10) as raw,
            self.context().wrap_socket(raw, server_hostname=host) as connection,
        ):
            yield connection

    def ask(self, host: str, verb: str = "GET", more: str = "") -> list[str]:
        """Words of the answer to a TLS client that checks the certificate's name. Raises OSError."""
        with self._connected(host) as connection:
            request = f"{verb} / HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n"
            connection.sendall(request.encode())
            answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        head, _, body = answer.partition("\r\n\r\n")
        if " 200 " not in head.splitlines()[0] + " ":
            raise OSError(head.splitlines()[0])
        return body.split()

    def serial(self, host: str) -> int:
        """Number of the certificate that is shown for this host."""
        with self._connected(host) as connection:
            found = connection.getpeercert(binary_form=True)
        assert found is not None
        return x509.load_der_x509_certificate(found).serial_number

    def reload(self) -> None:
        self.process.send_signal(signal.SIGUSR2)


def _clients(tier: Tier) -> Clients:
    """Ask for both hosts on new TLS connections."""
    return Clients([partial(tier.ask, host) for host in (SHOP, BLOG, SHOP, BLOG)])


@pytest.fixture
def tier(tmp_path: Path) -> Iterator[Tier]:
    yield from _tier(tmp_path)


def _tier(folder: Path, **more: object) -> Iterator[Tier]:
    authority = Authority()
    pems = folder / "pems"
    pems.mkdir()
    (pems / "own.pem").write_bytes(authority.pem(SHOP))
    (pems / "given-1.pem").write_bytes(authority.pem(BLOG))
    workers = {f"worker-{n}": Web(f"worker-{n}") for n in range(1, WORKERS + 1)}
    http, https = free_port(), free_port()
    doors = {"vip": {"address": "10.92.0.5"}, "ingress": {"hosts": [SHOP], **more}}
    text = config(lab(workers=WORKERS, frontDoors=doors))
    text = text.replace("10.92.0.5:443 transparent", f"127.0.0.1:{https}")
    text = text.replace("10.92.0.5:80 transparent", f"127.0.0.1:{http}")
    text = text.replace("/etc/kube-ha/ingress/", f"{pems}/")
    for number, web in enumerate(workers.values(), start=1):
        text = text.replace(f"10.92.0.10{number}:30080", f"127.0.0.1:{web.port}")
    file = folder / "ingress.cfg"
    file.write_text(for_anybody(text))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program("haproxy", folder), "-W", "-f", str(file)], stderr=log)
    try:
        until_open(https)
        yield Tier(folder, authority, http, https, workers, process)
    finally:
        process.terminate()
        process.wait(30)
        for web in workers.values():
            web.die()


def test_every_host_has_its_certificate_and_the_controller_learns_who_asks(tier: Tier) -> None:
    for host in (SHOP, BLOG):
        worker, asked_for, proto, client = tier.ask(host)
        assert (worker in tier.workers, asked_for, proto, client) == (
            True,
            host,
            "https",
            "127.0.0.1",
        )
    assert tier.serial(SHOP) != tier.serial(BLOG)
    with pytest.raises(ssl.SSLCertVerificationError):
        tier.ask("stranger.example.com")
    assert {tier.ask(SHOP)[0] for _ in range(30)} == set(tier.workers)


_LIES = (
    *("Forwarded", "X-Forwarded-For", "x-forwarded-for", "X-Forwarded-Host", "X-Forwarded-Port"),
    *("X-Forwarded-Proto", "X-Forwarded-Prefix", "X-Forwarded-Scheme", "X-Forwarded-Server"),
    *("X-Forwarded-Ssl", "X-Original-Forwarded-For", "X-Original-Url", "X-Real-Ip", "X-Scheme"),
    *("X_Forwarded_For", "X_Real_IP", "X_Forwarded_Proto"),
)


def test_what_a_client_says_in_a_proxys_name_reaches_no_controller(tier: Tier) -> None:
    lies = "".join(f"{name}: 10.6.6.6\r\n" for name in (*_LIES, *_LIES))
    worker, *told = tier.ask(SHOP, more=lies)
    assert told == [SHOP, "https", "127.0.0.1"]
    heard = tier.workers[worker].heard
    assert [name for name, text in heard if "10.6.6.6" in text] == []
    assert ("x-forwarded-host", SHOP) in [(name.lower(), text) for name, text in heard]
    connection = HTTPConnection("127.0.0.1", tier.http, timeout=10)
    path = "/.well-known/acme-challenge/x"
    connection.request("GET", path, headers={"Host": SHOP, "X-Forwarded-Proto": "https"})
    assert connection.getresponse().read().split()[1:] == [SHOP.encode(), b"http", b"127.0.0.1"]
    connection.close()


def test_http_leads_to_https_but_for_who_proves_a_name(tier: Tier) -> None:
    connection = HTTPConnection("127.0.0.1", tier.http, timeout=10)
    connection.request("GET", "/cart?a=1", headers={"Host": SHOP})
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Location"]) == (308, f"https://{SHOP}/cart?a=1")
    answer.read()
    connection.request("GET", "/.well-known/acme-challenge/x", headers={"Host": SHOP})
    assert connection.getresponse().status == 200
    connection.close()


def test_http_2_and_nothing_older_than_tls_1_2(tier: Tier) -> None:
    context = tier.context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection(("127.0.0.1", tier.https), timeout=10) as raw,
        context.wrap_socket(raw, server_hostname=SHOP) as connection,
    ):
        assert connection.selected_alpn_protocol() == "h2"
        assert connection.version() == "TLSv1.3"
    curl = shutil.which("curl")
    assert curl
    (tier.folder / "ca").write_bytes(tier.authority.cert)
    words = ["--cacert", str(tier.folder / "ca"), "--resolve", f"{SHOP}:{tier.https}:127.0.0.1"]
    done = subprocess.run(
        [curl, "-sS", "--http2", *words, "-w", " %{http_version}", f"https://{SHOP}:{tier.https}/"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith(" 2")
    old = subprocess.run(
        [curl, "-sS", "--tls-max", "1.1", *words, f"https://{SHOP}:{tier.https}/"],
        capture_output=True,
        check=False,
    )
    assert old.returncode == 35  # no handshake


def test_a_worker_that_dies_under_load_is_felt_by_nobody(tier: Tier) -> None:
    with _clients(tier) as clients:
        clients.wait_for(40)
        tier.workers["worker-2"].die()
        clients.wait_for(200)
    assert clients.failures == []
    assert {tier.ask(SHOP)[0] for _ in range(20)} == {"worker-1", "worker-3"}
    tier.workers["worker-2"] = Web("worker-2")


def test_what_a_node_swallowed_is_asked_of_another_unless_it_may_have_changed_something(
    tier: Tier,
) -> None:
    told: list[bytes] = []
    dead = tier.workers["worker-2"]
    dead.die()
    tier.workers["worker-2"] = _Listener(dead.port, told)  # type: ignore[assignment]
    assert {tier.ask(SHOP)[0] for _ in range(20)} == {"worker-1", "worker-3"}
    assert any(request.startswith(b"GET ") for request in told)

    failures = []
    for _ in range(20):
        try:
            tier.ask(SHOP, "POST")
        except OSError as error:
            failures.append(str(error))
    assert set(failures) == {"HTTP/1.1 502 Bad Gateway"}
    assert len([request for request in told if request.startswith(b"POST ")]) == len(failures)


def test_certificates_are_replaced_under_load(tier: Tier) -> None:
    serial = tier.serial(SHOP)
    with _clients(tier) as clients:
        clients.wait_for(20)
        for _ in range(10):
            (tier.pems / "new").write_bytes(tier.authority.pem(SHOP))
            (tier.pems / "new").rename(tier.pems / "own.pem")
            tier.reload()
            clients.wait_for(20)
        end = time.monotonic() + 20
        while tier.serial(SHOP) == serial:
            assert time.monotonic() < end, "the old certificate is shown still"
            time.sleep(0.2)
    assert clients.failures == []


def test_rubbish_for_a_certificate_leaves_those_that_are_shown(tier: Tier) -> None:
    serial = tier.serial(SHOP)
    (tier.pems / "own.pem").write_text("rubbish")
    with _clients(tier) as clients:
        tier.reload()
        clients.wait_for(40)
    assert clients.failures == []
    assert tier.serial(SHOP) == serial


def test_the_controller_may_be_told_by_proxy_protocol(tmp_path: Path) -> None:
    told: list[bytes] = []
    for tier in _tier(tmp_path, proxyProtocol=True):
        for name, web in tier.workers.items():
            web.die()
            tier.workers[name] = _Listener(web.port, told)  # type: ignore[assignment]
        with pytest.raises(OSError, match="502"):
            tier.ask(SHOP)
    # Version 2, command PROXY, TCP over IPv4; health checks say LOCAL (0x20).
    signature = b"\r\n\r\n\x00\r\nQUIT\n"
    assert [head for head in told if head.startswith(signature + b"\x21\x11")], told


class _Listener:
    """Keeps the first bytes of every connection, and closes it."""

    def __init__(self, port: int, told: list[bytes]) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        self._told = told
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            connection.settimeout(2)
            with suppress(OSError):
                self._told.append(connection.recv(64))
            connection.close()

    def die(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
