"""Kernel settings and modules."""

from __future__ import annotations

from stacks.render.sysctl import modules, sysctl
from tests.unit.render.examples import adopted, lab


def test_containers_set_only_what_is_their_own() -> None:
    keys = [line.split(" = ")[0] for line in sysctl(lab()).splitlines()]
    assert keys
    assert all(key.startswith("net.") for key in keys)
    assert modules(lab()) == ""


def test_machines_forward_and_have_room_for_many_pods() -> None:
    lines = sysctl(adopted()).splitlines()
    assert "net.ipv4.ip_forward = 1" in lines
    assert "fs.inotify.max_user_instances = 8192" in lines
    assert modules(adopted()).splitlines() == ["br_netfilter", "nf_conntrack", "overlay", "vxlan"]


def test_no_tunnel_no_module_for_it() -> None:
    assert "vxlan" not in modules(adopted(network={"backend": "host-gw"}))
    assert "vxlan" not in modules(adopted(network={"plugin": "none"}))
