"""What a running cluster may become, and what is refused with which way out."""

from __future__ import annotations

import json

import pytest

from stacks.edits import memory
from stacks.edits.memory import fingerprint
from stacks.edits.transition import TransitionError, check, remembered
from tests.unit.configs import adopted, aws, edited, gcp, hcloud, host, host_key, lab, planned

WORKERS_9 = {"pools.worker.count": 9}
LAB_5 = {"pools.master.count": 5}
SEPARATE = {
    "pools.etcd": {"roles": ["etcd"], "count": 3},
    "pools.master": {"roles": ["master"], "count": 2},
}
ALLOW = "if you mean it: `allow: [{}]`"
WAY = "add the machine under a new name and run up, then take the old name out and run up again"
OVER = "make a new stack with the new value and move the workload over"


def refused(before: dict[str, object], after: dict[str, object]) -> list[tuple[str, str]]:
    previous = json.loads(json.dumps(memory.of(planned(before))))
    try:
        check(remembered(previous), planned(after))
    except TransitionError as error:
        return [(path, text) for path, text in error.problems]
    return []


CALICO = {"network.plugin": "calico"}
BGP = {**CALICO, "network.backend": "bgp"}
BOTH = {**BGP, "network.bgpTopology": "mesh-and-reflectors"}
ROUTER = {"address": "192.0.2.1", "asNumber": 65001}
IN_A = {**ROUTER, "zones": ["a"]}
ENDS_FIRST = "what was ends with the add-ons, what is to be is there with the list of nodes, at the end of the update, and until then pods of different nodes do not reach each other; go by mesh-and-reflectors, in an update of its own, or have bgpPeers before"
SESSIONS = "sessions end before others are there, and for seconds pods of different nodes do not reach each other"
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
    ({}, {"pki.adminGeneration": 3}),
    ({"pki.adminGeneration": 1}, {"pki.adminGeneration": 3}),
    (LAB_5, {}),
    (LAB_5, {"pools.master.count": 1}),
    ({}, {"pools.master.count": 1}),
    (SEPARATE, {**SEPARATE, "pools.etcd": {"roles": ["etcd"], "count": 1}}),
    (WORKERS_9, {"pools.worker.count": 5}),
    (WORKERS_9, {"pools.worker.count": 3, "allow": ["mass-removal/worker"]}),
    ({}, {"network.backend": "host-gw", "allow": ["network-backend/host-gw"]}),
    ({}, {"network.backend": "host-gw", "allow": ["network-backend/host-gw"]}),
    ({}, {"pools.master.count": 2, "pools.worker.count": 1, "allow": ["leave-together/master-3"]}),
    (BGP, {**BGP, "network.bgpTopology": "mesh-and-reflectors"}),
    (BOTH, {**BGP, "network.bgpTopology": "reflectors"}),
    (BOTH, {**BGP, "sizing.nodes": 300}),
    (BOTH, {**BOTH, "network.bgpReflectorPools": ["worker"]}),
    ({**BGP, "network.bgpTopology": "reflectors"}, BOTH),
    (BOTH, BGP),
    # Routers that all nodes have sessions with, before and after.
    ({**BGP, "network.bgpPeers": [ROUTER]}, {**BGP, "network.bgpPeers": [ROUTER], "network.bgpTopology": "peers"}),
    # Over VXLAN there are no sessions, and a mesh that is said stays at any size.
    (CALICO, {**CALICO, "sizing.nodes": 300}),
    (BGP, {**BGP, "sizing.nodes": 300, "network.bgpTopology": "mesh"}),
    (BGP, {**BGP, "network.bgpPeers": [{"address": "192.0.2.1", "asNumber": 65001}], "network.typha": True}),
    (BGP, {**BGP, "network.bgpTopology": "reflectors", "allow": ["network-bgp-topology/reflectors"]}),
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
    ({"network.plugin": "cilium"}, {"network.plugin": "cilium", "network.kubeProxyReplacement": True}, [fixed("network.kubeProxyReplacement", "false", "true", "rules and programs for Services are in the kernel of every node, and those of the one do not make way for those of the other")]),
    (CALICO, {**CALICO, "network.blockSize": 24}, [fixed("network.blockSize", "26", "24", "nodes have blocks of that size, and pods addresses of them")]),
    (BGP, {**BGP, "network.bgpTopology": "reflectors"}, [("network.bgpTopology", f"from mesh to reflectors: {ENDS_FIRST}; set it back to 'mesh'; " + ALLOW.format("network-bgp-topology/reflectors"))]),
    # What follows from the size counts as much as what is said.
    (BGP, {**BGP, "sizing.nodes": 300}, [("network.bgpTopology", f"from mesh to reflectors: {ENDS_FIRST}; set it back to 'mesh'; " + ALLOW.format("network-bgp-topology/reflectors"))]),
    ({**BGP, "network.bgpTopology": "reflectors"}, {**BGP, "network.bgpTopology": "reflectors", "network.bgpReflectorPools": ["worker"]}, [("network.bgpReflectorPools", f"from none to worker: {SESSIONS}; set it back to []; " + ALLOW.format("network-bgp-reflector-pools/worker"))]),
    (BGP, {**BGP, "network.bgpTopology": "peers", "network.bgpPeers": [ROUTER]}, [("network.bgpTopology", f"from mesh to peers: {ENDS_FIRST}; set it back to 'mesh'; " + ALLOW.format("network-bgp-topology/peers"))]),
    # Of one zone alone: the others would lose all.
    ({**BGP, "network.bgpPeers": [IN_A]}, {**BGP, "network.bgpPeers": [IN_A], "network.bgpTopology": "peers"}, [("network.bgpTopology", f"from mesh to peers: {ENDS_FIRST}; set it back to 'mesh'; " + ALLOW.format("network-bgp-topology/peers"))]),
    (BOTH, {**BGP, "network.bgpTopology": "reflectors", "network.bgpReflectorPools": ["worker"]}, [("network.bgpReflectorPools", f"from none to worker: {SESSIONS}; set it back to []; " + ALLOW.format("network-bgp-reflector-pools/worker"))]),
    (BGP, {**BGP, "network.bgpAsNumber": 65000}, [("network.bgpAsNumber", f"from 64512 to 65000: {SESSIONS}; set it back to 64512; " + ALLOW.format("network-bgp-as-number/65000"))]),
    ({}, {"network.nodeCidrMask": 25}, [fixed("network.nodeCidrMask", "24", "25", "nodes have parts of cluster.podCidr of that size")]),
    ({}, {"controlPlane.encryptSecrets": False}, [fixed("controlPlane.encryptSecrets", "true", "false", "Secrets are in etcd in the form it chose")]),
    ({}, {"pki.caValidityHours": 10000}, [fixed("pki.caValidityHours", "87600", "10000", "another lifetime makes other CAs, which no member would trust")]),
    ({"pki.adminGeneration": 2}, {"pki.adminGeneration": 1}, [
        ("pki.adminGeneration", "cannot go from 2 to 1: kubeconfigs of before would do everything again; set 2, or 3 to shut out the present one too"),
    ]),
    ({"pki.adminGeneration": 1000}, {"pki.adminGeneration": 1}, [
        ("pki.adminGeneration", "cannot go from 1000 to 1: kubeconfigs of before would do everything again; set 1000"),
    ]),
    ({"pki.adminGeneration": 2}, {}, [
        ("pki.adminGeneration", "cannot go from 2 to none: kubeconfigs of before would do everything again; set 2, or 3 to shut out the present one too"),
    ]),
    ({}, {"pools.master.count": 2, "pools.worker.count": 1}, [
        ("pools.master", "master-3 and worker-2 would leave together; put the lines of master-3 back and run up, then take them out and run up again; " + ALLOW.format("leave-together/master-3")),
    ]),
    (WORKERS_9, {"pools.worker.count": 4}, [
        ("pools.worker", "5 of 9 machines of pool worker would leave (worker-5, worker-6, worker-7, worker-8, worker-9); take out at most 4 per update; " + ALLOW.format("mass-removal/worker")),
    ]),
    (WORKERS_9, {"pools.worker.count": 2, "allow": ["mass-removal/other"]}, [
        ("pools.worker", "7 of 9 machines of pool worker would leave (worker-3, worker-4, worker-5, worker-6, worker-7 and 2 more); take out at most 4 per update; " + ALLOW.format("mass-removal/worker")),
    ]),
    ({}, {"network.backend": "host-gw"}, [
        ("network.backend", "from vxlan to host-gw: until flannel has restarted on every node, pods of nodes with the one cannot reach pods of nodes with the other; set it back to 'vxlan'; " + ALLOW.format("network-backend/host-gw")),
    ]),
    ({}, {"pools": {"master": {"roles": ["etcd", "master"], "count": 3}, "work": {"roles": ["worker"], "count": 1}}}, [
        ("pools.work", "work-1 is the machine of worker-1, which leaves in this edit; take worker-1 out and run up, then add it as work-1 and run up again"),
    ]),
    ({}, {"pools": {"boss": {"roles": ["etcd", "master"], "count": 3, "addressOffset": 20}, "worker": {"roles": ["worker"], "count": 2}}}, [
        ("pools.master", "no master of the running cluster would stay (leaving: master-1, master-2, master-3); add the new ones and run up, then take the old ones out"),
    ]),
    ({"pools.worker.count": 1}, {"pools.worker.count": 1, "pools.worker.addressOffset": 120}, [
        ("pools.worker", f"worker-1 moves from 10.92.0.101 to 10.92.0.121, which is another machine; {WAY}, or keep the name with nodes.worker-1.generation: 2"),
    ]),
    ({"pools.worker.count": 1}, {"pools.worker.count": 1, "pools.worker.arch": "arm64"}, [
        ("pools.worker", f"worker-1 turns from amd64 to arm64, which is another machine; {WAY}"),
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
            f"worker-1 moves from 192.0.2.101 to 192.0.2.150, which is another machine; {WAY}, "
            "or keep the name with nodes.worker-1.generation: 2",
        )
    ]
    other_key = adopted({"pools.worker.hosts.0.hostKey": host_key(900)})
    new, old = fingerprint(host_key(900)), fingerprint(host_key(101))
    text = f"worker-1 has host key {new}, the machine adopted has {old}; put the old key back"
    allow = ALLOW.format("host-key/worker-1")
    assert refused(adopted(), other_key) == [("pools.worker", f"{text}, or {WAY}; {allow}")]
    assert refused(adopted(), edited(other_key, {"allow": ["host-key/worker-1"]})) == []
    assert refused(adopted(), edited(other_key, {"allow": ["host-key/worker-2"]})) != []


