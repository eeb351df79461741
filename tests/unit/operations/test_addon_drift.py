"""What an API server says of add-ons' objects, in words; by real names of kubectl."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.ssh.hop import Hop
from operations.engine.stack import Stack
from operations.observe import addons
from operations.observe.hints import RAISE
from operations.ssh import client
from operations.ssh.client import Answer, Target
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.load import load
from tests.unit.configs import lab


def planned(folder: Path) -> Plan:
    file = folder / "team.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n---\n"
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here}\n"
    )
    named = {"metrics-server": {}, "team": {"manifests": [str(file)]}}
    return plan(load(lab({"addons": named}), read_keys=False))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("differs\tapps.v1.Deployment.kube-system.coredns", ("coredns", "Deployment kube-system/coredns of add-on coredns differs from the plan")),
        ("missing\tv1.Service.kube-system.kube-dns", ("coredns", "Service kube-system/kube-dns of add-on coredns is missing")),
        ("missing\trbac.authorization.k8s.io.v1.ClusterRole..system:coredns", ("coredns", "ClusterRole system:coredns of add-on coredns is missing")),
        ("differs\tapiregistration.k8s.io.v1.APIService..v1beta1.metrics.k8s.io", ("metrics-server", "APIService v1beta1.metrics.k8s.io of add-on metrics-server differs from the plan")),
        ("missing\tv1.Namespace..team", ("team", "Namespace team of add-on team is missing")),
        ("differs\tv1.ConfigMap.default.here", ("team", "ConfigMap here of add-on team differs from the plan")),
    ],
)  # fmt: skip
def test_each_object_is_known_by_what_kubectl_calls_it(
    tmp_path: Path, line: str, said: tuple[str, str]
) -> None:
    asked = addons.wanted(planned(tmp_path))
    (found,) = addons.read([line.split("\t")], asked)
    assert (found.kind, found.subject, found.text, found.do) == ("addon", *said, RAISE)


@pytest.mark.parametrize("line", ["differs\tv1.Secret.shop.x", "differs", "maybe\tv1.Namespace..team", "", "end"])  # fmt: skip
def test_what_a_machine_says_of_nobodys_object_is_nothing(tmp_path: Path, line: str) -> None:
    assert list(addons.read([line.split("\t")], addons.wanted(planned(tmp_path)))) == []


def test_an_add_on_whose_file_is_not_here_is_named_and_the_others_are_compared(
    tmp_path: Path,
) -> None:
    made = planned(tmp_path)
    (tmp_path / "team.yaml").unlink()
    asked = addons.wanted(made)
    (note,) = asked.notes
    assert note.startswith("add-on team is not compared: ")
    assert "metrics-server" in asked.configured
    assert "name: here" not in asked.configured
    assert "kind: Deployment" in asked.own


def test_manifests_of_any_size_reach_the_master(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []

    def send(target: Target, text: str, *, limit_s: int) -> Answer:
        del target, limit_s
        sent.append(text)
        return Answer(status=0, text="end", asked_at_s=0, took_s=0)

    monkeypatch.setattr(client, "send", send)
    made = plan(load(lab({"network.plugin": "cilium"})))
    targets = {node.name: Target(hop=Hop(address=node.address, port=22, user="root", host_key=None, key=None)) for node in made.nodes}  # fmt: skip
    stack = Stack(plan=made, targets=targets, cluster_id="a")
    assert addons.ask(stack, made.masters) == ((), ())
    (text,) = sent
    assert addons.wanted(made).own in text.replace("'\"'\"'", "'")
    assert len(text) > 20_000


@pytest.mark.parametrize(
    ("row", "by", "said"),
    [
        ("kept\tteam\t60\tgood", "master-1", ""),
        ("kept\tteam\t1300\tgood", "master-1", "was looked at 21 min ago by master-1"),
        ("kept\tteam\t60\tthe API refuses x", "master-1", "could not be put back by master-1: the API refuses x"),
        ("kept\tteam\tsoon\tgood", "master-1", "is to be put back by a timer on master-1, and is not"),
        ("kept\tother\t60\tgood", "master-1", "is to be put back by a timer on master-1, and is not"),
        ("kept\tteam\t60\tgood", "master-2", "is put back by master-1, which does not tell"),
    ],
)  # fmt: skip
def test_a_timer_that_does_not_put_back_is_named(row: str, by: str, said: str) -> None:
    named = {"team": {"manifests": ["examples/addons/defaults.yaml"], "reconcile": True}}
    made = plan(load(lab({"addons": {**named, "metrics-server": {}}}), read_keys=False))
    found = [one.text for one in addons.kept(made, [row.split("\t")], made.node(by))]
    assert found == ([f"add-on team {said}"] if said else [])
