"""The plan that follows from a config."""

from __future__ import annotations

import json
import time

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from stacks.cluster.plan import Bastion, Mirror, Node
from stacks.cluster.resolve import plan
from stacks.config.problems import SpecError
from stacks.edits import memory
from stacks.explain import formats as words
from stacks.load import load
from tests.unit.configs import GONE, adopted, edited, host, host_key, lab, planned


def addresses(nodes: tuple[Node, ...]) -> dict[str, str]:
    return {node.name: node.address for node in nodes}


def test_lab_addresses_are_subnet_plus_offset_plus_ordinal() -> None:
    assert addresses(planned(lab()).nodes) == {
        "master-1": "10.92.0.11",
        "master-2": "10.92.0.12",
        "master-3": "10.92.0.13",
        "worker-1": "10.92.0.101",
        "worker-2": "10.92.0.102",
    }


def test_roles_decide_who_is_what() -> None:
    raw = lab(
        {
            "pools.etcd": {"roles": ["etcd"], "count": 3},
            "pools.master": {"roles": ["worker", "master"], "count": 1},
        }
    )
    made = planned(raw)
    assert [node.name for node in made.etcd] == ["etcd-1", "etcd-2", "etcd-3"]
    assert [node.name for node in made.masters] == ["master-1"]
    assert [node.name for node in made.workers] == ["worker-1", "worker-2"]
    assert made.masters[0].roles == ("master", "worker")
    assert not made.etcd[0].in_kubernetes
    assert not made.etcd_stacked
    assert planned(lab()).etcd_stacked


def test_control_plane_is_another_word_for_master() -> None:
    said = lab({"pools.master.roles": ["etcd", "control-plane"]})
    assert planned(said) == planned(lab({"pools.master.roles": ["etcd", "master"]}))


def test_masters_are_stacked_only_if_each_has_its_own_member() -> None:
    assert planned(lab({"pools.etcd": {"roles": ["etcd"], "count": 2}})).etcd_stacked
    more = lab({"pools.bare": {"roles": ["master"], "count": 1, "addressOffset": 20}})
    assert not planned(more).etcd_stacked


def test_the_lab_has_its_own_mirror() -> None:
    assert planned(lab({"machines.lab": {"subnet": "10.50.4.0/24"}})).mirror == Mirror(
        url="http://10.50.4.2:8080",
        registry="http://10.50.4.2:5000",
        manifest=".local/bundle/manifest.json",
    )


def test_adopted_machines_fetch_upstream_unless_told_otherwise() -> None:
    assert planned(adopted()).mirror is None
    said = {"url": "https://mirror/k/", "registry": "https://mirror:5000", "manifest": "m.json"}
    assert planned(adopted({"mirror": said})).mirror == Mirror(
        url="https://mirror/k", registry="https://mirror:5000", manifest="m.json"
    )


def test_containers_are_the_lab_or_what_the_user_says() -> None:
    assert planned(lab()).containers
    assert not planned(adopted()).containers
    assert planned(adopted({"machines.containers": True})).containers


def test_service_addresses_and_endpoint() -> None:
    made = planned(lab({"cluster.serviceCidr": "172.30.0.0/20"}))
    assert (made.api_service_ip, made.dns_service_ip) == ("172.30.0.1", "172.30.0.10")
    assert made.endpoint == "10.92.0.11:6443"
    assert planned(lab({"cluster.endpoint": "api.test"})).endpoint == "api.test:6443"
    assert planned(lab({"cluster.endpoint": "api.test:443"})).endpoint == "api.test:443"


def test_what_a_host_says_counts_more_than_what_all_share() -> None:
    ssh = {"agent": True, "user": "ops", "port": 2222, "bastion": {"address": "b", "hostKey": host_key(7)}}  # fmt: skip
    raw = adopted({"machines.ssh": ssh, "pools.worker.hosts.0.user": "root"})
    made = planned(raw)
    first, second = made.node("worker-1").ssh, made.node("worker-2").ssh
    assert first is not None
    assert second is not None
    assert (first.user, first.port, first.host_key) == ("root", 2222, host_key(101))
    assert second.user == "ops"
    assert second.bastion == Bastion(
        address="b", port=22, user="root", host_key=host_key(7), private_key_file=None
    )


def test_the_place_of_a_host_in_its_list_means_nothing() -> None:
    turned = adopted({"pools.worker.hosts": [host("worker", 2), host("worker", 1)]})
    assert planned(turned).nodes == planned(adopted()).nodes


def test_hosts_without_a_number_are_ordered_by_name() -> None:
    hosts = [host("worker", n) | {"name": name} for n, name in ((1, "zeus"), (2, "apollo"))]
    made = planned(adopted({"pools.worker.hosts": hosts}))
    assert [(node.name, node.ordinal) for node in made.workers] == [("apollo", 0), ("zeus", 0)]


