"""KubernetesCluster in a program in YAML: examples/yaml, by the real engine and YAML's own language host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from tests.toolchain.obeying import Obeying, obeying
from tests.toolchain.project import Project, Ran
from tests.unit.configs import STORE, edited
from toolchain import unpack, yaml_host

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/yaml/Pulumi.yaml"
URN = "urn:pulumi:test::tiny::kube-ha:index:KubernetesCluster"
LIMIT_S = 600  # on a computer that is busy with other tests, too
Sections = dict[str, object]


@dataclass(frozen=True, slots=True)
class Outer:
    """The example with sections of a test's own."""

    project: Project
    text: str = EXAMPLE.read_text(encoding="utf-8")

    def write(self, sections: Sections | None = None, **resources: object) -> None:
        """With these in place of the example's; `resources` are others of the program."""
        program = yaml.safe_load(self.text)
        program["name"] = "tiny"
        program["packages"] = {"kube-ha": str(ROOT / "provider")}
        program["resources"].update(resources)
        if sections is not None:
            program["resources"]["kubernetes"]["properties"] = sections
        text = yaml.safe_dump(program, sort_keys=False)
        (self.project.folder / "Pulumi.yaml").write_text(text, encoding="utf-8")

    def refused(self, *words: str) -> str:
        """What is told of an update that is refused."""
        ran = self.project.pulumi(*words)
        assert ran.code != 0, ran.text
        assert "Traceback" not in ran.text
        return ran.text[ran.text.rindex("Diagnostics:") :]

    def remembered(self) -> dict[str, object]:
        """What the component remembers of its last success."""
        exported = self.project.pulumi("stack", "export", "--show-secrets").succeeded().text
        state = json.loads(exported[exported.index("{") :])["deployment"]["resources"]
        (found,) = [one for one in state if one["urn"] == f"{URN}::kubernetes"]
        told = json.loads(json.loads(found["outputs"]["applied"]["plaintext"]))
        assert isinstance(told["config"], dict)
        return told["config"]


@pytest.fixture
def outer(tmp_path: Path) -> Outer:
    """Of a stack that was never updated."""
    host = yaml_host.found(unpack.cache_folder())
    if host is None:
        pytest.skip("no language host of YAML in the cache: python -m toolchain.yaml_host")
    project = Project.make(tmp_path / "project", "")
    (project.folder / "__main__.py").unlink()
    path = f"{host}:{project.environment['PATH']}"
    environment = {**project.environment, "PATH": path}
    made = Outer(replace(project, environment=environment, limit_s=LIMIT_S))
    made.write()
    return made


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Obeying]:
    folder = tmp_path / "machines"
    folder.mkdir()
    with obeying(folder, "master-1", "worker-1") as made:
        yield made


def sections(machines: Obeying) -> Sections:
    """Those of the example, on machines that obey."""
    properties = yaml.safe_load(EXAMPLE.read_text())["resources"]["kubernetes"]["properties"]
    made: Sections = dict(properties)
    made["machines"] = {"provider": "adopt", "ssh": {"privateKeyFile": str(machines.key)}}
    made["pools"] = {
        "master": {"roles": ["etcd", "master"], "hosts": [machines.host("master-1", 11)]},
        "worker": {"roles": ["worker"], "hosts": [machines.host("worker-1", 21)]},
    }
    return made


def test_the_example_previews_a_whole_cluster(outer: Outer) -> None:
    ran = outer.project.pulumi("preview", "--json").succeeded()
    told = json.loads(ran.text[ran.text.index("{") :])
    urns = {step["urn"] for step in told["steps"]}
    assert (
        f"{URN}$kube-ha:index:Cluster$kube-ha:index:Acceptance$command:remote:Command::shop-gate"
        in urns
    )
    assert (
        f"{URN}$kube-ha:index:Pki$tls:index/privateKey:PrivateKey::shop-pki-kubernetes-ca-key"
        in urns
    )
    (copied,) = [one for one in told["steps"] if one["urn"].endswith("::shop-worker-1-scripts")]
    assert str(ROOT / "components/scripts") in json.dumps(copied)
    said = "".join(one["message"] for one in told["diagnostics"])
    assert "Plan for cluster shop, a new cluster" in said


