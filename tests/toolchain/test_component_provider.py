"""KubernetesCluster in a program in YAML: examples/yaml, by the real engine and YAML's own language host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.toolchain.obeying import Obeying, obeying
from tests.toolchain.yaml_program import ROOT, URN, YamlProgram, example
from tests.unit.configs import STORE, edited

pytestmark = pytest.mark.slow

LIMIT_S = 600  # on a computer that is busy with other tests, too


@pytest.fixture
def outer(tmp_path: Path) -> YamlProgram:
    """Of a stack that was never updated."""
    return YamlProgram.make(tmp_path / "project", limit_s=LIMIT_S)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Obeying]:
    folder = tmp_path / "machines"
    folder.mkdir()
    with obeying(folder, "master-1", "worker-1") as made:
        yield made


def sections(machines: Obeying) -> dict[str, object]:
    """Those of the example, on machines that obey."""
    edits: dict[str, object] = {
        "machines.ssh": {"privateKeyFile": str(machines.key)},
        "pools.master.hosts": [machines.host("master-1", 11)],
        "pools.worker.hosts": [machines.host("worker-1", 21)],
    }
    return edited(example(), edits)


def test_the_example_previews_a_whole_cluster(outer: YamlProgram) -> None:
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
    outer: YamlProgram, machines: Obeying
) -> None:
    stored = {
        "etcd": {"backup": {"objectStore": STORE}},
        "backupSecretKey": {"fn::secret": "of-the-store"},
    }
    wanted = sections(machines) | stored
    outer.write(wanted)
    first = outer.up().succeeded()
    assert "of-the-store" not in first.text
    assert "of-the-store" not in outer.project.state()
    assert outer.project.output("endpoint") == "https://192.0.2.11:6443"
    assert "https://192.0.2.11:6443" in outer.project.output("kubeconfig")
    assert "kubeconfig: [secret]" in first.text
    commands = len(machines.told)
    assert {name for name, _ in machines.told} == {"master-1", "worker-1"}

    again = outer.up().succeeded()
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
    outer: YamlProgram, machines: Obeying, words: list[str]
) -> None:
    wanted = sections(machines)
    outer.write(wanted)
    outer.up().succeeded()
    before = outer.remembered()
    outer.write(edited(wanted, {"pools.worker.labels": {"disk": "fast"}}))
    machines.fails.add("master-1")
    assert outer.up(*words).code != 0
    assert outer.remembered() == before

    machines.fails.clear()
    assert "label disk=fast" in outer.up().succeeded().text
    assert outer.remembered() != before
    assert outer.project.pulumi("preview", "--expect-no-changes").code == 0


def test_a_first_update_that_fails_is_no_success(outer: YamlProgram, machines: Obeying) -> None:
    outer.write(sections(machines))
    machines.fails.add("master-1")
    assert outer.up().code != 0
    machines.fails.clear()
    assert "Plan for cluster shop, a new cluster" in outer.up().succeeded().text


def test_a_component_of_another_name_is_refused(outer: YamlProgram, machines: Obeying) -> None:
    """What it applied would not be found, and its cluster would count as a new one."""
    outer.write(sections(machines))
    outer.up().succeeded()
    file = outer.project.folder / "Pulumi.yaml"
    renamed = f"other:\n    options: {{aliases: ['{URN}::kubernetes']}}\n    type:"
    moved = file.read_text().replace("kubernetes:\n    type:", renamed)
    file.write_text(moved.replace("${kubernetes.", "${other."))
    assert "the state has this component under another name or parent" in outer.refused("preview")


def test_all_problems_are_told_at_once_and_no_value_of_an_output_is_taken(
    outer: YamlProgram, machines: Obeying
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
