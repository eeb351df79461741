"""A registry that asks who pulls, before the images of a lab's mirror: a token for a login, as most registries do it."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_TOKEN = "of-who-has-logged-in"
PORT = 5001


@dataclass
class ClosedRegistry:
    """Lets in who logs in with `login`, user:password; `seen` are users that asked for a token, empty without a login."""

    address: str  # of this computer, in the lab
    mirror: str  # address of the lab's mirror
    login: str
    seen: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"{self.address}:{PORT}"

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Once the lab's network is there."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if urlsplit(self.path).path == "/token":
                    outer.token(self)
                elif self.headers.get("Authorization") == f"Bearer {_TOKEN}":
                    outer.image(self)
                else:
                    realm = f'Bearer realm="http://{outer.host}/token",service="closed"'
                    answer(self, 401, b"{}", {"WWW-Authenticate": realm})

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_POST(self) -> None:
                outer.token(self)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer((self.address, PORT), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()

    def token(self, asked: BaseHTTPRequestHandler) -> None:
        """For the login, and for nobody else; containerd sends it in a form."""
        form = parse_qs(asked.rfile.read(int(asked.headers.get("Content-Length", "0"))).decode())
        login = ":".join("".join(form.get(key, [])) for key in ("username", "password"))
        self.seen.append(login.partition(":")[0])
        if login == self.login:
            answer(asked, 200, json.dumps({"token": _TOKEN, "access_token": _TOKEN}).encode())
        else:
            answer(asked, 401, b'{"errors":[{"code":"UNAUTHORIZED","message":"wrong login"}]}')

    def image(self, asked: BaseHTTPRequestHandler) -> None:
        """As the mirror has it."""
        wanted = urllib.request.Request(
            f"http://{self.mirror}:5000{asked.path}", method=asked.command
        )
        if accept := asked.headers.get("Accept"):
            wanted.add_header("Accept", accept)
        try:
            with urllib.request.urlopen(wanted, timeout=30) as given:  # noqa: S310 (http, above)
                kept = ("Content-Type", "Docker-Content-Digest", "Content-Length")
                headers = {name: given.headers[name] for name in kept if given.headers[name]}
                answer(asked, given.status, given.read(), headers)
        except urllib.error.HTTPError as error:
            answer(asked, error.code, error.read())


def answer(
    asked: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    """To a HEAD its headers alone."""
    asked.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
        asked.send_header(name, value)
    asked.end_headers()
    if asked.command != "HEAD":
        asked.wfile.write(body)
