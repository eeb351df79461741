"""The virtual IP: who holds it, and by which words of keepalived."""

from __future__ import annotations

import itertools
import re

import pytest

from stacks.cluster.plan import Plan
from stacks.config.problems import SpecError
from stacks.phases import desired, front_doors
from stacks.phases.node import of_node
from stacks.render.haproxy import local_api
from stacks.render.keepalived import FALL, drop_in, holder, priority
from tests.unit import configs
from tests.unit.configs import planned
from tests.unit.render.examples import adopted, assert_snapshot, lab

MOVES_WITHIN_S = 5
EDGE = {"pools.edge": {"roles": ["loadbalancer"], "count": 2}}


def with_vip(masters: int = 3, **more: object) -> Plan:
    return lab(masters, frontDoors={"vip": {"address": "10.92.0.5", **more}})


def test_snapshot() -> None:
    plan = with_vip()
    assert_snapshot("keepalived.conf", holder(plan, plan.masters[0]))
    assert_snapshot("keepalived-drop-in.conf", drop_in(plan, plan.masters[0]))


def test_each_holder_tells_all_others_and_nobody_else() -> None:
    plan = with_vip()
    for node in plan.masters:
        text = holder(plan, node)
        (peers,) = re.findall(r"unicast_peer \{([^}]*)\}", text)
        assert peers.split() == [other.address for other in plan.masters if other != node]
        assert f"unicast_src_ip {node.address}\n" in text


def test_a_single_holder_is_unicast_too() -> None:
    plan = with_vip(masters=1)
    assert re.search(r"unicast_peer \{\s+127\.0\.0\.1\s+\}", holder(plan, plan.masters[0]))


def test_whoever_comes_back_never_takes_it_from_another() -> None:
    plan = with_vip()
    for node in plan.masters:
        assert "  state BACKUP\n  nopreempt\n" in holder(plan, node)


def test_priorities_hang_on_the_machine_alone_and_differ_between_neighbours() -> None:
    few, many = with_vip(2), with_vip(5)
    for node in few.masters:
        line = f"  priority {priority(node.address)}\n"
        assert line in holder(few, node)
        assert line in holder(many, many.node(node.name))
    found = {priority(f"10.0.0.{n}") for n in range(1, 151)}
    assert found == set(range(100, 250))
    for one, other in itertools.pairwise(range(1, 255)):
        assert abs(priority(f"10.0.0.{one}") - priority(f"10.0.0.{other}")) >= 13


def test_it_moves_in_time() -> None:
    """RFC 3768 6.1: three adverts and a skew of at most one more, less with a higher priority."""
    text = holder(with_vip(), with_vip().masters[0])
    advert = int(re.findall(r"advert_int (\d+)", text)[0])
    slowest = 3 * advert + (256 - 100) / 256
    assert slowest < MOVES_WITHIN_S
    interval = int(re.findall(r'haproxy"\n  interval (\d+)', text)[0])
    # Who gives it up says so, and the others wait for the skew alone.
    assert FALL * interval + 1 + (256 - 100) / 256 < MOVES_WITHIN_S


def test_the_api_behind_it_is_never_asked() -> None:
    text = holder(with_vip(), with_vip().masters[0])
    assert re.findall(r'^  script "(\S+ \w+)', text, re.MULTILINE) == [
        "/etc/kube-ha/vip-check haproxy",
        "/etc/kube-ha/vip-check member",
    ]
    assert "readyz" not in text


def test_the_password_is_in_no_file_that_a_preview_shows() -> None:
    plan = with_vip()
    values = desired.of_phases(plan, plan.masters[0])
    assert not [text for phase in values.values() for text in phase.values() if "auth_pass" in text]
    assert "    include /etc/kube-ha/vrrp.conf\n" in values["vip"]["KEEPALIVED_CONF"]


def test_haproxy_of_masters_alone_listens_at_it() -> None:
    plan = with_vip(port=9443)
    for node in plan.nodes:
        there = "  bind 10.92.0.5:9443 transparent\n" in local_api(plan, node)
        assert there == node.is_master
    plain = lab()
    assert local_api(plan, plan.workers[0]) == local_api(plain, plain.workers[0])


def test_load_balancers_hold_it_in_place_of_masters() -> None:
    made = planned(configs.lab({"frontDoors.vip": {"address": "10.92.0.5"}, **EDGE}))
    assert [node.name for node in made.holders] == ["edge-1", "edge-2"]
    for node in made.nodes:
        phases = desired.of_phases(made, node)
        assert ("vip" in phases) == node.is_load_balancer
        assert ("vip-away" in phases) == node.is_master
        assert ("keepalived" in phases["node"]["PACKAGES"]) == node.is_load_balancer
        assert ("bind 10.92.0.5:8443" in phases["node"].get("HAPROXY_CFG", "")) != node.is_worker
    text = holder(made, made.load_balancers[0])
    # Masters hear them, so that they can run as standby before the pool leaves.
    told = [made.load_balancers[1], *made.masters]
    (peers,) = re.findall(r"unicast_peer \{([^}]*)\}", text)
    assert peers.split() == [node.address for node in told]
    assert '  script "/etc/kube-ha/vip-check member edge-1 1"\n' in text
    start = "ExecStartPre=/etc/kube-ha/vip-check start edge-1 1 10.92.0.5:8443\n"
    assert start in drop_in(made, made.load_balancers[0])


def test_masters_may_lie_elsewhere_then() -> None:
    apart = {"address": "198.51.100.5"}
    edge = {"name": "edge-1", "address": "198.51.100.7", "hostKey": configs.host_key(7)}
    pool = {"roles": ["loadbalancer"], "hosts": [edge]}
    assert planned(configs.adopted({"frontDoors.vip": apart, "pools.edge": pool})).vip
    far = {**edge, "address": "192.0.2.7"}
    found = configs.problems(
        configs.adopted({"frontDoors.vip": apart, "pools.edge": {**pool, "hosts": [far]}})
    )
    assert ["load balancers share one layer 2" in text for _, text in found] == [True]


def test_own_failover_leaves_haproxy_and_no_keepalived() -> None:
    plan = with_vip(failover="own")
    phases = desired.of_phases(plan, plan.masters[0])
    assert "vip" not in phases
    assert "keepalived" not in phases["node"]["PACKAGES"]
    assert "bind 10.92.0.5:8443 transparent" in phases["node"]["HAPROXY_CFG"]


def test_adopted_masters_share_a_network_with_it() -> None:
    far = {"frontDoors": {"vip": {"address": "198.51.100.5"}}}
    with pytest.raises(SpecError) as refused:
        adopted(**far)
    assert [path for path, _ in refused.value.problems] == ["frontDoors.vip.address"] * 2
    assert "master-1: 192.0.2.21 is not within 198.51.100.0/24" in str(refused.value)
    wide = {"address": "192.0.3.5", "subnet": "192.0.2.0/23"}
    assert adopted(frontDoors={"vip": wide}).vip == "192.0.3.5:8443"


def test_workers_and_etcd_machines_have_no_part_in_it() -> None:
    plan = adopted(frontDoors={"vip": {"address": "192.0.2.5"}})
    for node in plan.nodes:
        assert ("vip" in desired.of_phases(plan, node)) == node.is_master
        assert ("keepalived" in of_node(plan, node)["PACKAGES"]) == node.is_master


@pytest.mark.parametrize("masters", [1, 3, 7])
def test_it_fits_into_the_payload_of_a_node(masters: int) -> None:
    plan = with_vip(masters)
    values = front_doors.of_holder(plan, plan.masters[-1])
    assert sum(map(len, values.values())) < 4000
