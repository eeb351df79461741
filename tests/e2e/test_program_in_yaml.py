"""Story: a program in YAML makes a cluster of a machine that exists, by the component provider, and changes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import config, lab
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.machines import Machines
from tests.toolchain.yaml_program import YamlProgram
from tests.unit.configs import edited

LAB = "test-program-in-yaml"
LIMIT_S = 900  # of one update


class Outer:
    """The program, and what `kubectl` says by the kubeconfig that it gives out."""

    def __init__(self, folder: Path, machines: Machines) -> None:
        self.program = YamlProgram.make(folder / "project", limit_s=LIMIT_S)
        self._kubeconfig = folder / "kubeconfig"
        adopted = config.adopted(LAB, machines.mirror, machines.user_key, {})
        every = {"roles": ["etcd", "master", "worker"], "hosts": [machines.start("all-1", 11)]}
        manifest = str(ROOT / ".local/bundle/manifest.json")
        self.sections = edited(adopted, {"pools.all": every, "mirror.manifest": manifest})
        self.program.write(self.sections)

    def kubectl(self, *words: str) -> str:
        self._kubeconfig.write_text(self.program.project.output("kubeconfig"))
        self._kubeconfig.chmod(0o600)
        kubectl = str(ROOT / ".local/bundle/bin/kubectl")
        return lab.shell([kubectl, "--kubeconfig", str(self._kubeconfig), *words])


@pytest.fixture(scope="module")
def outer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outer]:
    folder = tmp_path_factory.mktemp("yaml")
    machines = Machines(LAB, "10.93.143.0/24", folder / "machines")
    lab.free(LAB)
    try:
        machines.start_lab()
        yield Outer(folder, machines)
    finally:
        lab.free(LAB)


def test_up_makes_a_cluster(outer: Outer) -> None:
    outer.program.up().succeeded()
    nodes = json.loads(outer.kubectl("get", "nodes", "-o", "json"))["items"]
    ready = {
        node["metadata"]["name"]: state["status"]
        for node in nodes
        for state in node["status"]["conditions"]
        if state["type"] == "Ready"
    }
    assert ready == {"all-1": "True"}


def test_a_second_up_changes_nothing(outer: Outer) -> None:
    again = outer.program.up("--expect-no-changes").succeeded()
    assert "nothing to do: the config is the one last applied" in again.text


def test_an_edit_changes_what_it_says_and_a_wrong_one_is_refused(outer: Outer) -> None:
    wrong = edited(outer.sections, {"cluster.podCidr": "10.99.0.0/16"})
    outer.program.write(wrong)
    assert "cluster.podCidr: cannot change" in outer.program.refused("preview")
    outer.program.write(edited(outer.sections, {"pools.all.labels": {"disk": "fast"}}))
    outer.program.up().succeeded()
    assert "all-1" in outer.kubectl("get", "nodes", "-l", "disk=fast", "-o", "name")
