"""Copy images from upstream's registries into the storage of a registry, with Python alone.

The storage is a folder as distribution (docker-registry) keeps it: blobs by their digest, and links
to them from repositories and tags. Every blob and manifest has to have the digest that names it.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

_TIMEOUT_S = 30
_ATTEMPTS = 4
_CHUNK = 1 << 20
_MANIFEST_MOST = 4 * 2**20  # bytes; what distribution takes of one
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_T = TypeVar("_T")
_WORD = re.compile(r'(\w+)="([^"]*)"')


class PullError(RuntimeError):
    """An image could not be had, or is not what its digest says; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The folder that a registry serves."""

    root: Path

    def blob(self, digest: str) -> Path:
        name = digest.removeprefix("sha256:")
        return self._v2 / "blobs/sha256" / name[:2] / name / "data"

    def link_layer(self, repository: str, digest: str) -> None:
        self._link(self._of(repository) / "_layers", digest)

    def tag(self, repository: str, tag: str, digest: str) -> None:
        """Make the tag name this manifest."""
        manifests = self._of(repository) / "_manifests"
        self._link(manifests / "revisions", digest)
        self._link(manifests / "tags" / tag / "index", digest)
        current = manifests / "tags" / tag / "current/link"
        current.parent.mkdir(parents=True, exist_ok=True)
        current.write_text(digest)

    @property
    def _v2(self) -> Path:
        return self.root / "docker/registry/v2"

    def _of(self, repository: str) -> Path:
        return self._v2 / "repositories" / repository

    def _link(self, folder: Path, digest: str) -> None:
        link = folder / digest.replace(":", "/") / "link"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.write_text(digest)


@dataclass(slots=True, kw_only=True)
class Source:
    """One repository of a registry. `url`: of the registry, http(s)://host:port."""

    url: str
    repository: str
    _token: str = field(default="", init=False)

    def copy(self, reference: str, arch: str, storage: Storage, to: tuple[str, str]) -> str:
        """Put the image for `arch` into a repository under a tag (`to`); gives its digest.

        `reference`: a tag, or a digest. Raises PullError.
        """
        text, kind = self._manifest(reference)
        if kind in _INDEXES:
            text, kind = self._manifest(self._for(arch, text, reference))
        if kind not in _MANIFESTS:
            raise self._error(reference, f"is of an unknown kind, {kind}")
        digest = _digest(text)
        try:
            blobs = _blobs(text)
        except (LookupError, TypeError, ValueError) as error:
            raise self._error(reference, f"its manifest cannot be read ({error!r})") from None
        for blob in blobs:
            self._fetch(blob, storage.blob(blob))
            storage.link_layer(to[0], blob)
        place = storage.blob(digest)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text)
        storage.tag(*to, digest)  # last: what a killed run left has no tag
        return digest

    def _for(self, arch: str, index: bytes, reference: str) -> str:
        try:
            for entry in json.loads(index)["manifests"]:
                platform = entry["platform"]
                if (platform["os"], platform["architecture"]) == ("linux", arch):
                    return str(entry["digest"])
        except (LookupError, TypeError, ValueError) as error:
            raise self._error(reference, f"its index cannot be read ({error!r})") from None
        raise self._error(reference, f"has no image for linux/{arch}")

    def _manifest(self, reference: str) -> tuple[bytes, str]:
        """Its bytes and kind."""
        headers = {"Accept": ", ".join((*_INDEXES, *_MANIFESTS))}

        def read() -> tuple[bytes, str]:
            with self._open(f"manifests/{reference}", headers) as answer:
                text = answer.read(_MANIFEST_MOST)
                if answer.length:  # bytes that did not come
                    raise OSError("the connection ended early")
                kind = str(answer.headers.get("Content-Type", ""))
                return text, kind.partition(";")[0].strip()

        text, kind = self._tried(reference, read)
        if _DIGEST.fullmatch(reference) and _digest(text) != reference:
            raise self._error(reference, f"its content is {_digest(text)}")
        return text, kind

    def _fetch(self, digest: str, target: Path) -> None:
        if target.exists():
            return  # of another image
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name("data.part")

        def write() -> None:
            with self._open(f"blobs/{digest}", {}) as answer, part.open("wb") as file:
                sha256 = hashlib.sha256()
                while chunk := answer.read(_CHUNK):
                    sha256.update(chunk)
                    file.write(chunk)
            if sha256.hexdigest() != digest.removeprefix("sha256:"):
                raise OSError(f"its content is sha256:{sha256.hexdigest()}")

        self._tried(digest, write)
        part.replace(target)

    def _tried(self, what: str, ask: Callable[[], _T]) -> _T:
        """The answer, after some tries where a connection breaks; a refusal is not tried again."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return ask()
            except urllib.error.HTTPError as error:
                raise self._error(what, f"HTTP {error.code} {error.reason}") from None
            except (OSError, ValueError, http.client.HTTPException) as error:
                last = str(error) or type(error).__name__
                if attempt < _ATTEMPTS:
                    time.sleep(attempt)
        raise self._error(what, f"{_ATTEMPTS} tries failed, the last: {last}")

    def _open(self, what: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        try:
            return self._ask(what, headers)
        except urllib.error.HTTPError as error:
            challenge = error.headers.get("WWW-Authenticate", "")
            if error.code != http.client.UNAUTHORIZED or not challenge.startswith("Bearer "):
                raise
            self._token = self._anonymous(dict(_WORD.findall(challenge)))
        return self._ask(what, headers)

    def _ask(self, what: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        url = f"{self.url}/v2/{self.repository}/{what}"
        request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 (see registry.py)
        if self._token:
            # Not to where a blob is redirected: stores of objects refuse a foreign login.
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        opened: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310
        return opened

    def _anonymous(self, said: Mapping[str, str]) -> str:
        """A token that anybody gets, from where the registry says."""
        realm = said.get("realm", "")
        if not realm.startswith(("https://", "http://")):
            raise OSError("the registry wants a login")
        query = {key: said[key] for key in ("service", "scope") if key in said}
        with urllib.request.urlopen(  # noqa: S310 (looked at above)
            f"{realm}?{urllib.parse.urlencode(query)}", timeout=_TIMEOUT_S
        ) as answer:
            found = json.loads(answer.read(_MANIFEST_MOST))
        return str(found.get("token") or found.get("access_token") or "")

    def _error(self, what: str, reason: str) -> PullError:
        return PullError(
            f"{self.url}/v2/{self.repository}, {what}: {reason}\n"
            "  do: see that the registry is reachable and has this version; run again, what is "
            "done stays done"
        )


def _digest(text: bytes) -> str:
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def _blobs(manifest: bytes) -> list[str]:
    """Digests of config and layers, each once. Raises LookupError, TypeError, ValueError."""
    found = json.loads(manifest)
    digests = [str(entry["digest"]) for entry in (found["config"], *found["layers"])]
    if bad := [digest for digest in digests if not _DIGEST.fullmatch(digest)]:
        raise ValueError(f"{bad[0]} is not a digest")  # it would be a path
    return [*dict.fromkeys(digests)]