def test_an_adopted_machine_cannot_change_its_name_in_one_edit() -> None:
    renamed = adopted({"pools.worker.hosts.0.name": "worker-9"})
    text = (
        "worker-9 is the machine of worker-1, which leaves in this edit; take worker-1 out and run "
        "up, then add it as worker-9 and run up again"
    )
    assert refused(adopted(), renamed) == [("pools.worker", text)]
    moved = edited(renamed, {"pools.worker.hosts.0.address": "192.0.2.150"})
    assert refused(adopted(), moved) == [("pools.worker", text)]  # known by its host key


def test_what_is_allowed_is_shown_and_what_allows_nothing_is_warned_about() -> None:
    edit = {
        "network.backend": "host-gw",
        "allow": ["network-backend/host-gw", "mass-removal/worker"],
    }
    verdict = check(remembered(memory.of(planned(lab()))), planned(lab(edit)))
    assert [one.id for one in verdict.allowed] == ["network-backend/host-gw"]
    assert verdict.warnings == (
        (
            "allow",
            "`mass-removal/worker` allows nothing in this change; take it out, or it will allow "
            "the next of its kind",
        ),
    )
    first = check(None, planned(lab({"allow": ["host-key/worker-1"]})))
    assert [path for path, _ in first.warnings] == ["network.plugin", "allow"]


