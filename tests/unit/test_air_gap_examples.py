"""What people without a way to the internet copy: servers of a bundle, and the tool as one image."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from artifacts.lock import read

ROOT = Path(__file__).resolve().parents[2]
MIRROR = ROOT / "examples/mirror"
CONTAINERFILE = ROOT / "Containerfile"
SERVERS = ["nginx.conf", "Caddyfile"]


def text(name: str) -> str:
    return (MIRROR / name).read_text()


def mirror() -> dict[str, str]:
    config = yaml.safe_load((ROOT / "examples/air-gap.yaml").read_text())["config"]
    found: dict[str, str] = config["kube-ha:mirror"]
    return found


@pytest.mark.parametrize("name", SERVERS)
def test_servers_answer_where_the_example_asks_and_guard_both_doors(name: str) -> None:
    conf = re.sub(r"#.*", "", text(name))
    assert conf.count("{") == conf.count("}")
    assert mirror()["url"] == "https://mirror.example.com"
    port = mirror()["registry"].rpartition(":")[2]
    for wanted in (":443 {" if name == "Caddyfile" else "listen 443 ssl;", f"{port}"):
        assert wanted in conf
    assert "/srv/kube-ha/bundle/files" in conf
    assert yaml.safe_load(text("registry.yml"))["http"]["addr"] in conf
    if name == "Caddyfile":
        assert conf.count("import guarded") == 2
    else:
        # Before the servers, so that it is of both.
        assert conf.index("deny all;") < conf.index("server {")
    assert "192.0.2.0/24" in conf


def test_the_registry_only_reads_and_only_this_computer_asks_it() -> None:
    found = yaml.safe_load(text("registry.yml"))
    assert found["storage"]["maintenance"] == {"readonly": {"enabled": True}}
    assert found["http"]["addr"].startswith("127.0.0.1:")


def test_the_unit_starts_the_registry_by_its_file() -> None:
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text("kube-ha-registry.service"))
    assert unit["Service"]["ExecStart"].endswith("serve /etc/kube-ha-mirror/registry.yml")
    assert "/etc/kube-ha-mirror/registry.yml" in text("registry.yml").splitlines()[0]
    assert unit["Service"]["DynamicUser"] == "yes"
    assert unit["Install"]["WantedBy"] == "multi-user.target"


def test_the_page_names_every_file_of_the_example() -> None:
    page = (ROOT / "docs/install/serve-a-bundle.md").read_text()
    assert [path.name for path in MIRROR.iterdir() if path.name not in page] == []
    for key, value in mirror().items():
        assert f"{key}: {value}" in page


def test_the_image_is_made_as_a_linter_wants_it() -> None:
    linter = shutil.which("hadolint", path=f"{sys.prefix}/bin:{os.environ['PATH']}")
    assert linter is not None, "requirements-dev.txt has it"
    done = subprocess.run([linter, CONTAINERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_has_the_versions_of_the_lock_and_no_key_or_state() -> None:
    made = CONTAINERFILE.read_text()
    assert f"ARG KUBERNETES={read(None, 'amd64').kubernetes}" in made
    assert len(set(re.findall(r"^FROM (\S+)", made, re.MULTILINE))) == 1, "two bases"
    assert "latest" not in made
    assert re.findall(r"^USER (\d+)$", made, re.MULTILINE) == ["1000"]
    ignored = (ROOT / ".containerignore").read_text().split()
    assert {".local", ".env", ".git", ".venv", "Pulumi.*.yaml"} <= set(ignored)


def test_in_the_image_a_target_works_on_the_stack_files_that_are_mounted(tmp_path: Path) -> None:
    program, stacks = tmp_path / "kube-ha", tmp_path / "stacks"
    for folder in (program / "ci", program / ".local", stacks):
        folder.mkdir(parents=True)
    (program / "ci/in-image.sh").write_text((ROOT / "ci/in-image.sh").read_text())
    (program / "Makefile").write_text(
        "up:\n\t@cat Pulumi.$(STACK).yaml; echo said >.local/log/up\n"
    )
    (stacks / "Pulumi.prod.yaml").write_text("config of prod\n")
    for _ in range(2):
        done = subprocess.run(
            ["bash", program / "ci/in-image.sh", "up", "STACK=prod"],
            env={"PATH": os.environ["PATH"], "KUBE_HA_STACKS": str(stacks)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "config of prod\n"
    assert (stacks / ".local/log/up").read_text() == "said\n"
