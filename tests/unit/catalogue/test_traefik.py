"""traefik: what forwards to it by which config, whom it believes about clients, and what it is refused with."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from stacks.cluster.resolve import plan
from stacks.load import load
from tests.unit.configs import aws, gcp, lab, problems

VIP = {"address": "10.92.0.5"}
HOSTS = {"hosts": ["shop.example.com"]}
EDGE = {"pools.edge": {"roles": ["loadbalancer"], "count": 2}}


def objects(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    (addon,) = [one for one in plan(load(config)).addons if one.name == "traefik"]
    return {one["kind"]: one for one in yaml.safe_load_all(addon.text)}


def behind(**said: object) -> dict[str, Any]:
    """With a virtual IP, or whatever the config says in its place."""
    doors = {"vip": VIP, "ingress": HOSTS}
    return lab({"addons": {"traefik": {}}, "frontDoors": doors, **said})


def container(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    (one,) = found["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert isinstance(one, dict)
    return one


def trusted(found: dict[str, dict[str, Any]]) -> list[str]:
    return [word for word in container(found)["args"] if "trustedIPs" in word]


def test_the_ingress_tier_forwards_to_its_node_port_and_alone_says_who_the_client_is() -> None:
    found = objects(behind(**{"frontDoors.ingress": HOSTS | {"nodePort": 30090}}))
    spec = found["Service"]["spec"]
    assert (spec["type"], spec["externalTrafficPolicy"]) == ("NodePort", "Local")
    assert [port.get("nodePort") for port in spec["ports"]] == [30090]
    masters = ",".join(node.address for node in plan(load(behind())).masters)
    assert trusted(found) == [f"--entryPoints.web.forwardedHeaders.trustedIPs={masters}"]
    assert not any("hostPort" in port for port in container(found)["ports"])


def test_load_balancers_are_believed_in_the_place_of_masters_and_by_the_protocol_that_they_speak() -> (
    None
):
    config = behind(**EDGE, **{"frontDoors.ingress": HOSTS | {"proxyProtocol": True}})
    edges = ",".join(node.address for node in plan(load(config)).load_balancers)
    assert edges
    assert trusted(objects(config)) == [f"--entryPoints.web.proxyProtocol.trustedIPs={edges}"]


@pytest.mark.parametrize("cloud", [aws, gcp])
def test_a_cloud_forwards_to_ports_of_the_nodes(cloud: Any) -> None:
    found = objects(cloud({"addons": {"traefik": {}}, "frontDoors.ingress": {}}))
    assert "Service" not in found
    ports = {port["name"]: port.get("hostPort") for port in container(found)["ports"]}
    assert ports == {"web": 80, "tls": 443, "ping": None}
    assert trusted(found) == []


def test_without_an_ingress_tier_metallb_gives_it_an_address() -> None:
    found = objects(lab({"addons": {"traefik": {}, "metallb": {"addresses": ["10.92.0.240"]}}}))
    assert found["Service"]["spec"]["type"] == "LoadBalancer"
    assert [port["port"] for port in found["Service"]["spec"]["ports"]] == [80, 443]


def test_it_is_refused_where_nobody_reaches_it_or_clients_cannot_be_believed() -> None:
    alone = "is reached by nobody; add frontDoors.ingress, or add-on metallb"
    assert problems(lab({"addons": {"traefik": {}}})) == [("addons.traefik", alone)]
    spoken = aws({"addons": {"traefik": {}}, "frontDoors.ingress": {"proxyProtocol": True}})
    text = "add-on traefik cannot tell a cloud's load balancer from others who speak it; take one of them out"
    assert problems(spoken) == [("frontDoors.ingress.proxyProtocol", text)]


@pytest.mark.parametrize("default", [False, True])
def test_its_class_is_that_of_ingresses_without_one_if_the_config_says_so(default: bool) -> None:  # noqa: FBT001 - of the parameters
    found = objects(behind(addons={"traefik": {"default": default}}))
    about = found["IngressClass"]["metadata"].get("annotations", {})
    assert about == ({"ingressclass.kubernetes.io/is-default-class": "true"} if default else {})
    # It looks at no Ingress of another class, nor at one of none that is older than the default.
    assert "--providers.kubernetesIngress.ingressClass=traefik" in container(found)["args"]
