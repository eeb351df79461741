"""Modules are built once, again when something in them changed, and fail with the reason."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest

from artifacts import build
from artifacts.build import BuildError
from artifacts.lock import Module

MAIN = 'package main\n\nvar version = "none"\n\nfunc main() { print(version) }\n'


@pytest.fixture
def module(tmp_path: Path) -> Module:
    """A program without dependencies."""
    if shutil.which("go") is None:
        pytest.skip("there is no Go on this computer")
    folder = tmp_path / "greeter"
    folder.mkdir()
    (folder / "go.mod").write_text("module kube-ha.local/greeter\n\ngo 1.21\n")
    (folder / "main.go").write_text(MAIN)
    return Module(
        name="greeter",
        version="1.2.3",
        folder=folder,
        packages=(".",),
        rename={"greeter": "greeterd"},
        ldflags="-X main.version=v1.2.3",
        tags="",
        cgo=False,
        cold_s=1,
    )


def test_a_binary_is_renamed_and_knows_its_version(module: Module, tmp_path: Path) -> None:
    binaries = build.build(module, build.host_arch(), tmp_path / "cache")
    assert list(binaries) == ["greeterd"]
    said = subprocess.run([binaries["greeterd"]], capture_output=True, check=True, timeout=10)
    assert said.stderr == b"v1.2.3"


def test_a_second_build_needs_no_compiler(
    module: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build.build(module, "amd64", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build.build(module, "amd64", tmp_path / "cache") == first


def test_the_key_follows_the_sources_and_the_flags(module: Module) -> None:
    before = build.key(module)
    assert build.key(dataclasses.replace(module, ldflags="-X main.version=v2")) != before
    assert build.key(dataclasses.replace(module, tags="seccomp")) != before
    assert build.key(dataclasses.replace(module, cold_s=100)) == before
    (module.folder / "go.sum").write_text("pinned\n")
    assert build.key(module) != before


def test_tests_of_a_package_become_a_program_of_their_name(module: Module, tmp_path: Path) -> None:
    text = 'package main\n\nimport "testing"\n\nfunc TestVersion(*testing.T) { print(version) }\n'
    (module.folder / "main_test.go").write_text(text)
    # The tested package is not `main` there.
    flags = "-X kube-ha.local/greeter.version=v1.2.3"
    tested = dataclasses.replace(
        module, tests={"greeter.test": "kube-ha.local/greeter"}, ldflags=flags
    )
    assert build.key(tested) != build.key(module)
    made = build.build(tested, build.host_arch(), tmp_path / "cache")
    assert list(made) == ["greeter.test", "greeterd"]
    said = subprocess.run([made["greeter.test"]], capture_output=True, check=True, timeout=10)
    assert said.stderr == b"v1.2.3"


def test_a_failed_build_shows_the_compilers_words_and_leaves_nothing(
    module: Module, tmp_path: Path
) -> None:
    (module.folder / "main.go").write_text("package main\n\nfunc main() { undefinedName() }\n")
    with pytest.raises(BuildError, match="undefined: undefinedName") as error:
        build.build(module, "amd64", tmp_path / "cache")
    assert str(tmp_path / "cache" / "built" / "greeter.log") in str(error.value)
    assert [path.name for path in (tmp_path / "cache" / "built").iterdir()] == ["greeter.log"]


def test_without_go_the_way_out_is_named(
    module: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="install Go"):
        build.build(module, "amd64", tmp_path / "cache")


def test_what_is_partly_c_is_not_built_for_another_architecture(
    module: Module, tmp_path: Path
) -> None:
    other = "arm64" if build.host_arch() == "amd64" else "amd64"
    with pytest.raises(BuildError, match=f"can only be built on {other}"):
        build.build(dataclasses.replace(module, cgo=True), other, tmp_path / "cache")
