"""metallb: which addresses it may have, what its programs may do, and who is told of its ports."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from stacks.cluster import artifacts, firewall
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.edits import memory
from stacks.load import load
from stacks.phases import preflight
from tests.unit.configs import adopted, gcp, lab, problems
from tests.unit.explain.reports import made

RANGE = "10.92.0.240-10.92.0.250"


def config(*addresses: str, **said: object) -> dict[str, object]:
    return lab({"addons": {"metallb": {"addresses": [*addresses]}}, **said})


def objects(*addresses: str) -> list[dict[str, Any]]:
    return [*yaml.safe_load_all(plan(load(config(*addresses))).addons[0].text)]


def rules(kind: str, name: str) -> list[dict[str, Any]]:
    (found,) = [
        one for one in objects(RANGE) if (one["kind"], one["metadata"]["name"]) == (kind, name)
    ]
    return list(found["rules"])


def test_its_pool_has_the_addresses_and_they_are_announced() -> None:
    found = {one["kind"]: one for one in objects(RANGE, "10.92.1.0/28", "10.92.2.7")}
    assert found["IPAddressPool"]["spec"]["addresses"] == [
        RANGE,
        "10.92.1.0-10.92.1.15",
        "10.92.2.7-10.92.2.7",
    ]
    assert found["L2Advertisement"]["spec"]["ipAddressPools"] == [
        found["IPAddressPool"]["metadata"]["name"]
    ]


@pytest.mark.parametrize(
    ("addresses", "path", "text"),
    [
        ([], "", "is empty; name addresses of the machines' network that nobody else has"),
        (["10.92.0.9-10.92.0.1"], "[0]", "'10.92.0.9-10.92.0.1' ends before it begins; write it as '10.0.0.240-10.0.0.250'"),
        (["10.92.0.300"], "[0]", "'10.92.0.300' is not an IPv4 address; write four numbers, as 10.0.0.11"),
        (["10.92.0.240", "10.92.0.240/30"], "[1]", "meets another range of the list; name each address once"),
        (["10.244.3.0/24"], "[0]", "meets cluster.podCidr 10.244.0.0/16, which nobody outside reaches"),
        (["10.95.0.0-10.97.0.0"], "[0]", "meets cluster.serviceCidr 10.96.0.0/16, which nobody outside reaches"),
        (["10.92.0.100-10.92.0.101"], "[0]", "holds 10.92.0.101, which worker-1 has; leave that out"),
    ],
)  # fmt: skip
def test_addresses_that_somebody_has_are_refused(
    addresses: list[str], path: str, text: str
) -> None:
    found = problems(config(*addresses))
    assert found == [(f"addons.metallb.addresses{path}", text)]


def test_the_virtual_ip_is_nobodys_service() -> None:
    vip = {"frontDoors.vip": {"address": "10.92.0.245"}}
    text = "holds 10.92.0.245, the virtual IP of the API; leave that out"
    assert problems(config(RANGE, **vip)) == [("addons.metallb.addresses[0]", text)]


def test_no_cloud_asks_by_arp() -> None:
    said = gcp({"addons": {"metallb": {"addresses": ["10.20.9.0/28"]}}})
    ((path, text),) = problems(said)
    assert path == "addons.metallb"
    assert text.startswith("answers ARP, which no network of a cloud asks")


def test_speakers_write_in_their_own_namespace_alone() -> None:
    for name in ("controller", "speaker"):
        wide = rules("ClusterRole", f"metallb-system:{name}")
        assert not [rule for rule in wide if "secrets" in rule["resources"]]
        writes = {
            (resource, verb)
            for rule in wide
            for resource in rule["resources"]
            for verb in rule["verbs"]
            if verb not in ("get", "list", "watch")
        }
        allowed = {
            ("events", "create"),
            ("events", "patch"),
            ("tokenreviews", "create"),
            ("subjectaccessreviews", "create"),
        }
        assert writes - allowed == (
            {("services/status", "update")} if name == "controller" else set()
        )
    here = rules("Role", "speaker")
    pools = next(rule for rule in here if "ipaddresspools" in rule["resources"])
    assert pools["verbs"] == ["get", "list", "watch"]


def test_preflight_and_the_ports_between_nodes_know_it() -> None:
    one = plan(load(adopted({"addons": {"metallb": {"addresses": ["192.0.2.240/28"]}}})))
    found = {(rule.protocol, rule.ports, rule.to) for rule in firewall.between_machines(one)}
    assert {("tcp", (7946, 7946), "node"), ("udp", (7946, 7946), "node")} <= found
    said = preflight.preflight(one, one.workers[0], artifacts.files(one, "amd64"))
    assert {"7946", "9120", "17472"} <= {*said["PORTS"].split()}


def test_a_cluster_without_it_does_not_know_its_version() -> None:
    def kept(one: Plan) -> dict[str, object]:
        found = memory.of(one)["versions"]
        assert isinstance(found, dict)
        return found

    bare, there = plan(load(lab())), plan(load(config(RANGE)))
    assert "metallb" not in {*kept(bare)}
    assert kept(there) == {**kept(bare), "metallb": there.versions.metallb}
    assert "metallb" not in repr(bare.versions)
    assert there.addons[0].files[0][0] == f"metallb@{there.versions.metallb}"
    for one in (bare, there):
        then = memory.read(json.loads(json.dumps(memory.of(one)))).plan
        assert then is not None
        assert then.versions == one.versions


def test_a_reviewer_is_told_whose_address_goes() -> None:
    said = made(config(RANGE), config("10.92.0.240-10.92.0.245")).headline.disruption
    (pods,) = [one.notices for one in said if one.audience == "pods"]
    assert f"an address of {RANGE} get another one" in pods[0]
