"""Who notices what: words of the disruption of an edit."""

from __future__ import annotations

import pytest

from tests.unit.configs import GONE, edited, gcp, lab
from tests.unit.explain.test_report import made

VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
BACKEND = {"network.backend": "host-gw", "allow": ["network-backend/host-gw"]}
TWO = {"pools.master.count": 2}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (lab(VIP), lab(), "the VIP 10.92.0.5:8443: it is nobody's"),
        (lab(VIP), lab({"frontDoors.vip": {"address": "10.92.0.6"}}), "it becomes 10.92.0.6:8443"),
        (lab(), lab({"nodes.master-1": {"state": "removed"}}), "the API at 10.92.0.11:6443"),
        (lab(TWO), lab({**TWO, "etcd.quotaBackendGib": 4}), "one of etcd's two members restarts"),
        (lab(), lab(BACKEND), "pods of different nodes do not reach each other"),
        (gcp(), gcp({"machines.gcp.apiLoadBalancer": "none"}), "the internal load balancer"),
    ],
)
def test_an_edit_that_is_noticed_says_so(
    before: dict[str, object], after: dict[str, object], said: str
) -> None:
    assert said in "; ".join(made(before, after).downtime)


def test_an_edit_that_nobody_notices_needs_no_downtime() -> None:
    assert made(lab(), lab(VIP | {"cluster.endpoint": "10.92.0.11"})).downtime == ()
    assert made(lab(), edited(lab(), {"pools.worker.count": 3})).downtime == ()
    assert made(lab(), lab({"etcd.quotaBackendGib": 4})).downtime == ()


def test_a_name_that_leaves_the_certificates_is_told() -> None:
    named = lab({"cluster.endpoint": "api.example.com"})
    assert (
        "the API at api.example.com:6443"
        in made(named, edited(named, {"cluster.endpoint": GONE})).downtime[0]
    )
