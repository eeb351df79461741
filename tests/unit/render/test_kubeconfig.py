"""The operator's kubeconfig."""

from __future__ import annotations

import base64

import pytest
import yaml

from stacks.cluster import clouds
from stacks.cluster.certificates import api_names
from stacks.cluster.plan import Plan
from stacks.render.kubeconfig import admin
from tests.unit.configs import aws, behind_tunnel, gcp, planned
from tests.unit.render.examples import adopted, lab


def _contexts(plan: Plan) -> tuple[str, dict[str, str]]:
    """(current context, context -> URL)."""
    parsed = yaml.safe_load(admin(plan, "CA", "CERT", "KEY"))
    servers = {each["name"]: each["cluster"]["server"] for each in parsed["clusters"]}
    contexts = {each["name"]: servers[each["context"]["cluster"]] for each in parsed["contexts"]}
    return parsed["current-context"], contexts


def test_the_endpoint_comes_first_then_each_master() -> None:
    assert _contexts(adopted()) == (
        "prod",
        {
            "prod": "https://api.prod.example.com:6443",
            "prod-master-1": "https://192.0.2.21:6443",
            "prod-master-2": "https://192.0.2.22:6443",
        },
    )


def test_without_endpoint_the_first_master_is_current() -> None:
    current, contexts = _contexts(lab())
    assert current == "dev-master-1"
    assert list(contexts) == ["dev-master-1", "dev-master-2", "dev-master-3"]


def test_a_port_of_the_endpoint_is_kept() -> None:
    cluster = {"name": "prod", "kubernetes": "1.36.3", "endpoint": "10.9.9.9:443"}
    assert _contexts(adopted(cluster=cluster))[1]["prod"] == "https://10.9.9.9:443"


def test_certificates_and_key_are_whole() -> None:
    parsed = yaml.safe_load(admin(lab(), "ca\npem\n", "cert\n", "key\n"))
    user = parsed["users"][0]["user"]
    assert base64.b64decode(user["client-certificate-data"]) == b"cert\n"
    assert base64.b64decode(user["client-key-data"]) == b"key\n"
    for each in parsed["clusters"]:
        assert base64.b64decode(each["cluster"]["certificate-authority-data"]) == b"ca\npem\n"


@pytest.mark.parametrize("config", [gcp, aws])
@pytest.mark.parametrize("masters", [1, 3])
def test_an_external_load_balancer_without_a_name_is_asked_for_one_that_every_server_has(
    config: type, masters: int
) -> None:
    """Certificates are made before it has an address."""
    edits = {f"machines.{config.__name__}.apiLoadBalancer": "external"}
    plan = planned(config({**edits, "pools.master.count": masters}))
    parsed = yaml.safe_load(admin(plan, "CA", "CERT", "KEY", balancer="b.example.com"))
    found = {each["name"]: each["cluster"] for each in parsed["clusters"]}
    assert parsed["current-context"] == "prod"
    assert found["prod"]["server"] == "https://b.example.com:6443"
    name = found["prod"]["tls-server-name"]
    assert all(name in api_names(plan, node) for node in plan.masters)
    assert [key for key, one in found.items() if "tls-server-name" in one] == ["prod"]
    assert found["prod-here"]["server"] == "https://127.0.0.1:26443"


@pytest.mark.parametrize("config", [gcp, aws])
@pytest.mark.parametrize("masters", [1, 3])
def test_in_a_cloud_the_current_way_works_from_where_people_are(config: type, masters: int) -> None:
    """Machines there have inner addresses: a port of this computer leads to them."""
    name = config.__name__
    for edits in ({}, behind_tunnel(name), {f"machines.{name}.access": "public"}):
        edits = {**edits, "pools.master.count": masters, f"machines.{name}.apiPort": 20443}
        plan = planned(config(edits))
        current, contexts = _contexts(plan)
        assert contexts[current] == "https://127.0.0.1:20443"
        named = planned(config({**edits, "cluster.endpoint": "api.example.com"}))
        current, others = _contexts(named)
        assert others[current] == "https://api.example.com:6443"
        assert "https://127.0.0.1:20443" in others.values()
        # Each way is one that the API servers have a certificate for, and the load balancer is among them.
        for url in contexts.values():
            host = url.removeprefix("https://").partition(":")[0]
            assert any(host in api_names(plan, node) for node in plan.masters), url
        inner = {f"https://{one}:6443" for one in clouds.balancer_addresses(plan.spec)}
        assert (inner <= {*contexts.values()}) == (masters > 1)