@pytest.mark.parametrize(
    ("plugin", "told"), [("flannel", 1), ("cilium", 0), ("calico", 0), ("none", 0)]
)
def test_a_new_cluster_whose_network_enforces_no_policy_is_warned_about(
    plugin: str, told: int
) -> None:
    plan = planned(lab({"network.plugin": plugin}))
    warnings = [text for path, text in check(None, plan).warnings if path == "network.plugin"]
    assert len(warnings) == told
    assert all(text.startswith("flannel enforces no NetworkPolicy") for text in warnings)
    assert not check(remembered(memory.of(plan)), plan).warnings


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


@pytest.mark.parametrize("way", ["203.0.113.7", "worker-1.example.com"])
def test_the_way_to_a_machine_may_change_both_ways_and_is_no_machine(way: str) -> None:
    other = {"pools.worker.hosts.0.sshAddress": way}
    assert refused(adopted(), adopted(other)) == []
    assert refused(adopted(other), adopted()) == []
    assert not set(memory.machines(planned(adopted(other)).nodes).values()) ^ set(
        memory.machines(planned(adopted()).nodes).values()
    )


def test_without_a_success_to_remember_anything_goes() -> None:
    assert remembered(None) is None
    check(None, planned(lab()))


def test_fields_that_an_older_program_did_not_remember_are_not_compared() -> None:
    old = memory.of(planned(lab()))
    config = old["config"]
    assert isinstance(config, dict)
    del config["network"]["plugin"]
    check(remembered(old), planned(lab({"network.plugin": "none"})))


