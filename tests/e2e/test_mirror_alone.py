"""Story: machines that reach the mirror alone become a cluster and take a worker more, and ask nobody else; the tool of the bundle works on a computer without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.harness import config, lab
from tests.e2e.harness.assertions import assert_acceptance, assert_up_changes_nothing
from tests.e2e.harness.closed import Closed, closed
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.stack import Stack
from tests.no_network import without_network

NAME = "test-mirror-alone"
SUBNET = "10.93.116.0/24"
NODES = {"master-1", "worker-1"}
BUNDLE = ".local/bundle"
_PACKED_S = 1800  # all wheels have to be fetched where nobody has made a bundle before


def wanted() -> config.Config:
    return config.lab(NAME, SUBNET, masters=1, workers=1)


@pytest.fixture(scope="module")
def network(stack: Stack) -> Iterator[Closed]:
    """Closed before the first machine is made."""
    lab.machine_sh("lab-up", LAB=stack.lab, SUBNET=SUBNET, BUNDLE=BUNDLE)
    with closed(stack.lab, SUBNET) as network:
        yield network


def test_they_become_a_cluster(stack: Stack, network: Closed) -> None:
    update = stack.up()
    stack.took("up of 1 master and 1 worker that reach the mirror alone", update.seconds)
    stack.wait_healthy(NODES, limit_s=30)
    assert_up_changes_nothing(stack)


def test_they_take_a_worker_more(stack: Stack, network: Closed) -> None:
    stack.edit("pools.worker.count", 2)
    update = stack.up()
    stack.took("up that adds a worker that reaches the mirror alone", update.seconds)
    stack.wait_healthy(NODES | {"worker-2"}, limit_s=30)
    assert_acceptance(stack)
    assert_up_changes_nothing(stack)


def test_they_asked_nobody_else_for_anything(stack: Stack, network: Closed) -> None:
    asked = network.asked()
    told = ", ".join(f"{kind}: {packets}" for kind, packets in asked.items())
    stack.measured(f"packets to anybody else than mirror and nodes: {told}")
    assert asked["the rest"] == 0, told
    assert asked["this computer"] == 0, told


def test_a_computer_without_a_network_plans_with_the_tool_of_the_bundle(
    stack: Stack, tmp_path: Path
) -> None:
    carried, checkout = tmp_path / "carried", tmp_path / "checkout"
    command = [sys.executable, "-m", "toolchain.pack", "--into", BUNDLE]
    lab.shell(command, timeout_s=_PACKED_S)
    carried.mkdir()
    shutil.copy(ROOT / BUNDLE / "manifest.json", carried)
    for part in ("tool", "bin"):  # as rsync -L does; the rest is for the mirror
        shutil.copytree(ROOT / BUNDLE / part, carried / part)
    _copy_of_this(checkout)
    text = yaml.safe_load((ROOT / "examples/air-gap.yaml").read_text())
    text["config"]["kube-ha:machines"]["ssh"] = {"user": "root", "agent": True}
    (checkout / "Pulumi.away.yaml").write_text(yaml.safe_dump(text))
    said = _alone(
        checkout,
        f"make engine BUNDLE={carried}",
        "bash lab/environment.sh",
        "source .env",
        "pulumi stack init away",
        "pulumi preview --stack away",
        "kubectl version --client",
    )
    engine = (ROOT / ".pulumi.version").read_text().strip()
    assert f"engine {engine}" in said
    assert "air-gap-gate" in said, said
    assert f"v{config.kubernetes()}" in said


def _copy_of_this(folder: Path) -> None:
    folder.mkdir()
    script = 'git ls-files -z | tar --null --files-from - -c | tar -x -C "$1"'
    lab.shell(["bash", "-c", script, "copy", str(folder)])


def _alone(folder: Path, *lines: str) -> str:
    """What these commands print in a network of their own, in which there is nobody, and with an empty cache."""
    script = "; ".join(("set -e", "if ip route | grep .; then exit 1; fi", *lines))
    own = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder.parent),
        "KUBE_HA_CACHE": str(folder.parent / "cache"),
    }
    done = subprocess.run(
        without_network(["bash", "-c", script], own),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
