"""default-deny: whose pods nobody reaches, and what a reviewer is told of it."""

from __future__ import annotations

import pytest
import yaml

from stacks.cluster.resolve import plan
from stacks.load import load
from tests.unit.configs import lab, problems
from tests.unit.explain.reports import made

CILIUM: dict[str, object] = {"network.plugin": "cilium"}


def config(*namespaces: str, **said: object) -> dict[str, object]:
    addons = {"addons": {"default-deny": {"namespaces": [*namespaces]}}} if namespaces else {}
    return lab({**CILIUM, **addons, **said})


def test_each_namespace_has_a_policy_of_all_its_pods_that_lets_them_ask_dns() -> None:
    found = [*yaml.safe_load_all(plan(load(config("shop", "bank"))).addons[0].text)]
    assert [one["metadata"]["namespace"] for one in found] == ["bank", "shop"]
    for one in found:
        said = one["spec"]
        assert said["podSelector"] == {}
        assert said["policyTypes"] == ["Ingress", "Egress"]
        assert "ingress" not in said
        ((way,), (peer,)) = said["egress"], said["egress"][0]["to"]
        assert {(port["protocol"], port["port"]) for port in way["ports"]} == {
            ("UDP", 53),
            ("TCP", 53),
        }
        assert peer["podSelector"]["matchLabels"] == {"k8s-app": "kube-dns"}


@pytest.mark.parametrize(
    ("said", "path", "text"),
    [
        ({"addons": {"default-deny": {}}}, ".namespaces", "is empty; name the namespaces, or leave the add-on out"),
        ({"addons": {"default-deny": {"namespaces": ["a", "a"]}}}, ".namespaces[1]", "a is there twice; leave one out"),
        ({"addons": {"default-deny": {"namespaces": ["kube-system"]}}}, ".namespaces[0]", "kube-system has pods that the cluster itself needs; write policies there yourself"),
        ({"addons": {"default-deny": {"namespaces": ["a"]}}, "network.plugin": "flannel"}, "", "does nothing with flannel, which enforces no NetworkPolicy; leave it out, or use cilium or calico"),
        ({"addons": {"default-deny": {"namespaces": ["a"]}}, "network.plugin": "none", "network.own": {"kernelModules": ["vxlan"]}}, "", "does nothing with none, which enforces no NetworkPolicy; leave it out, or use cilium or calico"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(said: dict[str, object], path: str, text: str) -> None:
    assert problems(lab({**CILIUM, **said})) == [(f"addons.default-deny{path}", text)]


def test_a_network_that_the_user_brings_may_enforce_it() -> None:
    own = {"network": {"plugin": "none", "own": {"policies": True}}}
    (addon,) = plan(load(lab({**own, "addons": {"default-deny": {"namespaces": ["a"]}}}))).addons
    assert len(addon.objects) == 1


def test_a_reviewer_is_told_whose_connections_end() -> None:
    def pods(before: dict[str, object], after: dict[str, object]) -> tuple[str, ...]:
        said = made(before, after).headline.disruption
        return next(one.notices for one in said if one.audience == "pods")

    ends = "connections from and to pods in {} end, but for those that policies there allow"
    opens = "pods in {} are reached by everybody again, but for what policies there forbid"
    assert pods(config(), config("shop", "bank")) == (ends.format("bank, shop"),)
    assert pods(config("shop"), config("bank")) == (ends.format("bank"), opens.format("shop"))
    assert pods(config("shop"), config()) == (opens.format("shop"),)
    assert pods(config("shop"), config("shop")) == ()