def test_labels_and_taints_of_pool_and_node_are_merged() -> None:
    made = planned(
        lab(
            {
                "pools.worker.labels": {"b": "pool", "a": "pool"},
                "pools.worker.taints": [{"key": "x", "value": "pool", "effect": "NoSchedule"}],
                "nodes": {
                    "worker-2": {
                        "labels": {"b": "node", "c": "node"},
                        "taints": [
                            {"key": "x", "value": "node", "effect": "NoSchedule"},
                            {"key": "x", "effect": "NoExecute"},
                        ],
                    }
                },
            }
        )
    )
    one, two = made.workers
    assert one.labels == (("a", "pool"), ("b", "pool"))
    assert two.labels == (("a", "pool"), ("b", "node"), ("c", "node"))
    assert [(taint.key, taint.value, taint.effect) for taint in two.taints] == [
        ("x", "", "NoExecute"),
        ("x", "node", "NoSchedule"),
    ]


ZONE = "topology.kubernetes.io/zone"


def zones(nodes: tuple[Node, ...]) -> dict[str, str | None]:
    return {node.name: node.zone for node in nodes}


def test_lab_machines_take_turns_in_their_zones_by_number() -> None:
    raw = lab({"pools.master.zones": ["a", "b", "c"], "pools.worker.zones": ["x", "y"]})
    made = planned(raw)
    assert zones(made.masters) == {"master-1": "a", "master-2": "b", "master-3": "c"}
    assert zones(made.workers) == {"worker-1": "x", "worker-2": "y"}
    more = planned(edited(raw, {"pools.worker.count": 4}))
    assert zones(more.workers)["worker-3"] == "x"
    assert zones(made.workers).items() <= zones(more.workers).items()


def test_a_zone_is_a_label_of_the_node_as_others_are() -> None:
    raw = adopted({"pools.worker.hosts.0.zone": "room-2", "pools.worker.labels": {"a": "b"}})
    one, two = planned(raw).workers
    assert one.labels == (("a", "b"), (ZONE, "room-2"))
    assert two.labels == (("a", "b"),)
    assert (one.zone, two.zone) == ("room-2", None)


def test_an_etcd_machine_has_a_zone_but_no_node_to_label() -> None:
    raw = lab(
        {
            "pools.etcd": {"roles": ["etcd"], "count": 3, "zones": ["a", "b", "c"]},
            "pools.master": {"roles": ["master"], "count": 3},
        }
    )
    made = planned(raw)
    assert made.node("etcd-2").zone == "b"
    assert made.node("etcd-2").labels == ()
    assert made.warnings == ()
    assert "etcd-2    etcd    10.92.0.52   amd64  zone=b\n" in words.plan(made)


