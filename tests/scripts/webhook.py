"""A webhook of a user: it answers as it is told to, and keeps what it was asked and whom it saw."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


def certify(folder: Path, name: str, subject: str, *more: str) -> None:
    """NAME.crt and NAME.key in the folder, signed by its ca.crt; `ca` signs itself."""
    words = ["openssl", "req", "-x509", *_KEY, "-subj", subject, *more]
    if name != "ca":
        words += ["-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key"]
    made = ["-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.crt"]
    subprocess.run([*words, *made], check=True, capture_output=True)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Webhook:
    """Answers with these statuses, the last one forever.

    `asked`: bodies in the order in which they came, each with `caller`, the name in the certificate
    that was shown, and `seen`, what `look` returned before the answer.
    """

    folder: Path
    address: str = "127.0.0.1"
    text: str = "not now"
    answers: list[int] = field(default_factory=lambda: [200])
    look: Callable[[str], object] = lambda node: None
    asked: list[dict[str, object]] = field(default_factory=list)
    port: int = field(default_factory=_free_port)
    _server: ThreadingHTTPServer | None = None

    def __post_init__(self) -> None:
        certify(self.folder, "ca", "/CN=ca")
        where = ("-addext", f"subjectAltName=IP:{self.address}")
        certify(self.folder, "server", "/CN=hooks", *where)

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self.port}/nodes"

    @property
    def ca(self) -> Path:
        """Of its certificate."""
        return self.folder / "ca.crt"

    def start(self, *, callers: Path) -> None:
        """Serve whoever shows a certificate of the CA `callers`."""
        self._server = ThreadingHTTPServer((self.address, self.port), _handler(self))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        context.load_verify_locations(callers)
        context.verify_mode = ssl.CERT_REQUIRED
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def next(self) -> int:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def taken(self, *keys: str) -> list[tuple[object, ...]]:
        """These of each question so far, which are forgotten."""
        out = [tuple(one[key] for key in keys) for one in self.asked]
        self.asked.clear()
        return out


def _handler(hook: Webhook) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            hook.asked.append({**body, "caller": self._caller(), "seen": hook.look(body["node"])})
            self.send_response(hook.next())
            self.end_headers()
            self.wfile.write(hook.text.encode())

        def _caller(self) -> str:
            if not isinstance(self.connection, ssl.SSLSocket):
                raise TypeError("a connection without TLS")
            shown: Any = self.connection.getpeercert()
            names = [
                value for part in shown["subject"] for key, value in part if key == "commonName"
            ]
            return str(names[0])

        def log_message(self, *_: object) -> None:
            pass

    return Handler
