"""Official releases: fetched where their makers publish them, and checked by their checksums."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from toolchain.progress import say

_PUBLISHED = "https://github.com"
_PROBE_S = 5
_FETCH_S = 60


class ReleaseError(Exception):
    """A release was reached, and is not what its makers published."""


class UnreachableError(Exception):
    """Releases cannot be reached from here; the text says what was tried and what came back."""


@dataclass(frozen=True, slots=True)
class Release:
    """One file of one release on the release server."""

    repository: str
    version: str
    file: str
    checksums: str
    """File of the same release that lists SHA-256 sums, one `sum  name` a line."""

    def url(self, file: str) -> str:
        """Where a file of the release lies; KUBE_HA_RELEASES_URL names another server."""
        base = os.environ.get("KUBE_HA_RELEASES_URL", _PUBLISHED).rstrip("/")
        return f"{base}/{self.repository}/releases/download/v{self.version}/{file}"


def engine(version: str) -> Release:
    """The Pulumi command line with its language hosts."""
    system = f"{_system()}-{_machine(amd64='x64')}"
    return Release(
        "pulumi/pulumi",
        version,
        f"pulumi-v{version}-{system}.tar.gz",
        f"pulumi-{version}-checksums.txt",
    )


def plugin(name: str, version: str) -> Release:
    """A resource plugin."""
    system = f"{_system()}-{_machine(amd64='amd64')}"
    return Release(
        f"pulumi/pulumi-{name}",
        version,
        f"pulumi-resource-{name}-v{version}-{system}.tar.gz",
        f"pulumi-{name}_{version}_checksums.txt",
    )


def kept(release: Release, folder: Path) -> Path:
    """The file of a release in `folder`, fetched and verified unless it is there.

    Raises what `published_sum` and `fetch` raise.
    """
    if (found := folder / release.file).is_file():
        return found
    wanted = published_sum(release)
    say("plugins", f"{release.repository} {release.version}: downloading {release.file}")
    return fetch(release, wanted, folder)


def published_sum(release: Release) -> str:
    """The SHA-256 its makers publish for the file.

    Raises UnreachableError when there is no answer or a refusal, ReleaseError when the list does
    not name the file.
    """
    url = release.url(release.checksums)
    try:
        # The server is ours by constant, or the user's own by environment: no scheme surprises.
        with urllib.request.urlopen(url, timeout=_PROBE_S) as answer:  # noqa: S310
            listed = str(answer.read(), "utf-8")
    except OSError as error:
        raise UnreachableError(f"{url}: {error}") from None
    for line in listed.splitlines():
        found, _, name = line.partition(" ")
        if name.strip().lstrip("*") == release.file:
            return found.lower()
    raise ReleaseError(f"{url} does not name {release.file}: is there a release for this system?")


def fetch(release: Release, wanted_sum: str, folder: Path) -> Path:
    """Download into `folder` and verify. Raises UnreachableError; ReleaseError for a wrong sum."""
    url = release.url(release.file)
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        made = Path(unfinished) / release.file
        try:
            with (
                urllib.request.urlopen(url, timeout=_FETCH_S) as answer,  # noqa: S310 (see above)
                made.open("wb") as file,
            ):
                while block := answer.read(1 << 20):
                    digest.update(block)
                    file.write(block)
        except OSError as error:
            raise UnreachableError(f"{url}: {error}") from None
        if digest.hexdigest() != wanted_sum:
            message = (
                f"{url}: SHA-256 is {digest.hexdigest()}, published is {wanted_sum}. "
                "Nothing was installed. Try again; if it stays, the download is altered on its way."
            )
            raise ReleaseError(message)
        return made.rename(folder / release.file)


def _system() -> str:
    if sys.platform not in ("linux", "darwin"):
        message = f"no release of the engine is used on {sys.platform}; use Linux or macOS"
        raise ReleaseError(message)
    return sys.platform


def _machine(*, amd64: str) -> str:
    """The architecture as file names have it, which differ in their word for amd64."""
    found = platform.machine().lower()
    return "arm64" if found in ("arm64", "aarch64") else amd64
