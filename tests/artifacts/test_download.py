"""Files come whole, checked, and from where an earlier try ended; or the error says why not."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from artifacts import download
from artifacts.download import DownloadError, fetch, published_sha256, reachable
from tests.artifacts.upstream import Upstream

CONTENT = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
KUBELET = "dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet"


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artifacts.download.time.sleep", lambda _: None)


def test_a_file_is_fetched_and_checked(upstream: Upstream, tmp_path: Path) -> None:
    upstream.publish(KUBELET, CONTENT)
    fetch(f"{upstream.url}/{KUBELET}", DIGEST, tmp_path / "new" / "kubelet")
    assert (tmp_path / "new" / "kubelet").read_bytes() == CONTENT
    assert not list(tmp_path.rglob("*.part"))


def test_a_file_with_another_checksum_is_refused_and_leaves_nothing(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.publish(KUBELET, b"something else")
    with pytest.raises(DownloadError, match="upstream published") as error:
        fetch(f"{upstream.url}/{KUBELET}", DIGEST, tmp_path / "kubelet")
    assert "  do: " in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named_with_its_status_and_not_asked_for_again(
    upstream: Upstream, tmp_path: Path
) -> None:
    with pytest.raises(DownloadError, match="kubelet: HTTP 404"):
        fetch(f"{upstream.url}/{KUBELET}", DIGEST, tmp_path / "kubelet")
    assert len(upstream.requests) == 1


def test_a_connection_that_breaks_off_goes_on_where_it_broke(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.publish(KUBELET, CONTENT)
    upstream.cut_after = 1000
    fetch(f"{upstream.url}/{KUBELET}", DIGEST, tmp_path / "kubelet")
    assert (tmp_path / "kubelet").read_bytes() == CONTENT
    assert upstream.asked_for(KUBELET) == ["", "bytes=1000-"]


def test_a_run_that_was_killed_goes_on_in_the_next(upstream: Upstream, tmp_path: Path) -> None:
    upstream.publish(KUBELET, CONTENT)
    (tmp_path / "kubelet.part").write_bytes(CONTENT[:5000])
    fetch(f"{upstream.url}/{KUBELET}", DIGEST, tmp_path / "kubelet")
    assert (tmp_path / "kubelet").read_bytes() == CONTENT
    assert upstream.asked_for(KUBELET) == ["bytes=5000-"]


def test_a_whole_part_is_not_fetched_again(upstream: Upstream, tmp_path: Path) -> None:
    upstream.publish(KUBELET, CONTENT)
    (tmp_path / "kubelet.part").write_bytes(CONTENT)
    fetch(f"{upstream.url}/{KUBELET}", DIGEST, tmp_path / "kubelet")
    assert (tmp_path / "kubelet").read_bytes() == CONTENT


def test_a_part_of_another_file_is_thrown_away(upstream: Upstream, tmp_path: Path) -> None:
    upstream.publish(KUBELET, CONTENT)
    (tmp_path / "kubelet.part").write_bytes(b"of an older release")
    fetch(f"{upstream.url}/{KUBELET}", DIGEST, tmp_path / "kubelet")
    assert (tmp_path / "kubelet").read_bytes() == CONTENT


def test_a_server_without_ranges_starts_from_the_beginning(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.publish(KUBELET, CONTENT)
    upstream.ranges = False
    (tmp_path / "kubelet.part").write_bytes(CONTENT[:5000])
    fetch(f"{upstream.url}/{KUBELET}", DIGEST, tmp_path / "kubelet")
    assert (tmp_path / "kubelet").read_bytes() == CONTENT


def test_a_silent_upstream_is_given_up_and_the_part_stays(tmp_path: Path) -> None:
    (tmp_path / "kubelet.part").write_bytes(CONTENT[:5000])
    with pytest.raises(DownloadError, match=f"was interrupted {download.ATTEMPTS} times"):
        fetch("http://127.0.0.1:1/kubelet", DIGEST, tmp_path / "kubelet")
    assert (tmp_path / "kubelet.part").stat().st_size == 5000


def test_only_http_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="is not an http"):
        fetch("file:///etc/passwd", DIGEST, tmp_path / "kubelet")


@pytest.mark.parametrize(
    ("published", "name"),
    [
        pytest.param(f"{DIGEST}", "kubelet", id="bare"),
        pytest.param(f"{DIGEST}\n", "kubelet", id="bare line"),
        pytest.param(f"{DIGEST}  runc.amd64\n", "runc.amd64", id="as sha256sum lists"),
        pytest.param(f"{DIGEST} *runc.amd64\n", "runc.amd64", id="binary mode"),
        pytest.param(f"{DIGEST}  ./release/runc.amd64\n", "runc.amd64", id="with folder"),
        pytest.param(
            f"{'0' * 64}  runc.arm64\n{DIGEST.upper()}  runc.amd64\n",
            "runc.amd64",
            id="one of many",
        ),
    ],
)
def test_every_layout_of_published_checksums_is_read(
    upstream: Upstream, published: str, name: str
) -> None:
    upstream.files["sums"] = published.encode()
    assert published_sha256(f"{upstream.url}/sums", name) == DIGEST


@pytest.mark.parametrize("published", ["", "<html>not found</html>", f"{DIGEST}  runc.arm64\n"])
def test_a_checksum_of_another_file_is_not_taken(upstream: Upstream, published: str) -> None:
    upstream.files["sums"] = published.encode()
    with pytest.raises(DownloadError, match=r"no checksum of runc\.amd64"):
        published_sha256(f"{upstream.url}/sums", "runc.amd64")


def test_who_answers_is_told_from_who_does_not(upstream: Upstream) -> None:
    upstream.files["here"] = b""
    here, gone, silent = f"{upstream.url}/here", f"{upstream.url}/gone", "http://127.0.0.1:1/"
    assert reachable([here, gone, silent]) == {here: True, gone: False, silent: False}
