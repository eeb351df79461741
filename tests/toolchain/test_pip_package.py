"""The package as somebody else installs it: into an environment that has never seen this checkout."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stacks.version import VERSION
from tests.toolchain.project import Project
from tests.unit.configs import adopted

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("artifacts", "components", "stacks")
# What a program of the package reads beside its modules; modules of builds are for `make bundle` alone.
DATA = (".sh", ".yaml", ".json")
NOT_INSTALLED = "artifacts/build/"
PROGRAM = f"""
import pulumi
from components.kubernetes_cluster import KubernetesCluster

cluster = KubernetesCluster("kubernetes", {adopted()!r})
pulumi.export("url", cluster.endpoint)
"""


def tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the package and what that says it needs, from the index that set-up uses."""
    folder = tmp_path_factory.mktemp("pip")
    for name in tracked():  # a copy, as setuptools builds in the folder of the sources
        if (ROOT / name).is_file():
            (folder / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "checkout" / name)
    made = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", made], check=True)
    pip = [f"{made}/bin/pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    words = ["-c", f"{ROOT}/requirements.txt", f"{folder}/checkout"]
    done = subprocess.run([*pip, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


def test_files_of_the_package_are_all_there(environment: Path) -> None:
    (packages,) = environment.glob("lib/python3*/site-packages")
    wanted = [
        name
        for name in tracked()
        if name.partition("/")[0] in PACKAGES
        and name.endswith((".py", *DATA))
        and not name.startswith(NOT_INSTALLED)
    ]
    assert {"artifacts/lock.yaml", "components/scripts/lib.sh"} <= set(wanted)
    for name in wanted:
        assert (packages / name).read_bytes() == (ROOT / name).read_bytes(), name
    assert not (packages / "tests").exists()
    assert (packages / f"kube_ha-{VERSION}.dist-info").is_dir()


def test_a_program_of_that_environment_previews_a_whole_cluster(
    environment: Path, tmp_path: Path
) -> None:
    project = Project.make(tmp_path / "project", PROGRAM, virtualenv=str(environment))
    ran = project.pulumi("preview", "--json", PYTHONPATH="").succeeded()
    steps = json.loads(ran.text[ran.text.index("{") :])["steps"]
    (copied,) = [one for one in steps if one["urn"].endswith("::prod-worker-1-scripts")]
    assert f"{environment}/lib/python3" in json.dumps(copied), "scripts of another place"
    assert str(ROOT / "components") not in ran.text
