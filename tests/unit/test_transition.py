"""What a running cluster may become, and what is refused with which way out."""

from __future__ import annotations

import json

import pytest

from stacks.transition import TransitionError, check, fingerprint, memory, nodes
from tests.unit.configs import adopted, edited, host, host_key, lab, planned

LAB_5 = {"pools.master.count": 5}
SEPARATE = {
    "pools.etcd": {"roles": ["etcd"], "count": 3},
    "pools.master": {"roles": ["master"], "count": 2},
}
WAY = "add the machine under a new name and run up, then take the old name out and run up again"
OVER = "make a new stack with the new value and move the workload over"


def refused(before: dict[str, object], after: dict[str, object]) -> list[tuple[str, str]]:
    remembered = json.loads(json.dumps(memory(planned(before))))
    try:
        check(remembered, planned(after))
    except TransitionError as error:
        return [(path, text) for path, text in error.problems]
    return []


ALLOWED = [
    ({}, {}),
    ({}, {"pools.worker.count": 5}),
    ({}, {"pools.worker.count": 0}),
    ({}, {"pools.master.count": 5}),
    ({}, {"pools.master.count": 2}),
    ({"pools.master.count": 1}, {"pools.master.count": 3}),
    ({}, {"pools.more": {"roles": ["worker"], "count": 2, "addressOffset": 120}}),
    ({}, {"pools.worker.labels": {"a": "b"}, "kubelet": {"maxPods": 50}}),
    ({}, {"controlPlane.audit": {"maxAgeDays": 5}, "pki.leafValidityHours": 100, "pki.leafRenewalHours": 10}),
    ({}, {"cluster.endpoint": "api.example.com", "network.proxyMode": "iptables"}),
    ({}, {"converge": {"generation": 2}}),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), ALLOWED)
def test_what_a_cluster_may_become(before: dict[str, object], after: dict[str, object]) -> None:
    assert refused(lab(before), lab(after)) == []


def fixed(what: str, old: str, new: str, reason: str) -> tuple[str, str]:
    return what, f"cannot change from {old} to {new}: {reason}; set it back to {old}, or {OVER}"


