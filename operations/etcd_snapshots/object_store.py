"""Snapshots of etcd in the object store of a stack, as this computer reads them: names and files.

The nodes write there (components/scripts/object-store.sh). Requests are signed as AWS describes it,
Signature Version 4, with the stack's own key; without one as whoever is logged in here.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree

from operations.engine.engine import Engine, StackError
from operations.engine.stack import Stack
from operations.etcd_snapshots import cloud_login, snapshot_file, snapshot_seal
from stacks.config import object_store
from stacks.providers import registry
from stacks.providers.store_identity import Credentials

SCHEME = "store:"  # before a snapshot's name, where others give a file
LATEST = "latest"
_ALGORITHM = "AWS4-HMAC-SHA256"
_NOTHING = hashlib.sha256().hexdigest()
_WAIT_S = 60  # without a byte
_CHUNK = 4 * 1024**2
_PAGES = 100  # of 1000 names each
_SUM_MOST = 4096  # bytes of a file that holds a checksum
_ANSWER_MOST = 8 * 1024**2  # bytes of a list of 1000 names
_NAME = re.compile(r"[a-z0-9.-]+-(\d{8}T\d{6}Z)-\d+-[a-z0-9.-]+\.db(\.gz)?(\.enc)?")
_TRIED = 5  # newest ones that are looked at for a seal


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    endpoint: str
    bucket: str
    folder: str  # of this cluster
    region: str
    access_key: str  # empty: the token is shown as it is
    secret: str
    ca: str | None  # PEM; None: what this computer trusts
    token: str = ""  # of a key that ends
    by_key: bool = True  # of the stack; False: as whoever is logged in here

    def names(self) -> list[str]:
        """Snapshots that are there, oldest first. Raises StackError."""
        prefix, token, found = f"{self.folder}/", "", set[str]()
        for _ in range(_PAGES):
            query = {"list-type": "2", "prefix": prefix}
            if token:
                query = {"continuation-token": token, **query}
            page = _parsed(self._text(f"/{self.bucket}", query, most=_ANSWER_MOST))
            found |= {key.removeprefix(prefix) for key in _all(page, "Key")}
            token = next(_all(page, "NextContinuationToken"), "")
            if not token:
                break
        known = {name: match[1] for name in found if (match := _NAME.fullmatch(name))}
        return sorted(known, key=lambda name: (known[name], name))

    def fetch(self, name: str, folder: Path) -> Path:
        """Bring a snapshot and its checksum; the file in `folder`. Raises StackError.

        One that is there already, and is as the checksum says, is not brought again.
        """
        if not _NAME.fullmatch(name):
            raise StackError(f"{name!r} is not a name of a snapshot\n  do: make backup LIST=1")
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        file, beside = folder / name, folder / f"{name}.sha256"
        text = self._text(f"/{self.bucket}/{self.folder}/{name}.sha256", {}, most=_SUM_MOST)
        total = (text.split() or [""])[0]
        if not (file.exists() and snapshot_file.digest(file) == total):
            part = file.with_name(f".{name}.part")
            self._download(f"/{self.bucket}/{self.folder}/{name}", part)
            if snapshot_file.digest(part) != total:
                part.unlink()
                raise StackError(
                    f"{name} is not what {name}.sha256 says, both of {self.endpoint}: it was cut "
                    "off or changed\n  do: run it again, or take another one (make backup LIST=1)"
                )
            part.rename(file)
        beside.write_text(f"{total}  {name}\n")
        return file

    def _download(self, path: str, part: Path) -> None:
        part.unlink(missing_ok=True)
        part.touch(mode=0o600)
        try:
            with self._ask(path, {}) as answer, part.open("wb") as out:
                while chunk := answer.read(_CHUNK):
                    out.write(chunk)
        except (OSError, HTTPException) as error:
            part.unlink()
            raise self._broken(error) from None

    def _text(self, path: str, query: Mapping[str, str], *, most: int) -> str:
        try:
            with self._ask(path, query) as answer:
                return str(answer.read(most).decode(errors="replace"))
        except (OSError, HTTPException) as error:
            raise self._broken(error) from None

    def _ask(self, path: str, query: Mapping[str, str]) -> HTTPResponse:
        """Raises OSError, HTTPException and StackError."""
        url = f"{self.endpoint}{quote(path)}"
        if query:
            url += f"?{urlencode(query, quote_via=quote, safe='')}"
        headers = {"Authorization": f"Bearer {self.token}"}
        if self.access_key:
            headers = signed(
                url,
                region=self.region,
                access_key=self.access_key,
                secret=self.secret,
                token=self.token,
                now=datetime.now(UTC),
            )
        context = ssl.create_default_context(cadata=self.ca)
        opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context), _NoRedirect
        )
        # The scheme is one of http and https: the config is checked for it.
        request = urllib.request.Request(url, headers=headers)  # noqa: S310
        try:
            answer: HTTPResponse = opener.open(request, timeout=_WAIT_S)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error.code, error.read(_ANSWER_MOST)) from None
        return answer

    def _refused(self, status: int, body: bytes) -> StackError:
        try:
            said = ElementTree.fromstring(body)  # noqa: S314 (expat refuses to expand without end)
            text = f"{status} {next(_all(said, 'Code'), '')}: {next(_all(said, 'Message'), '')}"
        except ElementTree.ParseError:
            text = str(status)
        key = f"kube-ha:{object_store.SECRET}" if self.by_key else "as whom you are logged in"
        who = "the key has" if self.by_key else "you have"
        return StackError(
            f"{self.endpoint} refuses: {text}\n"
            f"  do: see etcd.backup.objectStore, {key} and this computer's clock; {who} to list "
            "and read there"
        )

    def _broken(self, error: Exception) -> StackError:
        reason = getattr(error, "reason", None) or error
        return StackError(
            f"{self.endpoint} cannot be read: {reason}\n"
            "  do: see that this computer reaches it; else bring the snapshot and its .sha256 here "
            "another way, and say SNAPSHOT=file"
        )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """What is signed for one place is shown to no other."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def of(found: Stack, name: str) -> Store:
    """The store that the config names. Raises StackError where there is none."""
    said = found.plan.spec.etcd.backup.object_store
    if said is None:
        raise StackError(
            f"Pulumi.{name}.yaml names no object store\n  do: set {object_store.PATH}, or give a "
            "file"
        )
    known = _credentials(found, name)
    return Store(
        endpoint=said.endpoint,
        bucket=said.bucket,
        folder=object_store.folder(said, found.plan.spec.cluster.name, found.cluster_id),
        region=said.region,
        access_key=known.access_key,
        secret=known.secret,
        token=known.token,
        by_key=said.access_key is not None,
        ca=said.ca,
    )


