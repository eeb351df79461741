"""The language host of YAML comes out of the engine's release where that can be had, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolchain.release_server import Server
from toolchain import distribution, releases, yaml_host

NOWHERE = "http://127.0.0.1:9"


def test_it_is_taken_out_of_the_release_and_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert yaml_host.found(tmp_path) is None
    monkeypatch.setenv("KUBE_HA_RELEASES_URL", server.url)
    made = yaml_host.ensure(tmp_path)
    assert [path.name for path in made.iterdir()] == ["pulumi-language-yaml"]
    assert (made / "pulumi-language-yaml").read_text() == "# for tests\n"
    assert [path.name for path in (tmp_path / "engine").iterdir()] == [made.name]
    monkeypatch.setenv("KUBE_HA_RELEASES_URL", NOWHERE)
    assert yaml_host.ensure(tmp_path) == yaml_host.found(tmp_path) == made


def test_an_altered_release_is_not_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [archive] = server.folder.glob("pulumi/pulumi/releases/download/*/*.tar.gz")
    archive.write_bytes(archive.read_bytes() + b"!")
    monkeypatch.setenv("KUBE_HA_RELEASES_URL", server.url)
    with pytest.raises(releases.ReleaseError, match="Nothing was installed"):
        yaml_host.ensure(tmp_path)
    assert yaml_host.found(tmp_path) is None
    assert [*(tmp_path / "engine").iterdir()] == []


def test_without_releases_and_without_go_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBE_HA_RELEASES_URL", NOWHERE)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(distribution.BuildError, match="there is no Go compiler"):
        yaml_host.ensure(tmp_path)
