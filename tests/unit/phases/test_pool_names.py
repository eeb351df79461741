"""The name of a pool is nothing that a given machine has to know."""

from __future__ import annotations

import pytest

from stacks.cluster.plan import Plan
from stacks.phases import desired
from tests.fuzz import edits
from tests.unit.configs import adopted, host, planned

POOLS = {
    "pools.x": {"roles": ["worker"], "hosts": [host("x", number) for number in (1, 2)]},
    "pools.edge": {"roles": ["loadbalancer"], "hosts": [host("edge", number) for number in (1, 2)]},
}
SETTINGS = {
    "frontDoors": {"vip": {"address": "192.0.2.250"}, "ingress": {"hosts": ["shop.example.com"]}},
    "machines.firewall": {
        "networks": ["192.0.2.0/24"],
        "sshFrom": ["203.0.113.0/24"],
        "apiFrom": ["203.0.113.0/24"],
    },
}


@pytest.mark.parametrize("name", ["master", "worker", "x", "edge"])
def test_a_pool_of_given_machines_with_another_name_changes_nothing_on_them(name: str) -> None:
    raw = adopted({**POOLS, **SETTINGS})
    was = planned(raw)
    edits.rename(raw, name)
    now = planned(raw)
    assert {node.pool for node in now.nodes} == {node.pool for node in was.nodes} - {name} | {
        "renamed"
    }
    assert _told(now) == _told(was)


def _told(plan: Plan) -> dict[str, object]:
    return {node.name: desired.of_phases(plan, node) for node in plan.nodes}
