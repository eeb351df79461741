"""Fetch files of upstream's releases: resumed where they were cut off, checked against upstream's
published checksum, through the proxies that the environment names."""

from __future__ import annotations

import hashlib
import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

PROBE_TIMEOUT_S = 5
READ_TIMEOUT_S = 30
ATTEMPTS = 4
_CHUNK = 1 << 20
_SHA256 = re.compile(r"^([0-9a-fA-F]{64})(?:\s+\*?(\S+))?\s*$", re.MULTILINE)


class DownloadError(RuntimeError):
    """A file could not be had, or is not what upstream published."""

    def __init__(self, url: str, reason: str, todo: str) -> None:
        super().__init__(f"{url}: {reason}\n  do: {todo}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Where upstream's URLs are asked for: there, or below one mirror as <mirror>/<host>/<path>.

    Registries have a mirror of their own: `http(s)://host:port`, which holds the repositories
    without the name of upstream's registry.
    """

    mirror: str = ""
    registry: str = ""

    def at(self, url: str) -> str:
        if not self.mirror:
            return url
        return f"{self.mirror.rstrip('/')}/{url.removeprefix('https://')}"


class Response(Protocol):
    """The part of an HTTP response that is used here."""

    status: int
    headers: Message

    def read(self, amount: int = ..., /) -> bytes: ...
    def __enter__(self) -> Response: ...
    def __exit__(self, *args: object) -> None: ...


def reachable(urls: Iterable[str]) -> dict[str, bool]:
    """For each URL whether it answers, asked all at once, in PROBE_TIMEOUT_S at most.

    A refusal for want of a login counts as an answer: registries give one before they give a token.
    """
    wanted = sorted(set(urls))
    with ThreadPoolExecutor(max_workers=max(1, len(wanted))) as pool:
        return dict(zip(wanted, pool.map(_answers, wanted), strict=True))


def published_sha256(url: str, name: str) -> str:
    """The checksum of `name` in upstream's file at `url`, as hex.

    Two layouts are in use: the bare checksum, and lines as sha256sum writes them. Raises
    DownloadError when there is none for `name`.
    """
    text = _get(url)
    found = _SHA256.findall(text)
    for digest, listed in found:
        if listed.rpartition("/")[2] == name or (not listed and len(found) == 1):
            return str(digest).lower()
    raise DownloadError(url, f"holds no checksum of {name}", "check the URL in artifacts/lock.yaml")


def fetch(url: str, sha256: str, target: Path) -> None:
    """Make `target` hold what `url` gives and `sha256` names; continues where an earlier try ended.

    Raises DownloadError after ATTEMPTS broken connections, at any HTTP error, and when the checksum
    is another one even after a fresh start.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    resumed = part.exists()
    _complete(url, part)
    if file_sha256(part) != sha256 and resumed:
        # The beginning may be of another release, or of another attempt at this one.
        part.unlink()
        _complete(url, part)
    actual = file_sha256(part)
    if actual != sha256:
        part.unlink()
        raise DownloadError(
            url,
            f"has checksum {actual}, upstream published {sha256}",
            "try again; if it stays, something between here and upstream changes files",
        )
    part.replace(target)


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _complete(url: str, part: Path) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _append(url, part)
        except urllib.error.HTTPError as error:
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                return  # nothing is left to fetch; the checksum decides whether that is right
            raise DownloadError(
                url, f"HTTP {error.code} {error.reason}", "check version and URL in the lock file"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            if attempt == ATTEMPTS:
                raise DownloadError(
                    url,
                    f"was interrupted {ATTEMPTS} times, last: {error}",
                    "run again, it continues from there; or build: --source build",
                ) from None
            time.sleep(attempt)
        else:
            return


def _append(url: str, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    with _open(url, READ_TIMEOUT_S, headers) as response:
        # A server that knows no ranges answers 200 and starts from the beginning.
        goes_on = response.status == http.client.PARTIAL_CONTENT
        with part.open("ab" if goes_on else "wb") as file:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
        # A connection that ends too early looks like the end of the file here.
        expected = int(response.headers.get("Content-Length", "-1"))
        received = part.stat().st_size - (have if goes_on else 0)
        if 0 <= received < expected:
            raise OSError(f"connection ended after {received} of {expected} bytes")


def _get(url: str) -> str:
    try:
        with _open(url, READ_TIMEOUT_S, {}) as response:
            return response.read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(
            url, str(error), "is upstream reachable? else: --source build"
        ) from None


def _answers(url: str) -> bool:
    try:
        with _open(url, PROBE_TIMEOUT_S, {}):
            return True
    except urllib.error.HTTPError as error:
        return error.code == http.client.UNAUTHORIZED
    except (OSError, http.client.HTTPException):
        return False


def _open(url: str, timeout_s: float, headers: dict[str, str]) -> Response:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise DownloadError(url, "is not an http(s) URL", "check the lock file and --mirror")
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  # checked above
    opened: Response = urllib.request.urlopen(request, timeout=timeout_s)  # noqa: S310
    return opened