def test_a_cluster_from_before_there_was_a_choice_has_what_there_was() -> None:
    as_then = lab({"kubelet.servingCertificates": "self-signed"})
    old = memory.of(planned(as_then))
    config = old["config"]
    assert isinstance(config, dict)
    del config["network"]["nodeCidrMask"]
    for known in (remembered(old), remembered(OLDEST)):
        check(known, planned(as_then))
        with pytest.raises(TransitionError, match="nodeCidrMask: cannot change from 24 to 25"):
            check(known, planned(edited(as_then, {"network.nodeCidrMask": 25})))


def serving(step: str) -> dict[str, object]:
    return lab({"kubelet.servingCertificates": step})


@pytest.mark.parametrize(
    ("was", "now"), [("self-signed", "verified"), ("verified", "self-signed"), (None, "verified")]
)
def test_api_servers_check_kubelets_only_once_these_have_certificates(
    was: str | None, now: str
) -> None:
    """None: what a program remembers that had no such field."""
    old = memory.of(planned(serving(was or "verified")))
    if was is None:
        config = old["config"]
        assert isinstance(config, dict)
        del config["kubelet"]["servingCertificates"]
    for known in (remembered(old), *([remembered(OLDEST)] if was is None else [])):
        with pytest.raises(TransitionError, match=r"kubelet\.servingCertificates: cannot go from"):
            check(known, planned(serving(now)))
        check(known, planned(serving("issued")))
        check(known, planned(serving(was or "self-signed")))


def test_keys_that_the_model_lost_since_are_left_out() -> None:
    old = memory.of(planned(lab()))
    config = old["config"]
    assert isinstance(config, dict)
    config["network"]["colour"] = "blue"
    config["colours"] = {"a": 1}
    known = remembered(old)
    assert known is not None
    assert known.plan == planned(lab())


def test_what_is_remembered_is_the_plan_that_was_applied() -> None:
    for config in (
        lab({"nodes.worker-1.labels": {"a": "b"}}),
        adopted({"cluster.endpoint": "a:1"}),
    ):
        applied = planned(config)
        assert memory.read(json.loads(json.dumps(memory.of(applied)))).plan == applied