WARNINGS = [
    ({}, []),
    ({"pools.master.count": 1}, []),
    ({"pools.master.count": 4}, ["4 etcd members survive the loss of 1, no more than 3 do; use 3 or 5"]),
    ({"pools.master.count": 2}, ["2 etcd members survive the loss of 0, no more than 1 do; use 1 or 3"]),
    ({"pools.worker.count": 0}, ["no machine has role worker; only pods that tolerate masters will run"]),
    (
        {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master": {"roles": ["master"], "count": 2}},
        ["2 masters: planned work on one leaves a single one; use 3"],
    ),
    ({"pools.master.zones": ["a", "b", "c"]}, []),
    ({"pools.worker.zones": ["a"]}, ["3 of 3 etcd members have no zone (master-1, master-2, master-3): what the loss of a zone costs is not known; give each one"]),
    ({"pools.master.zones": ["a", "b"]}, ["zone a holds 2 of 3 etcd members: with it the quorum is lost, and the API; spread them over 3 zones, at most 1 in each"]),
    ({"pools.master": {"roles": ["etcd", "master"], "count": 5, "zones": ["b", "a", "c"]}}, []),
    ({"pools.master": {"roles": ["etcd", "master"], "count": 5, "zones": ["a", "b"]}}, ["zone a holds 3 of 5 etcd members: with it the quorum is lost, and the API; spread them over 3 zones, at most 2 in each"]),
    ({"pools.master": {"roles": ["etcd", "master"], "count": 1, "zones": ["a", "b"]}}, ["zone a holds 1 of 1 etcd members: with it the quorum is lost, and the API; use 3 members in 3 zones"]),
    (
        {"pools.etcd": {"roles": ["etcd"], "count": 1, "zones": ["c"]}, "pools.master": {"roles": ["etcd", "master"], "count": 2}},
        ["2 masters: planned work on one leaves a single one; use 3", "2 of 3 etcd members have no zone (master-1, master-2): what the loss of a zone costs is not known; give each one"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "texts"), WARNINGS)
def test_what_is_seldom_meant_is_warned_of(edits: dict[str, object], texts: list[str]) -> None:
    assert [said for _, said in planned(lab(edits)).warnings] == texts


def test_hosts_that_are_not_pinned_are_warned_of() -> None:
    ssh = {"agent": True, "insecureIgnoreHostKey": True}
    made = planned(adopted({"machines.ssh": ssh, "pools.worker.hosts.0.hostKey": GONE}))
    text = "worker-1: the host key is not checked (insecureIgnoreHostKey)"
    assert made.warnings == (("pools.worker.hosts[0]", text),)


def test_an_rsa_host_key_is_refused_with_what_to_write() -> None:
    key = rsa_host_key()
    bastion = {"address": "bastion.example.com", "hostKey": key}
    edits = {"machines.ssh.bastion": bastion, "pools.worker.hosts.1.hostKey": key}
    with pytest.raises(SpecError) as caught:
        planned(adopted(edits))
    paths = [path for path, _ in caught.value.problems]
    assert sorted(paths) == ["machines.ssh.bastion.hostKey", "pools.worker.hosts[1].hostKey"]
    assert all("as `make hostkeys` shows it" in text for _, text in caught.value.problems)


def rsa_host_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_bytes(*form).decode()


def test_a_stack_that_pinned_one_before_is_still_read() -> None:
    known = memory.of(planned(adopted()))
    text = json.dumps(known).replace(host_key(1), rsa_host_key())
    assert memory.read(json.loads(text)).machines


def test_host_keys_of_any_other_kind_are_taken_as_they_are() -> None:
    ed25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB"
    other = ed25519[:-1] + "C"
    bastion = {"address": "bastion.example.com", "hostKey": ed25519}
    edits = {
        "machines.ssh.bastion": bastion,
        "pools.worker.hosts.0.hostKey": ed25519,
        "pools.worker.hosts.1.hostKey": other,
    }
    assert planned(adopted(edits)).warnings == ()
    assert planned(adopted()).warnings == ()


def test_addresses_that_most_networks_keep_for_themselves_are_warned_of() -> None:
    raw = adopted(
        {"pools.worker.hosts.0.address": "192.0.2.0", "pools.worker.hosts.1.address": "192.0.2.255"}
    )
    assert planned(raw).warnings == (
        ("pools.worker.hosts[0].address", "192.0.2.0 means the network itself in a /24; is it that machine's own?"),
        ("pools.worker.hosts[1].address", "192.0.2.255 means broadcast in a /24; is it that machine's own?"),
    )  # fmt: skip


def test_a_wider_network_has_machines_at_such_addresses() -> None:
    edits = {"pools.worker.hosts.0.address": "192.0.2.255"}
    assert planned(adopted({**edits, "pools.worker.hosts.1.address": "192.0.3.0"})).warnings == ()


def test_a_port_of_another_role_is_free_for_ssh() -> None:
    assert planned(adopted({"pools.worker.hosts.0.port": 6443}))
    assert planned(adopted({"pools.worker.hosts.0.port": 2380}))
    assert planned(adopted({"cluster.endpoint": "192.0.2.11:6443"})).endpoint == "192.0.2.11:6443"


def test_the_mirror_of_the_lab_is_the_second_address_of_its_subnet() -> None:
    made = planned(lab({"machines.lab.subnet": "10.92.0.128/25"}))
    assert made.mirror is not None
    assert made.mirror.registry == "http://10.92.0.130:5000"


def test_a_node_is_found_by_name() -> None:
    made = planned(lab())
    assert made.node("master-2") is made.masters[1]
    with pytest.raises(KeyError):
        made.node("master-4")


@pytest.mark.parametrize("provider", ["lab", "adopt"])
def test_a_thousand_nodes_are_planned_in_under_a_second(provider: str) -> None:
    if provider == "lab":
        raw = lab(
            {
                "pools.worker.count": 1000,
                "machines.lab": {"subnet": "10.16.0.0/16"},
                "cluster.podCidr": "10.32.0.0/12",
            }
        )
    else:
        hosts = [
            {"name": f"w-{n}", "address": f"10.0.{n // 250}.{n % 250}", "hostKey": host_key(n)}
            for n in range(1000, 2000)
        ]
        raw = adopted({"pools.worker.hosts": hosts, "cluster.podCidr": "10.32.0.0/12"})
    start = time.process_time()  # of this process alone: the computer may be busy
    made = plan(load(raw))
    assert time.process_time() - start < 1
    assert len(made.workers) == 1000
