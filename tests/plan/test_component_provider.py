"""What the provider of KubernetesCluster takes from programs in other languages, without an engine."""

from __future__ import annotations

import asyncio
import json

import pytest
from pulumi import Output

from components.component_provider import NAME, KubernetesCluster, Provider, sections
from stacks.config.spec import Spec
from stacks.load import load
from stacks.version import VERSION
from tests.unit.configs import adopted

RESOURCE = "kube-ha:index:KubernetesCluster"


def test_its_inputs_are_the_sections_of_a_stack_file() -> None:
    schema = json.loads(Provider([KubernetesCluster], NAME, version=VERSION).schema or "")
    resource = schema["resources"][RESOURCE]
    fields = {str(field.alias): field for field in Spec.model_fields.values()}
    assert {*resource["inputProperties"]} == {*fields, "backupSecretKey", "addonSecrets"}
    required = {alias for alias, field in fields.items() if field.is_required()}
    assert {*resource["requiredInputs"]} == required
    assert {*resource["properties"]} == {"kubeconfig", "endpoint", "clusterId", "backupKey"}
    texts = [*resource["inputProperties"].values(), *resource["properties"].values()]
    assert all(one["description"].endswith(".") for one in texts)
    assert schema["version"] == VERSION


def test_numbers_of_the_protocol_are_those_of_a_stack_file() -> None:
    given = sections(
        {**adopted(), "sizing": {"nodes": 100.0}, "control_plane": {"featureGates": {}}}
    )
    assert given.problems == []
    assert given.config["sizing"] == {"nodes": 100}
    assert load(given.config).sizing.nodes == 100
    assert "controlPlane" in given.config
    assert sections({"load_balancing": {"a": [1.5, 2.0, True]}}).config == {
        "loadBalancing": {"a": [1.5, 2, True]}
    }


def test_the_secret_of_an_object_store_stands_as_in_a_stack_file() -> None:
    given = sections({**adopted(), "backup_secret_key": "of-the-store"})
    assert given.config["backupSecretKey"] == {"secure": ""}
    assert "of-the-store" not in repr(given)


def test_values_of_secrets_of_add_ons_stand_as_in_a_stack_file() -> None:
    given = sections({**adopted(), "addon_secrets": {"token": "of-the-add-on"}})
    assert given.config["addonSecrets"] == {"token": {"secure": ""}}
    assert given.problems == []
    assert "of-the-add-on" not in repr(given)


@pytest.mark.parametrize(
    ("late", "path"),
    [
        ({"proxy": "out"}, "proxy"),
        ({"kubelet": {"maxPods": "out"}}, "kubelet.maxPods"),
        ({"pools": {"a": {"hosts": [{"address": "out"}]}}}, "pools.a.hosts[0].address"),
    ],
    ids=["a section", "a value", "in a list"],
)
def test_what_is_known_late_is_a_problem_at_its_place(late: dict[str, object], path: str) -> None:
    async def problems() -> list[tuple[str, str]]:
        return [*sections(_with_outputs(late)).problems]

    ((found, words),) = asyncio.run(problems())
    assert found == path
    assert "output of a resource" in words


def _with_outputs(value: dict[str, object]) -> dict[str, object]:
    return {key: _late(one) for key, one in value.items()}


def _late(value: object) -> object:
    if value == "out":
        return Output.from_input("known later")
    if isinstance(value, dict):
        return _with_outputs(value)
    return [_late(one) for one in value] if isinstance(value, list) else value