def test_versions_are_those_that_were_applied_whatever_the_lock_says_now() -> None:
    old = memory.of(planned(lab()))
    known = dict(old["versions"])  # type: ignore[call-overload]
    del known["runc"]
    known["containerd"] = "2.0.0"
    recalled = remembered(old | {"versions": known})
    assert recalled is not None
    assert recalled.plan is not None
    assert recalled.plan.versions.containerd == "2.0.0"
    assert recalled.plan.versions.runc == "unknown"


OLDEST = {
    "format": 1.0,  # numbers come back from the engine as floats
    "kubernetes": "1.36.3",
    "fixed": {"cluster.name": "dev", "pki.caValidityHours": 87600.0},
    "pools": {
        "master": {
            "roles": ["etcd", "master"],
            "machines": {f"master-{n}": f"10.92.0.1{n}" for n in (1, 2, 3)},
        },
        "worker": {"roles": ["worker"], "machines": {"worker-1": "10.92.0.101 SHA256:abc"}},
    },
}


def test_the_first_format_can_still_be_read() -> None:
    known = remembered(OLDEST)
    assert known is not None
    assert known.plan is None
    assert known.machines["worker-1"].fingerprint == "SHA256:abc"
    check(known, planned(lab({"kubelet.servingCertificates": "self-signed"})))
    with pytest.raises(TransitionError, match="from 87600 to 1000: "):
        check(
            known,
            planned(
                lab(
                    {
                        "pki.caValidityHours": 1000,
                        "pki.leafValidityHours": 900,
                        "pki.leafRenewalHours": 9,
                    }
                )
            ),
        )


UNREADABLE = [
    ({}, "format None"),
    ({"format": 3}, "format 3"),
    ({"format": 2, "config": []}, "format 2"),
    ({"format": 1, "fixed": {}, "pools": []}, "format 1 without pools"),
    ({"format": 1, "fixed": {}, "pools": {}}, "no Kubernetes version"),
    ({"format": 1, "fixed": {}, "pools": {"a": 1}, "kubernetes": "1.36.3"}, "pool 'a'"),
    ({"format": 1, "fixed": {}, "pools": {"a": {"roles": []}}, "kubernetes": "1.36.3"}, "pool 'a'"),
]


@pytest.mark.parametrize(("old", "what"), UNREADABLE)
def test_a_memory_that_cannot_be_read_stops_everything(old: dict[str, object], what: str) -> None:
    with pytest.raises(TransitionError) as caught:
        remembered(old)
    text = f"what the stack remembers of its last success cannot be read ({what})"
    expected = f"{text}; run the version of this program that made it"
    assert caught.value.problems == (("config", expected),)


@pytest.mark.parametrize(
    ("provider", "config"), [("gcp", gcp()), ("aws", aws()), ("hcloud", hcloud())]
)
def test_a_memory_of_a_cloud_without_its_section_cannot_be_read(
    provider: str, config: dict[str, object]
) -> None:
    old = json.loads(json.dumps(memory.of(planned(config))))
    del old["config"]["machines"][provider]
    with pytest.raises(TransitionError) as caught:
        remembered(old)
    assert f"machines.{provider} is not in its config" in caught.value.problems[0][1]


def test_memory_is_plain_and_small() -> None:
    kept = memory.of(planned(adopted()))
    assert json.loads(json.dumps(kept)) == kept
    # A thousand hosts: their lines, not what they leave to defaults.
    assert len(json.dumps(kept)) < 9000 + 300 * 5


def test_a_program_that_renders_otherwise_is_known_by_the_sums() -> None:
    kept = memory.of(planned(lab()))
    assert kept["rendered"] == memory.rendered(planned(lab()))
    other = memory.rendered(planned(lab({"cluster.endpoint": "api.example.com"})))
    assert kept["rendered"] != other
