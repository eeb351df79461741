"""A stand-in for upstream: an HTTP server with the layout of release hosts, and its misfortunes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Upstream:
    """Serves `files` by <host>/<path>; `requests` holds (path, Range header) of all that was asked."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    cut_after: int | None = None  # the next answer ends after so many bytes
    ranges: bool = True
    kinds: dict[str, str] = field(default_factory=dict)  # Content-Type by path
    token: str = ""  # without which only `token` itself is answered

    def publish(self, path: str, content: bytes, *, checksum_at: str = "", lists: str = "") -> str:
        """Serve `content`, and its checksum as a bare line or as sha256sum lists `lists`."""
        self.files[path] = content
        digest = hashlib.sha256(content).hexdigest()
        if checksum_at:
            line = f"{digest}  {lists}\n" if lists else f"{digest}\n"
            self.files[checksum_at] = self.files.get(checksum_at, b"") + line.encode()
        return digest

    def asked_for(self, path: str) -> list[str]:
        """The Range header of each request for `path`."""
        return [wanted for asked, wanted in self.requests if asked == path]


@contextmanager
def serve() -> Iterator[Upstream]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            path = self.path.lstrip("/")
            upstream.requests.append((path, wanted))
            if path.startswith("token?"):
                upstream.files[path] = json.dumps({"token": upstream.token}).encode()
            elif upstream.token and self.headers.get("Authorization") != f"Bearer {upstream.token}":
                scope = f'service="here",scope="repository:{path[3:].rpartition("/")[0].rpartition("/")[0]}:pull"'
                self.send_response(401)
                self.send_header("WWW-Authenticate", f'Bearer realm="{upstream.url}/token",{scope}')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            content = upstream.files.get(path)
            if content is None:
                self.send_error(404)
                return
            start = int(wanted[6:-1]) if wanted and upstream.ranges else 0
            if wanted and upstream.ranges and start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            if path in upstream.kinds:
                self.send_header("Content-Type", upstream.kinds[path])
            self.end_headers()
            end = len(content)
            if upstream.cut_after is not None:
                end, upstream.cut_after = start + upstream.cut_after, None
            self.wfile.write(content[start:end])

        def log_message(self, *_: object) -> None:
            """Not on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        upstream = Upstream(url=f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield upstream
        finally:
            server.shutdown()
            thread.join()
