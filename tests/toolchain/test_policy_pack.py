"""examples/policy with the real engine: a violation ends a run before anything is touched."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.toolchain.project import Project

_ROOT = Path(__file__).resolve().parents[2]
_PACK = _ROOT / "examples/policy"
_PROGRAM = "import pulumi\npulumi.Stash('touched', input='x')\n"
_POOLS = {"master": {"roles": ["etcd", "master"], "count": 3}}
# Language hosts other than the official ones do not start policy packs; the engine starts what has this name then.
_RUNTIME = "kube-ha-test"
_START = """#!/bin/sh
cd "$2" && PYTHONPATH={sdk} exec {python} -u -c '
import runpy, sys
sys.path.insert(0, ".")
runpy.run_path("__main__.py", run_name="__main__")' "$1" "$2"
"""


def _rules() -> ModuleType:
    spec = importlib.util.spec_from_file_location("policy_rules", _PACK / "rules.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RULES = _rules()


@pytest.fixture(scope="module")
def sdk() -> Path:
    """The policy SDK that the pack pins, beside the environment: its own pins are older than ours."""
    pinned = (_PACK / "requirements.txt").read_text().split()
    (wanted,) = [line for line in pinned if line.startswith("pulumi-policy==")]
    folder = _ROOT / ".local/tests" / wanted
    if not folder.exists():
        new = folder.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        words = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"]
        subprocess.run([sys.executable, "-m", "pip", *words, str(new), wanted], check=True)
        new.rename(folder)
    return folder


@pytest.fixture
def pack(tmp_path: Path, sdk: Path) -> Path:
    folder = tmp_path / "pack"
    shutil.copytree(_PACK, folder, ignore=shutil.ignore_patterns("__pycache__"))
    settings = yaml.safe_load((folder / "PulumiPolicy.yaml").read_text())
    assert settings["runtime"] == "python"
    (folder / "PulumiPolicy.yaml").write_text(yaml.safe_dump({**settings, "runtime": _RUNTIME}))
    start = tmp_path / "bin" / f"pulumi-analyzer-policy-{_RUNTIME}"
    start.parent.mkdir()
    start.write_text(_START.format(sdk=sdk, python=sys.executable))
    start.chmod(0o755)
    return folder


def _config(project: Project, config: Mapping[str, object]) -> None:
    file = project.folder / "Pulumi.test.yaml"
    found = yaml.safe_load(file.read_text()) or {}
    listed = {f"kube-ha:{name}": value for name, value in config.items()}
    file.write_text(yaml.safe_dump({**found, "config": listed}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"pools": _POOLS}, None),
        ({"pools": {"master": {"roles": ["etcd"], "count": 1}}}, "1 etcd member(s) in stack test"),
        ({"pools": _POOLS, "allow": ["network-backend"]}, "allow: network-backend is not approved"),
        ({"pools": _POOLS, "allow": ["approved-one"]}, None),
    ],
)
def test_an_update_ends_before_anything_is_touched(
    tmp_path: Path, pack: Path, config: Mapping[str, object], said: str | None
) -> None:
    project = Project.make(tmp_path / "project", _PROGRAM)
    _config(project, config)
    (tmp_path / "config.json").write_text(
        '{"three-members": {"stacks": ["test"]}, "approved-overrides": {"approved": ["approved-one"]}}'
    )
    words = ("--policy-pack", str(pack), "--policy-pack-config", str(tmp_path / "config.json"))
    path = f"{tmp_path / 'bin'}:{project.environment['PATH']}"
    ran = project.pulumi("up", "--yes", "--skip-preview", *words, PATH=path)
    exported = project.pulumi("stack", "export").succeeded().text
    assert (ran.code != 0, "touched" in exported) == (said is not None, said is None), ran.text
    assert said is None or said in ran.text


@pytest.mark.parametrize(
    ("nodes", "count"),
    [
        ({}, 3),
        ({"worker-1": {"state": "removed"}}, 3),
        ({"master-2": {"state": "removed"}}, 2),
        ({"master-2": {"state": "lost"}, "master-3": {"labels": {"a": "b"}}}, 2),
        ({"etcd-a": {"state": "decommissioned"}}, 2),
    ],
)
def test_members_are_those_that_remain(nodes: Mapping[str, object], count: int) -> None:
    pools = {**_POOLS, "worker": {"roles": ["worker"], "count": 9}}
    if "etcd-a" in nodes:
        hosts = [{"name": f"etcd-{letter}"} for letter in "abc"]
        pools = {"etcd": {"roles": ["etcd"], "hosts": hosts}}
    found = [*RULES.members("prod-eu", pools, nodes, ["prod*"])]
    assert bool(found) == (count < 3)
    assert not found or found[0].startswith(f"pools: {count} etcd")
    assert [*RULES.members("dev", {}, {}, ["prod*"])] == []


def test_a_host_without_a_key_is_named_where_keys_are_not_asked_for() -> None:
    hosts = [{"name": "a", "hostKey": "ssh-ed25519 AAAA"}, {"name": "b"}]
    pools = {"worker": {"roles": ["worker"], "hosts": hosts}}
    machines = {"ssh": {"insecureIgnoreHostKey": True}}
    (found,) = RULES.host_keys(machines, pools)
    assert found.startswith("pools.worker.hosts[1].hostKey: is missing")
    assert [*RULES.host_keys({}, pools)] == []
