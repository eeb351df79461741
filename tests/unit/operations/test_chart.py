"""`make chart` against a repository of this computer: the packed chart, its sum, and what goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from operations import chart
from stacks.load import load
from tests.unit.charts import SETTINGS, packed
from tests.unit.configs import lab


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *_: object) -> None:
        del format


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[str]:
    """One that has web 1.0.0."""
    packed(tmp_path / "served/web-1.0.0.tgz", {"settings": SETTINGS})
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path / "served"))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    entry = {
        "apiVersion": "v2",
        "name": "web",
        "version": "1.0.0",
        "urls": [f"{url}/web-1.0.0.tgz"],
    }
    index = {"apiVersion": "v1", "entries": {"web": [entry]}}
    (tmp_path / "served/index.yaml").write_text(yaml.safe_dump(index))
    yield url
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this computer's helm is touched."""
    for name in ("CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"HELM_{name}_HOME", str(tmp_path / name))


def fetched(repository: str, into: Path, version: str = "1.0.0") -> int:
    return chart.main(["web", version, "--repo", repository, "--into", str(into)])


def test_what_is_printed_is_what_a_stack_file_takes(
    repository: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetched(repository, tmp_path / "charts") == 0
    out = capsys.readouterr().out
    assert fetched(repository, tmp_path / "charts") == 0  # the same again
    said = yaml.safe_load(out)["kube-ha:addons"]
    assert load(lab({"addons": said})).addons["web"].chart is not None
    assert said["web"]["chart"]["file"] == str(tmp_path / "charts/web-1.0.0.tgz")


def test_a_version_that_has_become_something_else_is_not_taken(
    repository: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetched(repository, tmp_path / "charts") == 0
    packed(tmp_path / "served/web-1.0.0.tgz", {"settings": SETTINGS + "# another\n"})
    assert fetched(repository, tmp_path / "charts") == 1
    assert "the repository has something else under this version" in capsys.readouterr().err


def test_what_cannot_be_had_is_told(
    repository: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetched(repository, tmp_path / "charts", "9.9.9") == 1
    err = capsys.readouterr().err
    assert 'chart "web" version "9.9.9" not found' in err
    assert "do: see that this computer reaches the repository" in err
    assert not (tmp_path / "charts").exists()
    assert chart.main(["web", "1.0.0"]) == 1
    assert "is either oci://registry/path, or a name with --repo" in capsys.readouterr().err