def _credentials(found: Stack, name: str) -> Credentials:
    """Raises StackError."""
    identity = registry.store_identity(found.plan.spec)
    if identity is not None:
        return cloud_login.credentials(identity)
    said = found.plan.spec.etcd.backup.object_store
    return Credentials(
        access_key=(said.access_key if said else None) or "",
        secret=Engine(name).secret(f"kube-ha:{object_store.SECRET}"),
    )


def key_of(found: Stack, *, unauthenticated: bool) -> str | None:
    """The key that the latest one has to be sealed with; None: by the config, or by the word.

    Raises StackError.
    """
    if unauthenticated or not found.plan.spec.etcd.backup.encrypt:
        return None
    if not found.backup_key:
        raise StackError(
            "this stack gives no key, so no snapshot's seal can be read\n"
            "  do: take the stack that made them; its state holds the key"
        )
    return found.backup_key


def taken(store: Store, wanted: str, folder: Path, key: str | None) -> Path:
    """The snapshot of `store:<name>` or `store:latest`, in `folder`. Raises StackError.

    The latest is the newest one that `key`, the stack's backupKey, has sealed: whoever may write to
    the store gives names as they like. None: that is not asked.
    """
    name = wanted.removeprefix(SCHEME)
    if name != LATEST:
        return store.fetch(name, folder)
    names = store.names()
    if not names:
        raise StackError(
            f"there is no snapshot at {store.endpoint}/{store.bucket}/{store.folder}\n"
            "  do: see that this is the right stack, and etcd.backup.objectStore.prefix"
        )
    return store.fetch(names[-1], folder) if key is None else _latest(store, names, folder, key)


def _latest(store: Store, names: Sequence[str], folder: Path, key: str) -> Path:
    unsealed = []
    # What has not the form of a sealed one need not be fetched to be passed over.
    for name in [name for name in reversed(names) if name.endswith(".gz.enc")][:_TRIED]:
        try:
            file = store.fetch(name, folder)
        except StackError as error:
            unsealed.append(f"{name}: {error}")
            continue
        found = snapshot_seal.of(file)
        if found and found.name == name and found.proves(file, key):
            return file
        unsealed.append(f"{name} is not what the key of this stack has sealed under this name")
    listed = "".join(f"\n  - {one}" for one in unsealed)
    raise StackError(
        f"none of the newest snapshots at {store.endpoint}/{store.bucket}/{store.folder} bears the "
        f"seal of this stack (there are {len(names)}, the last is {names[-1]}){listed}\n"
        "  do: make backup LIST=1 names them all, SNAPSHOT=store:<name> takes one; of an older "
        "version of this program, which made no seals: with UNAUTHENTICATED=1"
    )


def signed(
    url: str, *, region: str, access_key: str, secret: str, token: str = "", now: datetime
) -> dict[str, str]:
    """The headers of a GET for `url`, whose query is encoded and in order; `token`: of the key.

    AWS: "Create a signed AWS API request", service s3.
    """
    parts = urlsplit(url)
    moment = f"{now:%Y%m%dT%H%M%SZ}"
    headers = {"host": parts.netloc, "x-amz-content-sha256": _NOTHING, "x-amz-date": moment}
    if token:
        headers["x-amz-security-token"] = token
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = "\n".join(["GET", parts.path, parts.query, lines, names, _NOTHING])
    scope = f"{now:%Y%m%d}/{region}/s3/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = "\n".join([_ALGORITHM, moment, scope, digest])
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"Credential={access_key}/{scope}"
    return {
        **{name.title(): value for name, value in headers.items()},
        "Authorization": f"{_ALGORITHM} {credential},SignedHeaders={names},Signature={signature}",
    }


def _parsed(text: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)  # noqa: S314 (expat refuses to expand without end)
    except ElementTree.ParseError:
        raise StackError(
            "what answers there is no object store: it lists no names\n"
            f"  do: see {object_store.PATH}.endpoint"
        ) from None


def _all(page: ElementTree.Element, name: str) -> Iterator[str]:
    """Texts of all elements of that name, whatever their namespace."""
    for element in page.iter():
        if element.tag.rpartition("}")[2] == name:
            yield element.text or ""
