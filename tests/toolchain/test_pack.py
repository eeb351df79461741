"""The tool of a bundle: packed where a network is, complete where none is, and refused where it does not fit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.no_network import without_network
from tests.toolchain.release_server import Server
from toolchain import releases

ROOT = Path(__file__).resolve().parents[2]
# All that `make engine` is, and one wheel in the place of all packages.
PARTS = ("toolchain", "lab/setup.sh", "lab/engine.sh", "Makefile", ".pulumi.version")
LISTS = ("requirements.txt", "requirements-dev.txt", "toolchain/requirements.txt")
# An address that nobody has, as the only way out.
NOBODY = "http://127.0.0.1:9"


def wheel(folder: Path, name: str = "tiny") -> Path:
    """A package of one module, by hand: nothing is built, nobody is asked."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr(f"{name}.py", "")
        packed.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        packed.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        packed.writestr(f"{about}/RECORD", "")
    return made


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout on a computer of its own, which has its own cache."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Checkout:
        """Of this one; each list of packages names one."""
        for part in PARTS:
            target = folder / part
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / part).is_dir():
                shutil.copytree(
                    ROOT / part, target, ignore=shutil.ignore_patterns("__pycache__", "*_test")
                )
            else:
                shutil.copy(ROOT / part, target)
        for name in (*LISTS, "requirements-plan.txt"):
            (folder / name).write_text("tiny==1.0\n")
        return cls(folder)

    @property
    def plugin(self) -> Path:
        return self.folder / ".local/pulumi/plugins/resource-tls-v5.6.2/pulumi-resource-tls"

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Stdout and stderr together. Without a network, unless an index of packages is named."""
        kept = {
            key: text
            for key, text in os.environ.items()
            if not key.startswith(("PIP_", "KUBE_HA_", "VIRTUAL_ENV", "BUNDLE"))
        }
        own = {"HOME": str(self.folder), "KUBE_HA_CACHE": str(self.folder / "cache")}
        every = {**kept, **own, **environment}
        return subprocess.run(
            words if "PIP_FIND_LINKS" in environment else without_network(words, every),
            cwd=self.folder,
            env=every,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )

    def pack(self, bundle: Path, server: Server, wheels: Path, *words: str) -> str:
        bundle.mkdir(exist_ok=True)
        done = self.run(
            *(sys.executable, "-m", "toolchain.pack", "--into", str(bundle), *words),
            KUBE_HA_RELEASES_URL=server.url,
            PIP_NO_INDEX="1",
            PIP_FIND_LINKS=str(wheels),
        )
        return f"{done.returncode}\n{done.stdout}"

    def make_engine(self, bundle: Path) -> subprocess.CompletedProcess[str]:
        return self.run("make", "engine", f"BUNDLE={bundle}", KUBE_HA_RELEASES_URL=NOBODY)


@pytest.fixture
def outside(tmp_path: Path) -> Checkout:
    """Where a network is."""
    return Checkout.make(tmp_path / "outside")


@pytest.fixture
def inside(tmp_path: Path) -> Checkout:
    """Where none is."""
    return Checkout.make(tmp_path / "inside")


@pytest.fixture
def carried(tmp_path: Path, outside: Checkout, server: Server) -> Path:
    """A bundle as it arrives: files and no links, and not one of them may be run."""
    made = tmp_path / "made"
    told = outside.pack(made, server, wheel(tmp_path / "index").parent)
    assert told.startswith("0\n"), told
    arrived = tmp_path / "carried"
    shutil.copytree(made, arrived, copy_function=shutil.copyfile)
    return arrived


def test_a_computer_without_a_network_gets_the_tool_that_was_packed(
    inside: Checkout, carried: Path
) -> None:
    done = inside.make_engine(carried)
    assert done.returncode == 0, done.stdout
    assert "language host official, command 1.2.1 official, tls 5.6.2 official" in done.stdout
    assert os.access(inside.folder / ".local/bin/pulumi", os.X_OK)
    assert inside.plugin.read_text() == "# tls\n"
    imported = inside.run(str(inside.folder / ".venv/bin/python"), "-c", "import tiny")
    assert imported.returncode == 0, imported.stdout
    assert (inside.folder / ".local/bundle").resolve() == carried
    again = inside.run("make", "engine", KUBE_HA_RELEASES_URL=NOBODY)
    assert again.returncode == 0, "what was taken once is asked for again: " + again.stdout


def test_what_is_packed_is_in_its_bill_of_materials(carried: Path) -> None:
    found = json.loads((carried / "tool/sbom.cdx.json").read_text())
    listed = {one["name"]: one["version"] for one in found["components"]}
    engine = (ROOT / ".pulumi.version").read_text().strip()
    plugins = {"pulumi-command plugin": "1.2.1", "pulumi-tls plugin": "5.6.2"}
    assert listed == {"pulumi": engine, **plugins, "tiny": "1.0"}
    assert "sbom.cdx.json" in json.loads((carried / "tool/manifest.json").read_text())["files"]


def test_without_a_bundle_the_same_computer_is_told_what_it_lacks(inside: Checkout) -> None:
    """Else the test above would pass with a network that leaks in."""
    assert inside.run("make", "engine", KUBE_HA_RELEASES_URL=NOBODY).returncode != 0


def test_what_is_packed_is_packed_once(
    outside: Checkout, server: Server, tmp_path: Path, carried: Path
) -> None:
    # Neither the index nor the releases are there any more.
    shutil.rmtree(tmp_path / "index")
    shutil.rmtree(server.folder)
    told = outside.pack(tmp_path / "other", server, tmp_path / "index")
    assert told.startswith("0\n"), told
    made, other = ((tmp_path / name / "tool").resolve() for name in ("made", "other"))
    assert made == other


def test_a_plugin_of_a_cloud_that_is_asked_for_has_to_be_had(
    outside: Checkout, server: Server, tmp_path: Path
) -> None:
    index = wheel(tmp_path / "index").parent
    told = outside.pack(tmp_path / "made", server, index, "--cloud", "aws")
    assert told.startswith("1\n")
    assert "pulumi-aws_7.51.1_checksums.txt" in told
    server.offer(releases.plugin("aws", "7.51.1"), {"pulumi-resource-aws": "# aws\n"})
    assert outside.pack(tmp_path / "made", server, index, "--cloud", "aws").startswith("0\n")
    packed = {path.name for path in (tmp_path / "made/tool/engine").iterdir()}
    assert releases.plugin("aws", "7.51.1").file in packed


def _altered(tool: Path) -> str:
    (found,) = (tool / "wheels").iterdir()
    found.write_bytes(found.read_bytes() + b"!")
    return f"wheels/{found.name} has SHA-256"


def _missing(tool: Path) -> str:
    lost = tool / "engine" / releases.plugin("tls", "5.6.2").file
    lost.unlink()
    return f"engine/{lost.name} is missing"


def _added(tool: Path) -> str:
    return f"wheels/{wheel(tool / 'wheels', 'other').name} is not in manifest.json"


def _of_another_python(tool: Path) -> str:
    told = json.loads((tool / "manifest.json").read_text())
    told["fits"]["python"] = "3.1"
    (tool / "manifest.json").write_text(json.dumps(told))
    return "it is for python 3.1, here is"


def test_everything_that_is_wrong_with_a_tool_is_told_at_once(
    inside: Checkout, carried: Path
) -> None:
    spoil: list[Callable[[Path], str]] = [_altered, _missing, _added, _of_another_python]
    expected = [each(carried / "tool") for each in spoil]
    done = inside.make_engine(carried)
    assert done.returncode != 0
    for words in expected:
        assert words in done.stdout
    assert not (inside.folder / ".venv").exists(), "installed before it was looked at"
    assert not (inside.folder / "cache/engine").exists()


def test_a_tool_of_other_versions_is_refused(inside: Checkout, carried: Path) -> None:
    (inside.folder / "requirements.txt").write_text("tiny==1.1\n")
    done = inside.make_engine(carried)
    assert done.returncode != 0
    assert "it is for versions" in done.stdout
    assert "carry the checkout that made the bundle" in done.stdout


def test_a_bundle_without_a_tool_is_refused(inside: Checkout, tmp_path: Path) -> None:
    done = inside.make_engine(tmp_path)
    assert done.returncode != 0
    assert "tool/manifest.json cannot be read" in done.stdout
    assert "carry what `make bundle` made" in done.stdout
