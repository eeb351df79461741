"""Stand-in of a cloud: its metadata service, and its object store, which takes only those whom the former has told.

Signatures are checked as AWS describes Signature Version 4, apart from this project's own code and from curl's.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "acme-etcd"
REGION = "eu-central-1"
ROLE = "dev-etcd-eu-central-1"
_AT = "/latest/meta-data/iam/security-credentials/"


@dataclass(slots=True)
class Key:
    """Credentials as IMDS has them."""

    id: str
    secret: str
    token: str
    ends: datetime


@dataclass(slots=True)
class CloudStore:
    kind: Literal["ec2", "gce"]
    port: int = 0
    left_s: int = 3600  # that what is handed out is good for
    role: str = ROLE  # empty: the machine has none
    refused: tuple[int, str] | None = None  # what the store says to everybody
    failing: int = 0  # answers of the metadata service that are 503
    handed: list[Key] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # of the metadata service: method and path
    seen: list[str] = field(default_factory=list)  # by the store: method and path
    headers: list[dict[str, str]] = field(default_factory=list)  # the same
    objects: dict[str, bytes] = field(default_factory=dict)
    session: str = ""  # token of IMDSv2

    @property
    def at(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def new_key(self) -> Key:
        number = len(self.handed)
        key = Key(
            id=f"ASIA{number:016d}",
            secret=f"se/cr+et{number}=",
            token=f"IQoJb3JpZ2luX2VjE/{'x' * 1100}+{number}=",
            ends=datetime.now(UTC) + timedelta(seconds=self.left_s),
        )
        self.handed.append(key)
        return key


@contextmanager
def running(store: CloudStore) -> Iterator[CloudStore]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.store = store  # type: ignore[attr-defined]
    store.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def cloud(self) -> CloudStore:
        found: CloudStore = self.server.store  # type: ignore[attr-defined]
        return found

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        if path.startswith(("/latest/", "/computeMetadata/")):
            self.cloud.asked.append(f"{self.command} {path}")
            self._answer(*self._metadata(path))
            return
        self.cloud.seen.append(f"{self.command} {path}")
        self.cloud.headers.append({name.lower(): value for name, value in self.headers.items()})
        wrong = self.cloud.refused or self._wrong(body)
        if wrong:
            said = f"<Error><Code>{wrong[1]}</Code><Message>no</Message></Error>"
            self._answer(wrong[0], said.encode())
            return
        self._answer(*self._store(unquote(path), body))

    do_GET = do_PUT = do_DELETE = _handle  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    # --- The metadata service ----------------------------------------------------------------------

    def _metadata(self, path: str) -> tuple[int, bytes]:
        cloud = self.cloud
        if cloud.failing:
            cloud.failing -= 1
            return 503, b'{"access_token": "of-an-error", "Token": "of-an-error"}'
        if cloud.kind == "gce":
            if (
                path != "/computeMetadata/v1/instance/service-accounts/default/token"
                or not cloud.role
            ):
                return 404, b"Not Found"
            if self.headers.get("Metadata-Flavor") != "Google":
                return 403, b"Forbidden"
            said = {
                "access_token": cloud.new_key().token.replace("=", ""),
                "expires_in": cloud.left_s,
            }
            return 200, json.dumps({**said, "token_type": "Bearer"}).encode()
        if path == "/latest/api/token":
            if self.command != "PUT" or not self.headers.get(
                "X-aws-ec2-metadata-token-ttl-seconds"
            ):
                return 400, b"Bad Request"
            cloud.session = f"AQAE{len(cloud.asked)}=="
            return 200, cloud.session.encode()
        if not cloud.session or self.headers.get("X-aws-ec2-metadata-token") != cloud.session:
            return 401, b"Unauthorized"
        if not cloud.role or not path.startswith(_AT):
            return 404, b"Not Found"
        if path == _AT:
            return 200, cloud.role.encode()
        key = cloud.new_key()
        said = {
            "Code": "Success",
            "LastUpdated": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "Type": "AWS-HMAC",
            "AccessKeyId": key.id,
            "SecretAccessKey": key.secret,
            "Token": key.token,
            "Expiration": f"{key.ends:%Y-%m-%dT%H:%M:%SZ}",
        }
        return 200, json.dumps(said, indent=2).encode()

    # --- Who asks the store ------------------------------------------------------------------------

    def _wrong(self, body: bytes) -> tuple[int, str] | None:
        md5 = self.headers.get("Content-MD5")
        if md5 and md5 != base64.b64encode(hashlib.md5(body).digest()).decode():  # noqa: S324
            return 400, "BadDigest"
        return self._unsigned(body) if self.cloud.kind == "ec2" else self._unknown()

    def _unknown(self) -> tuple[int, str] | None:
        """Google takes a token, and no headers of S3 beside it."""
        if any(name.lower().startswith("x-amz-") for name in self.headers):
            return 400, "ExcessHeaderValues"
        now = datetime.now(UTC)
        good = {
            f"Bearer {key.token.replace('=', '')}" for key in self.cloud.handed if key.ends > now
        }
        return (
            None if self.headers.get("Authorization") in good else (401, "AuthenticationRequired")
        )

    def _unsigned(self, body: bytes) -> tuple[int, str] | None:
        form = r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})"
        said = re.fullmatch(form, self.headers.get("Authorization") or "")
        if said is None:
            return 403, "AccessDenied"
        id_, scope, names, signature = said.groups()
        key = next((one for one in self.cloud.handed if one.id == id_), None)
        if key is None or self.headers.get("x-amz-security-token") != key.token:
            return 403, "InvalidAccessKeyId"
        if key.ends <= datetime.now(UTC):
            return 400, "ExpiredToken"
        needed = {name.lower() for name in self.headers if name.lower().startswith("x-amz-")} | {
            "host"
        }
        if not needed <= {*names.split(";")} or scope.split("/")[1] != REGION:
            return 403, "SignatureDoesNotMatch"
        if self.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            return 400, "XAmzContentSHA256Mismatch"
        parts = urlsplit(self.path)
        lines = "".join(
            f"{name}:{(self.headers[name] or '').strip()}\n" for name in names.split(";")
        )
        query = "&".join(sorted(parts.query.split("&")))
        request = [
            self.command,
            parts.path,
            query,
            lines,
            names,
            self.headers["x-amz-content-sha256"],
        ]
        digest = hashlib.sha256("\n".join(request).encode()).hexdigest()
        signing = f"AWS4{key.secret}".encode()
        for part in scope.split("/"):
            signing = hmac.digest(signing, part.encode(), "sha256")
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope, digest])
        right = hmac.digest(signing, text.encode(), "sha256").hex()
        return None if hmac.compare_digest(right, signature) else (403, "SignatureDoesNotMatch")

    # --- The store ---------------------------------------------------------------------------------

    def _store(self, path: str, body: bytes) -> tuple[int, bytes]:
        objects, (_, bucket, *rest) = self.cloud.objects, path.split("/", 2)
        if bucket != BUCKET:
            return 404, b"<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>"
        name = rest[0] if rest else ""
        if not name:
            prefix = parse_qs(urlsplit(self.path).query)["prefix"][0]
            found = "".join(
                f"<Contents><Key>{escape(one)}</Key></Contents>"
                for one in sorted(objects)
                if one.startswith(prefix)
            )
            return 200, f"<R><IsTruncated>false</IsTruncated>{found}</R>".encode()
        if self.command == "PUT":
            objects[name] = body
            return 200, b""
        if name not in objects:
            return 404, b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>"
        if self.command == "DELETE":
            del objects[name]
            return 204, b""
        return 200, objects[name]
