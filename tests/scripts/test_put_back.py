"""A machine that loses its power while its control plane lay aside comes back with it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.scripts.shell import SCRIPTS, Shell

VALUES = {"ADDRESS": "10.0.0.11"}
NAMES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


@pytest.fixture
def manifests(shell: Shell) -> Path:
    folder = shell.root / "etc/kubernetes/manifests"
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / f"{name}.yaml").write_text(f"name: {name}\n")
    return folder


def units(shell: Shell) -> list[str]:
    folder = shell.root / "etc/systemd/system"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def boot(shell: Shell) -> None:
    """What the unit does, if it is there: the folder of what lies aside stands for that of the machine."""
    if not units(shell):
        return
    there = shell.root / "var/lib/kube-ha"
    there.mkdir(parents=True, exist_ok=True)
    if not (there / "aside").exists() and (shell.folder / "home/aside").exists():
        (there / "aside").symlink_to(shell.folder / "home/aside")
    subprocess.run(
        ["bash", SCRIPTS / "put-back.sh"], env={**os.environ, "ROOT": str(shell.root)}, check=True
    )


PUT = "put_aside kube-controller-manager; put_aside kube-apiserver; "


def test_what_lay_aside_is_back_after_a_boot(shell: Shell, manifests: Path) -> None:
    shell.run(f"{PUT} kill -9 $$", phase="etcd-member", values=VALUES, fails=True)
    assert sorted(path.stem for path in manifests.glob("*.yaml")) == ["kube-scheduler"]
    assert units(shell) == [
        "kube-ha-put-back.service",
        "multi-user.target.wants/kube-ha-put-back.service",
    ]
    boot(shell)
    assert {path.name: path.read_text() for path in manifests.iterdir()} == {
        f"{name}.yaml": f"name: {name}\n" for name in NAMES
    }


def test_at_every_moment_either_the_manifest_or_the_unit_is_there(
    shell: Shell, manifests: Path
) -> None:
    """Killed at each command that is run on the way."""
    for point in range(1, 12):
        for name in NAMES:
            (manifests / f"{name}.yaml").write_text(f"name: {name}\n")
        kill = f"trap '((++steps < {point})) || kill -9 $$' DEBUG; set -T; steps=0"
        code = f"{kill}; put_aside kube-apiserver; trap - DEBUG; echo through"
        try:
            through = "through" in shell.run(code, phase="etcd-member", values=VALUES)
        except AssertionError:
            through = False
        boot(shell)
        assert (manifests / "kube-apiserver.yaml").read_text() == "name: kube-apiserver\n", point
        if not through:
            continue


def test_a_manifest_that_is_there_is_not_overwritten_and_an_empty_one_is(
    shell: Shell, manifests: Path
) -> None:
    shell.run(f"{PUT} true", phase="etcd-member", values=VALUES)
    (manifests / "kube-apiserver.yaml").write_text("name: newer\n")
    (manifests / "kube-controller-manager.yaml").touch()
    boot(shell)
    assert (manifests / "kube-apiserver.yaml").read_text() == "name: newer\n"
    assert (
        manifests / "kube-controller-manager.yaml"
    ).read_text() == "name: kube-controller-manager\n"


def test_once_it_serves_again_nothing_is_left_to_put_back(shell: Shell, manifests: Path) -> None:
    code = f"api_server_ready() {{ :; }}; steady() {{ :; }}; {PUT} bring_back"
    shell.run(code, phase="etcd-member", values=VALUES)
    assert units(shell) == []
    assert not (shell.folder / "home/aside").exists()
    assert len([*manifests.iterdir()]) == 3


def test_a_master_that_changes_puts_its_control_plane_aside_and_not_away(
    shell: Shell, manifests: Path
) -> None:
    """A power cut in the half minute in which there is no manifest must not end the only API server."""
    code = """
MANIFEST=$MANIFESTS/kube-apiserver.yaml CONFIG=$PWD/kubeadm.yaml
for name in others_serve pull_images expect_kubelets evict_for_kubelet kubeconfigs give_up_leases; do eval "$name() { :; }"; done
kubelet_staged() { :; }
nothing_on() { kill -9 $$; }
change_master
"""
    shell.run(code, phase="master", values=VALUES | {"KEYS": ""}, fails=True)
    assert [path.stem for path in manifests.glob("*.yaml")] == []
    boot(shell)
    assert sorted(path.stem for path in manifests.glob("*.yaml")) == sorted(NAMES)


def test_a_machine_that_leaves_has_nothing_to_put_back(shell: Shell, manifests: Path) -> None:
    shell.run(f"{PUT} true", phase="etcd-member", values=VALUES)
    shell.stub("systemctl")
    shell.run("forget_identity", phase="leave")
    assert units(shell) == []
    assert [*manifests.iterdir()] == []
