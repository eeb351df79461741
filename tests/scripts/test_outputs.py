"""What a cluster gives to other programs: an inventory without secrets, a kubeconfig for few."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from cryptography.fernet import Fernet

from tests.scripts.project import Project, project

KUBECONFIG = "apiVersion: v1\nkind: Config\nusers: [{user: {client-key-data: SECRET}}]\n"
OUTPUTS = {
    "kubeconfig": KUBECONFIG,
    "endpoint": "https://api.prod.example.com:6443",
    "clusterId": "0123456789ab",
    "nodes": {"master-1": {"roles": ["etcd", "master"], "address": "192.0.2.11", "versions": {}}},
    "ssh": {
        "master-1": {
            "host": "192.0.2.11",
            "port": 22,
            "user": "ops",
            "hostKey": "ecdsa-sha2-nistp256 AAAA",
            "privateKey": "-----BEGIN OPENSSH PRIVATE KEY-----\nSECRET\n",
        }
    },
    "applied": "{}",
}
FOLDER = ".local/outputs/prod"


@pytest.fixture
def prod(tmp_path: Path) -> Project:
    found = project(tmp_path)
    found.says(stack=json.dumps(OUTPUTS))
    return found


@pytest.fixture
def key() -> str:
    return Fernet.generate_key().decode()


def files(prod: Project) -> dict[str, int]:
    """Modes by name."""
    return {p.name: p.stat().st_mode & 0o777 for p in (prod.folder / FOLDER).iterdir()}


def test_the_kubeconfig_is_its_owners_alone(prod: Project) -> None:
    (prod.folder / FOLDER).mkdir(parents=True)
    prod.says(**{f"{FOLDER}/kubeconfig": "old"})
    prod.run("operations.outputs", "prod")
    assert prod.read(f"{FOLDER}/kubeconfig") == KUBECONFIG
    assert files(prod) == {"kubeconfig": 0o600, "inventory.json": 0o600}
    assert (prod.folder / FOLDER).stat().st_mode & 0o777 == 0o700


def test_the_inventory_tells_how_machines_are_reached_and_no_secret(prod: Project) -> None:
    prod.run("operations.outputs", "prod")
    text = prod.read(f"{FOLDER}/inventory.json")
    assert "SECRET" not in text
    assert json.loads(text) == {
        "endpoint": "https://api.prod.example.com:6443",
        "clusterId": "0123456789ab",
        "nodes": {
            "master-1": {
                "roles": ["etcd", "master"],
                "address": "192.0.2.11",
                "versions": {},
                "ssh": {
                    "host": "192.0.2.11",
                    "port": 22,
                    "user": "ops",
                    "hostKey": "ecdsa-sha2-nistp256 AAAA",
                },
            }
        },
    }


def test_only_paths_are_printed(prod: Project, key: str) -> None:
    told = prod.run("operations.outputs", "prod")
    assert told == f"{FOLDER}/inventory.json\n{FOLDER}/kubeconfig\n"
    told = prod.run("operations.outputs", "prod", KUBE_HA_SEAL_KEY=key)
    assert told == f"{FOLDER}/inventory.json\n{FOLDER}/kubeconfig.sealed\n"


def test_with_a_key_nothing_lies_in_clear_and_the_same_key_opens_it(
    prod: Project, key: str
) -> None:
    prod.run("operations.outputs", "prod")
    prod.run("operations.outputs", "prod", KUBE_HA_SEAL_KEY=key)
    assert files(prod) == {"kubeconfig.sealed": 0o600, "inventory.json": 0o600}
    assert "SECRET" not in prod.read(f"{FOLDER}/kubeconfig.sealed")
    told = prod.run("operations.outputs", "--unseal", "prod", KUBE_HA_SEAL_KEY=key)
    assert told == f"{FOLDER}/kubeconfig\n"
    assert prod.read(f"{FOLDER}/kubeconfig") == KUBECONFIG
    assert files(prod)["kubeconfig"] == 0o600


def test_opening_asks_no_engine(prod: Project, key: str) -> None:
    prod.run("operations.outputs", "prod", KUBE_HA_SEAL_KEY=key)
    asked = len(prod.calls)
    prod.run("operations.outputs", "--unseal", "prod", KUBE_HA_SEAL_KEY=key)
    assert len(prod.calls) == asked


def test_another_key_an_old_seal_and_a_changed_one_do_not_open(prod: Project, key: str) -> None:
    prod.run("operations.outputs", "prod", KUBE_HA_SEAL_KEY=key)
    sealed = prod.read(f"{FOLDER}/kubeconfig.sealed")
    other = Fernet.generate_key().decode()
    old = Fernet(key).encrypt_at_time(KUBECONFIG.encode(), int(time.time()) - 25 * 3600).decode()
    for text, used in ((sealed, other), (old, key), (sealed[:-8] + "AAAAAAA=", key)):
        prod.says(**{f"{FOLDER}/kubeconfig.sealed": text})
        told = prod.run("operations.outputs", "--unseal", "prod", KUBE_HA_SEAL_KEY=used, fails=True)
        assert "does not open" in told
        assert "kubeconfig" not in files(prod)


@pytest.mark.parametrize("key", ["short", "x" * 44])
def test_what_is_no_key_is_told_with_the_way_to_one(prod: Project, key: str) -> None:
    told = prod.run("operations.outputs", "prod", KUBE_HA_SEAL_KEY=key, fails=True)
    assert "KUBE_HA_SEAL_KEY is not a key" in told
    assert "do: openssl rand -base64 32 | tr '+/' '-_'" in told
    assert "kubeconfig" not in files(prod)


def test_the_way_to_a_key_makes_one(prod: Project) -> None:
    made = subprocess.run(
        ["bash", "-c", "openssl rand -base64 32 | tr '+/' '-_'"],
        capture_output=True,
        text=True,
        check=True,
    )
    prod.run("operations.outputs", "prod", KUBE_HA_SEAL_KEY=made.stdout.strip())


def test_what_was_never_applied_or_sealed_is_told(prod: Project, key: str) -> None:
    prod.says(stack="{}")
    assert "never applied to its end" in prod.run("operations.outputs", "prod", fails=True)
    told = prod.run("operations.outputs", "--unseal", "prod", fails=True, KUBE_HA_SEAL_KEY=key)
    assert "there is no sealed kubeconfig" in told


REAL = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "prod", "cluster": {"server": "https://new"}}],
    "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "prod"}}],
    "users": [{"name": "prod", "user": {"client-key-data": "SECRET"}}],
    "current-context": "prod",
}
OTHER = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [
        {"name": "prod", "cluster": {"server": "https://old"}},
        {"name": "other", "cluster": {"server": "https://other"}},
    ],
    "contexts": [{"name": "other", "context": {"cluster": "other", "user": "other"}}],
    "users": [{"name": "other", "user": {"token": "t"}}],
    "current-context": "other",
    "preferences": {"colors": True},
}


@pytest.fixture
def real(prod: Project) -> Project:
    prod.says(stack=json.dumps({**OUTPUTS, "kubeconfig": yaml.safe_dump(REAL)}))
    return prod


def test_the_kubeconfig_is_written_and_the_line_that_uses_it_printed(real: Project) -> None:
    told = real.run("operations.kubeconfig", "prod", KUBE_HA_SEAL_KEY="")
    assert told == f"export KUBECONFIG={real.folder / FOLDER}/kubeconfig\n"
    assert yaml.safe_load(real.read(f"{FOLDER}/kubeconfig")) == REAL
    assert files(real) == {"kubeconfig": 0o600}
    assert not (real.folder / ".kube").exists()


def test_it_is_merged_only_when_asked_and_what_was_there_stays(real: Project) -> None:
    (real.folder / ".kube").mkdir()
    real.says(**{".kube/config": yaml.safe_dump(OTHER)})
    for _ in range(2):
        told = real.run("operations.kubeconfig", "prod", "--merge")
        assert "SECRET" not in told
        assert "current context: other" in told
    merged = yaml.safe_load(real.read(".kube/config"))
    assert {entry["name"]: entry["cluster"]["server"] for entry in merged["clusters"]} == {
        "other": "https://other",
        "prod": "https://new",
    }
    assert [entry["name"] for entry in merged["users"]] == ["other", "prod"]
    assert merged["preferences"] == {"colors": True}
    assert (real.folder / ".kube/config").stat().st_mode & 0o777 == 0o600
    assert (real.folder / ".kube/config.before-kube-ha").stat().st_mode & 0o777 == 0o600


def test_without_a_kubeconfig_of_the_user_one_is_made(real: Project) -> None:
    real.run("operations.kubeconfig", "prod", "--merge")
    assert yaml.safe_load(real.read(".kube/config")) == REAL


@pytest.mark.parametrize(
    "text", ["[", "kind: Pod", "kind: Config\nclusters: [x]", "kind: Config\nusers: 7"]
)
def test_what_is_not_a_kubeconfig_is_left_alone(real: Project, text: str) -> None:
    (real.folder / ".kube").mkdir()
    real.says(**{".kube/config": text})
    told = real.run("operations.kubeconfig", "prod", "--merge", fails=True)
    assert ".kube/config is not a kubeconfig" in told
    assert real.read(".kube/config") == text
