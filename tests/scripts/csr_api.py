"""The API as the approver sees it, over real TLS: requests as their authors made them, whatever they are called."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.scripts.shell import Shell

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps/"
NODES = "/api/v1/nodes/"
SERVING = "kubernetes.io/kubelet-serving"
CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
Object = dict[str, object]


class CsrApi:
    """A server at a port of its own; `stop` ends it."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.requests: dict[str, dict[str, object]] = {}
        self.maps: dict[str, dict[str, str]] = {}
        self.nodes: dict[str, bool] = {}  # whether each is Ready
        self.patched: list[tuple[str, Object]] = []  # name as it came, body
        self.refuses = 0  # HTTP status of every approval, if not 0
        self.swaps: str | None = None  # what an approved request turns out to hold
        keys = shell.folder / "run"
        _keys(keys)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(keys / "approver.crt", keys / "key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def ask(
        self,
        name: str,
        pem: str,
        *,
        user: str,
        groups: tuple[str, ...],
        signer: str = SERVING,
        usages: tuple[str, ...] = ("digital signature", "server auth"),
    ) -> None:
        """Somebody asks for a certificate."""
        number = len(self.requests) + 1
        self.requests[name] = {
            "metadata": {
                "name": name,
                "uid": str(uuid.UUID(int=number)),
                "resourceVersion": str(100 + number),
                "creationTimestamp": f"2026-01-01T00:00:{number % 60:02}Z",
            },
            "spec": {
                "request": pem,
                "signerName": signer,
                "username": user,
                "groups": list(groups),
                "usages": list(usages),
            },
            "status": {},
        }

    @property
    def approved(self) -> list[str]:
        """Names of the requests that were approved."""
        return [name for name, one in self.requests.items() if one["status"]]

    def round(self, *, fails: bool = False, more: str = "") -> str:
        """One look of the approver; what it says, and then what is left pending."""
        code = (
            f"source {self.shell.folder}/approve.sh\nAPPROVER_API=https://127.0.0.1:{self._server.server_port}\n"
            f"APPROVER_RUN={self.shell.folder}/run\n{more}\n"
            'left="" more=0; set +e; approve_pending; status=$?; echo "left=$left"; exit $status'
        )
        installed(self.shell)
        return self.shell.run(code, fails=fails)

    def _get(self, path: str, query: Mapping[str, list[str]]) -> tuple[int, object]:
        if path == REQUESTS:
            first, size = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
            page = list(self.requests.values())[first : first + size]
            rest = first + size < len(self.requests)
            metadata = {"resourceVersion": "999", "continue": str(first + size) if rest else ""}
            return 200, {"metadata": metadata, "items": page}
        name = unquote(path.rpartition("/")[2])
        if path.startswith(CONFIG_MAPS) and name in self.maps:
            return 200, {"data": self.maps[name]}
        if path.startswith(NODES) and name in self.nodes:
            ready = {"type": "Ready", "status": "True" if self.nodes[name] else "Unknown"}
            return 200, {"status": {"conditions": [ready]}}
        return 404, {}

    def _patch(self, path: str, body: Object) -> tuple[int, object]:
        name = unquote(path.removeprefix(f"{REQUESTS}/").removesuffix("/approval"))
        self.patched.append((name, body))
        one, asked = self.requests.get(name), body["metadata"]
        assert isinstance(asked, dict)
        if self.refuses or one is None:
            return self.refuses or 404, {}
        metadata = one["metadata"]
        assert isinstance(metadata, dict)
        if any(metadata[key] != value for key, value in asked.items()):
            return 409, {}
        one["status"] = body["status"]
        if self.swaps is not None:
            one["spec"] = {**_mapping(one["spec"]), "request": self.swaps}
        return 200, one

    def _handler(api) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - self is the handler's
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                self._answer(*api._get(url.path, parse_qs(url.query)))

            def do_PATCH(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(*api._patch(urlsplit(self.path).path, body))

            def _answer(self, status: int, value: object) -> None:
                text = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def installed(shell: Shell) -> Path:
    """The approver as a master has it: one file."""
    path = shell.folder / "approve.sh"
    folder = Path(__file__).parents[2] / "components/scripts"
    path.write_text(
        "".join((folder / f"{name}.sh").read_text() for name in ("judge", "credentials", "approve"))
    )
    return path


def _mapping(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value


def _keys(folder: Path) -> None:
    """What the approver knows the API by, and is known by itself: one certificate for both."""
    folder.mkdir()
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    words += ["-nodes", "-days", "2", "-subj", "/CN=api", "-addext", "subjectAltName=IP:127.0.0.1"]
    words += ["-keyout", str(folder / "key"), "-out", str(folder / "approver.crt")]
    subprocess.run(words, check=True, capture_output=True)
    (folder / "ca.crt").write_bytes((folder / "approver.crt").read_bytes())