def test_what_was_applied_is_remembered_and_edits_are_compared_with_it(
    outer: Outer, machines: Obeying
) -> None:
    stored = {
        "etcd": {"backup": {"objectStore": STORE}},
        "backupSecretKey": {"fn::secret": "of-the-store"},
    }
    wanted = sections(machines) | stored
    outer.write(wanted)
    first = _up(outer).succeeded()
    assert "of-the-store" not in first.text
    assert "of-the-store" not in outer.project.state()
    assert outer.project.output("endpoint") == "https://192.0.2.11:6443"
    assert "https://192.0.2.11:6443" in outer.project.output("kubeconfig")
    assert "kubeconfig: [secret]" in first.text
    commands = len(machines.told)
    assert {name for name, _ in machines.told} == {"master-1", "worker-1"}

    again = _up(outer).succeeded()
    assert "nothing to do: the config is the one last applied" in again.text
    assert len(machines.told) == commands, "a second update connects to nothing"

    outer.write(edited(wanted, {"cluster.podCidr": "10.99.0.0/16"}))
    for words in (["preview"], ["up", "--yes", "--skip-preview"]):
        told = outer.refused(*words)
        assert "1 problem, nothing was touched" in told
        assert "cluster.podCidr: cannot change from '10.244.0.0/16' to '10.99.0.0/16'" in told
    assert len(machines.told) == commands


@pytest.mark.parametrize("words", [[], ["--continue-on-error"]], ids=["stops", "continues"])
def test_a_failure_keeps_the_last_success(
    outer: Outer, machines: Obeying, words: list[str]
) -> None:
    wanted = sections(machines)
    outer.write(wanted)
    _up(outer).succeeded()
    before = outer.remembered()
    outer.write(edited(wanted, {"pools.worker.labels": {"disk": "fast"}}))
    machines.fails.add("master-1")
    assert _up(outer, *words).code != 0
    assert outer.remembered() == before

    machines.fails.clear()
    assert "label disk=fast" in _up(outer).succeeded().text
    assert outer.remembered() != before
    assert outer.project.pulumi("preview", "--expect-no-changes").code == 0


def test_a_first_update_that_fails_is_no_success(outer: Outer, machines: Obeying) -> None:
    outer.write(sections(machines))
    machines.fails.add("master-1")
    assert _up(outer).code != 0
    machines.fails.clear()
    assert "Plan for cluster shop, a new cluster" in _up(outer).succeeded().text


def test_a_component_of_another_name_is_refused(outer: Outer, machines: Obeying) -> None:
    """What it applied would not be found, and its cluster would count as a new one."""
    outer.write(sections(machines))
    _up(outer).succeeded()
    file = outer.project.folder / "Pulumi.yaml"
    renamed = f"other:\n    options: {{aliases: ['{URN}::kubernetes']}}\n    type:"
    moved = file.read_text().replace("kubernetes:\n    type:", renamed)
    file.write_text(moved.replace("${kubernetes.", "${other."))
    assert "the state has this component under another name or parent" in outer.refused("preview")


def test_all_problems_are_told_at_once_and_no_value_of_an_output_is_taken(
    outer: Outer, machines: Obeying
) -> None:
    wrong = sections(machines)
    wrong["cluster"] = {"name": "B A D", "kubernetes": "1.36.3"}
    wrong["etcd"] = {"backup": {"keep": -1}}
    wrong["kubelet"] = {"maxPods": {"fn::secret": 99}}
    wrong["proxy"] = {"http": "http://me:a-password@[proxy"}
    wrong["frontDoors"] = {"virtualIp": {"address": "${own.id}"}}
    own = {"type": "pulumi:pulumi:StackReference", "properties": {"name": "organization/tiny/test"}}
    outer.write(wrong, own=own)
    told = outer.refused("preview")
    assert (
        "resource 'kubernetes' has a problem: kubernetes: 5 problems, nothing was touched" in told
    )
    for path in (
        "cluster.name",
        "etcd.backup.keep",
        "kubelet.maxPods",
        "frontDoors.virtualIp.address",
        "proxy.http",
    ):
        assert f"{path}: " in told
    assert "a-password" not in told
    assert machines.told == []


def _up(outer: Outer, *words: str) -> Ran:
    return outer.project.pulumi("up", "--yes", "--skip-preview", "--suppress-progress", *words)
