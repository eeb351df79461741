"""Programs of the lock for this computer: out of a bundle, from upstream, or built; the right ones, and whole."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from artifacts import build, pins, programs
from artifacts.build import host_arch
from artifacts.download import Upstream as Where
from artifacts.lock import TESTS, File, read
from artifacts.pins import PinError
from artifacts.programs import Places
from tests.artifacts.upstream import Upstream

LOCK = read(None, host_arch(), also=[TESTS])
NAMES = ("kubectl", "kubernetes-tests")
(SUITE,) = [file for file in LOCK.files if file.name == "kubernetes-tests"]
(KUBECTL,) = [file for file in LOCK.files if file.name == "kubectl"]


def archive(file: File) -> bytes:
    """As upstream packs it, each program with its own name for content, among others."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path in (*file.members.values(), "kubernetes/README.md"):
            content = path.rpartition("/")[2].encode()
            info = tarfile.TarInfo(path)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def contents() -> dict[str, bytes]:
    return {SUITE.url: archive(SUITE), KUBECTL.url: b"kubectl"}


@pytest.fixture
def places(tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> Places:
    """No bundle, and an upstream that has both files."""
    for file in (SUITE, KUBECTL):
        path, sums = (url.removeprefix("https://") for url in (file.url, file.published))
        upstream.publish(path, contents()[file.url], checksum_at=sums)
    monkeypatch.setattr(pins, "FILE", tmp_path / "pins.json")
    return Places(
        bundle=tmp_path / "bundle", upstream=Where(mirror=upstream.url), cache=tmp_path / "cache"
    )


def are_the_right_ones(found: object) -> None:
    assert isinstance(found, dict)
    assert {name: path.read_text() for name, path in found.items()} == {
        "e2e.test": "e2e.test",
        "ginkgo": "ginkgo",
        "kubectl": "kubectl",
    }
    assert all(path.stat().st_mode & 0o777 == 0o755 for path in found.values())


def test_upstream_is_asked_once(places: Places, upstream: Upstream) -> None:
    are_the_right_ones(programs.of(LOCK, NAMES, places))
    upstream.requests.clear()
    are_the_right_ones(programs.of(LOCK, NAMES, places))
    assert upstream.requests == []


def test_a_bundle_that_has_them_is_enough(places: Places, upstream: Upstream) -> None:
    for url, content in contents().items():
        path = places.bundle / "files" / url.removeprefix("https://")
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    are_the_right_ones(programs.of(LOCK, NAMES, places))
    assert upstream.requests == []


def test_what_upstream_does_not_give_is_built(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = {name: tmp_path / name for name in ("e2e.test", "ginkgo", "kubectl", "kubelet")}
    monkeypatch.setattr(build, "build", lambda *_: built)
    nowhere = dataclasses.replace(places, upstream=Where(mirror="http://127.0.0.1:9"))
    found = programs.of(LOCK, NAMES, nowhere)
    assert found == {name: path for name, path in built.items() if name != "kubelet"}


def test_another_release_than_the_pinned_one_is_refused(places: Places) -> None:
    pins.record(pins.Pins(files={SUITE.url: hashlib.sha256(b"another").hexdigest()}))
    with pytest.raises(PinError, match=r"kubernetes-test-linux-\w+\.tar\.gz is "):
        programs.of(LOCK, NAMES, places)
    assert not list(places.cache.rglob("e2e.test"))