REFUSED = [
    ({}, {"cluster.name": "prod"}, [fixed("cluster.name", "'dev'", "'prod'", "names of machines and certificates are made of it")]),
    ({}, {"cluster.podCidr": "10.200.0.0/16"}, [fixed("cluster.podCidr", "'10.244.0.0/16'", "'10.200.0.0/16'", "running pods have addresses of it")]),
    ({}, {"cluster.serviceCidr": "10.97.0.0/16"}, [fixed("cluster.serviceCidr", "'10.96.0.0/16'", "'10.97.0.0/16'", "Services and the API's certificates have addresses of it")]),
    ({}, {"cluster.dnsDomain": "k8s.test"}, [fixed("cluster.dnsDomain", "'cluster.local'", "'k8s.test'", "running pods look names up in it")]),
    ({}, {"network.plugin": "none"}, [fixed("network.plugin", "'flannel'", "'none'", "running pods are wired by it")]),
    ({}, {"controlPlane.encryptSecrets": False}, [fixed("controlPlane.encryptSecrets", "true", "false", "Secrets lie in etcd in the form it chose")]),
    ({}, {"pki.caValidityHours": 10000}, [fixed("pki.caValidityHours", "87600", "10000", "another lifetime makes other CAs, which no member would trust")]),
    ({}, {"cluster.kubernetes": "1.35.4"}, [("cluster.kubernetes", "1.35.4 is older than 1.36.3, and it cannot read what 1.36.3 wrote to etcd; set it back to '1.36.3', or make a new stack with '1.35.4' and move the workload over")]),
    ({"cluster.kubernetes": "1.35.4"}, {}, [("cluster.kubernetes", "this cluster was made with 1.35.4, and stays with it; set it back to '1.35.4', or make a new stack with '1.36.3' and move the workload over")]),
    (LAB_5, {}, [
        ("pools.master", "master-4, master-5 would leave at once; take out one etcd member, run up, then the next"),
        ("pools.master", "master-4, master-5 would leave at once; take out one master, run up, then the next"),
    ]),
    ({}, {"pools.master.count": 1}, [
        ("pools.master", "master-2, master-3 would leave at once; take out one etcd member, run up, then the next"),
        ("pools.master", "master-2, master-3 would leave at once; take out one master, run up, then the next"),
    ]),
    (SEPARATE, {**SEPARATE, "pools.etcd": {"roles": ["etcd"], "count": 1}}, [
        ("pools.etcd", "etcd-2, etcd-3 would leave at once; take out one etcd member, run up, then the next"),
    ]),
    ({}, {"pools": {"boss": {"roles": ["etcd", "master"], "count": 3}, "worker": {"roles": ["worker"], "count": 2}}}, [
        ("pools.master", "no etcd member of the running cluster would stay (leaving: master-1, master-2, master-3); add the new ones and run up, then take out one etcd member per up"),
        ("pools.master", "no master of the running cluster would stay (leaving: master-1, master-2, master-3); add the new ones and run up, then take out one master per up"),
    ]),
    ({"pools.worker.count": 1}, {"pools.worker.count": 1, "pools.worker.addressOffset": 120}, [
        ("pools.worker", f"worker-1 moves from 10.92.0.101 to 10.92.0.121, which is another machine; {WAY}"),
    ]),
    ({"pools.worker.count": 1}, {"pools.worker": {"roles": ["master", "worker"], "count": 1, "addressOffset": 100}}, [
        ("pools.worker", f"worker-1 would change roles from [worker] to [master, worker]; machines keep their roles: {WAY}"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), REFUSED)
def test_what_would_break_a_cluster_is_refused_with_the_way_to_the_goal(
    before: dict[str, object], after: dict[str, object], expected: list[tuple[str, str]]
) -> None:
    assert refused(lab(before), lab(after)) == expected


def test_the_provider_is_for_life() -> None:
    found = refused(lab(), edited(adopted(), {"cluster.name": "dev"}))
    assert fixed("machines.provider", "'lab'", "'adopt'", "machines cannot change their kind") in (
        found
    )


def test_an_adopted_machine_keeps_address_and_host_key() -> None:
    moved = adopted({"pools.worker.hosts.0.address": "192.0.2.150"})
    assert refused(adopted(), moved) == [
        (
            "pools.worker",
            f"worker-1 moves from 192.0.2.101 to 192.0.2.150, which is another machine; {WAY}",
        )
    ]
    other_key = adopted({"pools.worker.hosts.0.hostKey": host_key(900)})
    new, old = fingerprint(host_key(900)), fingerprint(host_key(101))
    text = f"worker-1 has host key {new}, the machine adopted has {old}; put the old key back"
    assert refused(adopted(), other_key) == [("pools.worker", f"{text}, or {WAY}")]


def test_fingerprints_are_those_of_ssh_keygen() -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB"
    assert fingerprint(key) == "SHA256:gOPgXFWkBoXrFVwpjf0SBo3P1kFs+IvH5q/vnQhNpFw"


def test_an_adopted_machine_may_be_exchanged_in_two_steps() -> None:
    both = adopted(
        {"pools.worker.hosts": [host("worker", 1), host("worker", 2), host("worker", 3)]}
    )
    new = adopted({"pools.worker.hosts": [host("worker", 2), host("worker", 3)]})
    assert refused(adopted(), both) == []
    assert refused(both, new) == []


def test_user_and_port_of_a_machine_may_change() -> None:
    assert (
        refused(adopted(), adopted({"machines.ssh.user": "ops", "machines.ssh.port": 2222})) == []
    )


def test_without_a_success_to_remember_anything_goes() -> None:
    check(None, planned(lab()))


def test_fields_that_an_older_program_did_not_remember_are_not_compared() -> None:
    old = memory(planned(lab()))
    fields = old["fixed"]
    assert isinstance(fields, dict)
    del fields["network.plugin"]
    check(old, planned(lab({"network.plugin": "none"})))


def test_numbers_come_back_from_the_engine_as_floats() -> None:
    old = memory(planned(lab())) | {"format": 1.0}
    fields = old["fixed"]
    assert isinstance(fields, dict)
    fields["pki.caValidityHours"] = 87600.0
    check(old, planned(lab()))


UNREADABLE = [
    ({}, "format None"),
    ({"format": 2}, "format 2"),
    ({"format": 1, "fixed": {}, "pools": []}, "format 1"),
    ({"format": 1, "fixed": {}, "pools": {}}, "no Kubernetes version"),
    ({"format": 1, "fixed": {}, "pools": {"a": 1}, "kubernetes": "1.36.3"}, "pool 'a'"),
    ({"format": 1, "fixed": {}, "pools": {"a": {"roles": []}}, "kubernetes": "1.36.3"}, "pool 'a'"),
]


@pytest.mark.parametrize(("old", "what"), UNREADABLE)
def test_a_memory_that_cannot_be_read_stops_everything(old: dict[str, object], what: str) -> None:
    with pytest.raises(TransitionError) as caught:
        check(old, planned(lab()))
    text = f"what the stack remembers of its last success cannot be read ({what})"
    expected = f"{text}; run the version of this program that made it"
    assert caught.value.problems == (("config", expected),)


def test_the_names_of_the_last_success_are_known() -> None:
    assert nodes(None) is None
    assert nodes(memory(planned(lab({"pools.worker.count": 0})))) == frozenset(
        {
            "master-1",
            "master-2",
            "master-3",
        }
    )
    with pytest.raises(TransitionError):
        nodes({})


def test_memory_is_plain_and_small() -> None:
    remembered = memory(planned(adopted()))
    assert json.loads(json.dumps(remembered)) == remembered
    assert len(json.dumps(remembered)) < 500 + 90 * 5
