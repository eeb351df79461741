"""The whole state of a stack, sealed: nothing of it is readable, and another backend takes it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.scripts.project import ROOT, Project, project

FOLDER = ".local/backups/prod"
# As the engine exports secrets in plain text.
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
RESOURCES = [
    {
        "urn": "urn:pulumi:prod::kube-ha::pulumi:pulumi:Stack::kube-ha-prod",
        "custom": False,
        "type": "pulumi:pulumi:Stack",
        "outputs": {"backupKey": {**SECRET, "plaintext": json.dumps("SECRET")}},
    }
]
STATE = {"version": 3, "deployment": {"resources": RESOURCES}}


@pytest.fixture
def prod(tmp_path: Path) -> Project:
    found = project(tmp_path)
    found.says(stack=json.dumps(STATE))
    return found


@pytest.fixture
def key() -> str:
    return Fernet.generate_key().decode()


def seal(prod: Project, key: str) -> Path:
    return prod.folder / prod.run("operations.sealed_state", "prod", KUBE_HA_STATE_KEY=key).strip()


def test_the_state_is_its_owners_alone_and_sealed(prod: Project, key: str) -> None:
    file = seal(prod, key)
    assert file.parent == prod.folder / FOLDER
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"SECRET" not in file.read_bytes()
    assert json.loads(Fernet(key).decrypt(file.read_bytes())) == STATE
    assert "--show-secrets" in prod.read("calls")


def test_without_a_key_no_secret_is_asked_for(prod: Project) -> None:
    for given in ({}, {"KUBE_HA_STATE_KEY": "short"}):
        told = prod.run("operations.sealed_state", "prod", fails=True, **given)
        assert "KUBE_HA_STATE_KEY is not a key" in told
        assert not (prod.folder / "calls").exists()


def test_an_empty_stack_is_nothing_to_keep(prod: Project, key: str) -> None:
    prod.says(stack=json.dumps({"version": 3, "deployment": {}}))
    told = prod.run("operations.sealed_state", "prod", fails=True, KUBE_HA_STATE_KEY=key)
    assert "has no resources" in told


def test_only_where_the_state_is_lost_it_opens(prod: Project, key: str) -> None:
    file = seal(prod, key)
    words = ("operations.sealed_state", "prod", "--open", str(file))
    told = prod.run(*words, fails=True, KUBE_HA_STATE_KEY=key)
    assert "has a state of its own" in told
    prod.says(
        stack=json.dumps({"version": 3, "deployment": {"secrets_providers": {"type": "new"}}})
    )
    plain = prod.folder / prod.run(*words, KUBE_HA_STATE_KEY=key).strip()
    assert plain.stat().st_mode & 0o777 == 0o600
    assert json.loads(plain.read_text())["deployment"] == {
        "resources": RESOURCES,
        "secrets_providers": {"type": "new"},
    }


def test_another_key_or_a_changed_file_does_not_open(prod: Project, key: str) -> None:
    file = seal(prod, key)
    prod.says(stack=json.dumps({"version": 3, "deployment": {}}))
    words = ("operations.sealed_state", "prod", "--open", str(file))
    told = prod.run(*words, fails=True, KUBE_HA_STATE_KEY=Fernet.generate_key().decode())
    assert "does not open" in told
    file.write_bytes(file.read_bytes()[:-8] + b"AAAAAAA=")
    assert "does not open" in prod.run(*words, fails=True, KUBE_HA_STATE_KEY=key)


ENGINE = ROOT / ".local/bin/pulumi"


@pytest.mark.slow
def test_another_backend_with_another_passphrase_takes_it(tmp_path: Path, key: str) -> None:
    """With the real engine: the secret is there again, and is in no file in plain text."""
    (tmp_path / "Pulumi.yaml").write_text("name: kube-ha\nruntime: python\n")

    def pulumi(where: str, *words: str) -> str:
        done = subprocess.run(
            [str(ENGINE), *words, "--stack", "prod", "--non-interactive"],
            cwd=tmp_path,
            env=environment(where),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def environment(where: str) -> dict[str, str]:
        (tmp_path / where).mkdir(exist_ok=True)
        return {
            "PATH": f"{ENGINE.parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "PULUMI_HOME": str(tmp_path / "home"),
            "PULUMI_BACKEND_URL": f"file://{tmp_path / where}",
            "PULUMI_CONFIG_PASSPHRASE": f"of {where}",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "KUBE_HA_STATE_KEY": key,
        }

    def operation(where: str, *words: str) -> str:
        return subprocess.run(
            [str(ROOT / ".venv/bin/python"), "-m", "operations.sealed_state", "prod", *words],
            cwd=tmp_path,
            env={**environment(where), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout.strip()

    pulumi("old", "stack", "init")
    state = json.loads(pulumi("old", "stack", "export"))
    state["deployment"]["resources"] = RESOURCES
    (tmp_path / "state.json").write_text(json.dumps(state))
    pulumi("old", "stack", "import", "--file", "state.json")
    sealed = operation("old")
    (tmp_path / "Pulumi.prod.yaml").unlink()  # holds the salt of the passphrase that is lost
    pulumi("new", "stack", "init")
    pulumi("new", "stack", "import", "--file", operation("new", "--open", sealed))
    assert json.loads(pulumi("new", "stack", "output", "--show-secrets", "--json")) == {
        "backupKey": "SECRET"
    }
    for folder in ("old", "new"):
        for file in (tmp_path / folder).rglob("*"):
            assert not file.is_file() or b'"SECRET"' not in file.read_bytes().replace(b"\\", b"")
