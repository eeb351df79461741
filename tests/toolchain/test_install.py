"""The installer takes official releases where they can be had, and verifies them; else it is in."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.toolchain.release_server import ENGINE, Server
from toolchain import releases, standins

_ROOT = Path(__file__).resolve().parents[2]
_VERSION = (_ROOT / ".pulumi.version").read_text(encoding="utf-8").strip()


@dataclass(frozen=True, slots=True)
class Installer:
    """Runs the installer into a folder of the test's own, with a cache of its own."""

    folder: Path

    @property
    def into(self) -> Path:
        """What .local is in a checkout."""
        return self.folder / "local"

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run to the end; stdout and stderr together."""
        own = {"KUBE_HA_CACHE": str(self.folder / "cache"), **environment}
        return subprocess.run(
            [sys.executable, "-m", "toolchain.install", "--into", str(self.into), *words],
            cwd=_ROOT,
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )

    def plugin(self, name: str, version: str) -> Path:
        """The program of an installed plugin."""
        return self.into / f"pulumi/plugins/resource-{name}-v{version}/pulumi-resource-{name}"


@pytest.fixture
def installer(tmp_path: Path) -> Installer:
    """An installer that has never run."""
    return Installer(tmp_path)


def test_official_releases_are_used_where_they_can_be_had(
    installer: Installer, server: Server
) -> None:
    done = installer.run(KUBE_HA_RELEASES_URL=server.url)
    assert done.returncode == 0, done.stdout
    assert "command 1.2.1 official, tls 5.6.2 official" in done.stdout
    assert (installer.into / "bin/pulumi").read_text() == ENGINE
    assert "official host" in (installer.into / "bin/pulumi-language-python").read_text()
    assert installer.plugin("command", "1.2.1").read_text() == "# command\n"
    assert not (installer.into / "bin/pulumi-language-nodejs").exists()


def test_the_second_run_asks_nobody(installer: Installer, server: Server) -> None:
    installer.run(KUBE_HA_RELEASES_URL=server.url)
    calls = (installer.into / "pulumi/calls").read_text()
    again = installer.run(KUBE_HA_RELEASES_URL="http://127.0.0.1:9")
    assert again.returncode == 0, again.stdout
    assert "official" in again.stdout
    assert (installer.into / "pulumi/calls").read_text() == calls


def test_a_second_checkout_takes_everything_from_the_cache(
    installer: Installer, server: Server, tmp_path: Path
) -> None:
    installer.run(KUBE_HA_RELEASES_URL=server.url)
    other = Installer(tmp_path / "other")
    other.folder.mkdir()
    done = other.run(
        KUBE_HA_RELEASES_URL="http://127.0.0.1:9", KUBE_HA_CACHE=str(tmp_path / "cache")
    )
    assert done.returncode == 0, done.stdout
    assert other.plugin("tls", "5.6.2").read_text() == "# tls\n"


@pytest.mark.parametrize("altered", ["engine", "plugin"])
def test_an_altered_download_is_not_installed(
    installer: Installer, server: Server, altered: str
) -> None:
    release = (
        releases.engine(_VERSION) if altered == "engine" else releases.plugin("command", "1.2.1")
    )
    [archive] = server.folder.glob(f"{release.repository}/releases/download/*/{release.file}")
    archive.write_bytes(archive.read_bytes() + b"!")
    done = installer.run(KUBE_HA_RELEASES_URL=server.url)
    assert done.returncode == 1
    assert "SHA-256 is" in done.stdout
    assert "Nothing was installed" in done.stdout
    assert not installer.plugin("command", "1.2.1").exists()
    leftovers = [path.name for path in (installer.folder / "cache/engine").iterdir()]
    assert not [name for name in leftovers if name.startswith("tmp")]


def test_a_release_without_this_system_is_said(installer: Installer, server: Server) -> None:
    [listed] = server.folder.glob("pulumi/pulumi/releases/download/*/*checksums.txt")
    listed.write_text("0  other\n")
    done = installer.run(KUBE_HA_RELEASES_URL=server.url)
    assert done.returncode == 1
    assert f"does not name {releases.engine(_VERSION).file}" in done.stdout


def test_a_plugin_that_cannot_be_had_gets_a_stand_in(installer: Installer, server: Server) -> None:
    [archive] = server.folder.glob("pulumi/pulumi-tls/releases/download/*/*checksums.txt")
    archive.unlink()
    done = installer.run(KUBE_HA_RELEASES_URL=server.url)
    assert done.returncode == 0, done.stdout
    assert "command 1.2.1 official, tls 5.6.2 stand-in" in done.stdout
    assert not standins.is_official(installer.plugin("tls", "5.6.2"))


def test_a_stand_in_never_replaces_an_official_plugin(installer: Installer, server: Server) -> None:
    installer.run(KUBE_HA_RELEASES_URL=server.url)
    plugin = installer.plugin("tls", "5.6.2")
    plugin.write_bytes(b"\x7fELF put here by the user")
    assert "tls 5.6.2 official" in installer.run(KUBE_HA_RELEASES_URL=server.url).stdout
    assert plugin.read_bytes() == b"\x7fELF put here by the user"


def test_only_a_download_fails_where_there_is_none(installer: Installer) -> None:
    done = installer.run("--source", "download", KUBE_HA_RELEASES_URL="http://127.0.0.1:9")
    assert done.returncode == 1
    assert done.stdout.startswith("toolchain: http://127.0.0.1:9/pulumi/pulumi/releases/")


def test_without_release_and_compiler_the_way_out_is_named(installer: Installer) -> None:
    done = installer.run(KUBE_HA_RELEASES_URL="http://127.0.0.1:9", PATH="/nonexistent")
    assert done.returncode == 1
    assert "there is no Go compiler. Install Go" in done.stdout


def test_the_plugins_are_those_of_the_python_packages() -> None:
    from toolchain.install import CLOUDS, PLUGINS

    for name, version in {**PLUGINS, **CLOUDS}.items():
        [told] = Path(sys.prefix).glob(
            f"lib/python3*/site-packages/pulumi_{name}/pulumi-plugin.json"
        )
        assert json.loads(told.read_text())["version"] == version


def test_the_project_asks_for_the_engine_that_it_is_tested_with_or_a_newer_one() -> None:
    """The SDK is never the older one: it asks the engine what that can do, not the other way round."""
    project = yaml.safe_load((_ROOT / "Pulumi.yaml").read_text(encoding="utf-8"))
    assert project["requiredPulumiVersion"] == f">={_VERSION} <4.0.0"
    pins = (_ROOT / "requirements.txt").read_text(encoding="utf-8")
    found = re.search(r"^pulumi==(\S+)$", pins, re.MULTILINE)
    assert found
    assert _numbers(_VERSION) <= _numbers(found[1]) < (4,)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def test_plugins_of_clouds_are_for_stacks_that_name_them(tmp_path: Path) -> None:
    from toolchain.install import used_clouds

    (tmp_path / "Pulumi.a.yaml").write_text("machines:\n  provider: adopt\n  # provider: aws\n")
    assert used_clouds(tmp_path) == []
    (tmp_path / "Pulumi.b.yaml").write_text("machines: {provider: gcp, gcp: {}}\n")
    assert used_clouds(tmp_path) == ["gcp"]
