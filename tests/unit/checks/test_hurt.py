"""What a config could say that hurts a cluster is refused: a class of it at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stacks.checks import outside
from stacks.checks.pools import _OWN_TAINTS
from stacks.config import ports
from stacks.config.problems import SpecError
from stacks.edits import memory, transition
from stacks.edits.transition import TransitionError
from stacks.load import load
from stacks.providers.registry import CLOUDS
from tests.unit.configs import adopted, aws, gcp, host_key, lab, planned, with_store

Config = dict[str, object]


def refused(raw: Config) -> dict[str, str]:
    """What a config is refused for, by path; empty where it is accepted."""
    try:
        load(raw, read_keys=False)
    except SpecError as error:
        return dict(error.problems)
    return {}


def everywhere(place: str, **others: object) -> Config:
    """A config in which every field for a place outside holds it."""
    url = f"http://{place}:5000"
    edits: Config = {
        "mirror": {"url": f"{url}/x", "registry": url, "manifest": "m.json"},
        "proxy": {"http": url, "https": url},
        "runtime.registryMirrors": {f"{place}:99": [f"{url}/y"]},
        "controlPlane.oidc": {"issuerUrl": f"https://{place}/x", "clientId": "x"},
        "machines.ssh": {"agent": True, "bastion": {"address": place, "hostKey": host_key(5)}},
        "cluster.endpoint": f"{place}:6443",
        **with_store(endpoint=url),
        **others,
    }
    return adopted(edits)


def fields() -> Iterator[str]:
    yield from (
        "cluster.endpoint",
        "controlPlane.oidc.issuerUrl",
        "etcd.backup.objectStore.endpoint",
    )
    yield from ("machines.ssh.bastion.address", "mirror.registry", "mirror.url", "proxy.http")
    yield from ("proxy.https",)


def test_the_walk_finds_every_field_that_names_a_place() -> None:
    found = {
        ".".join(map(str, loc))
        for loc, *_ in outside.places(planned(everywhere("192.0.2.200")).spec)
    }
    assert {*fields()} < found
    assert {
        "runtime.registryMirrors.192.0.2.200:99",
        "runtime.registryMirrors.192.0.2.200:99.0",
    } < found


@pytest.mark.parametrize("place", ["10.244.7.7", "10.96.7.7", "x.cluster.local", "cluster.local"])
def test_no_place_outside_lies_inside(place: str) -> None:
    found = refused(everywhere(place))
    wanted = {
        *fields(),
        f'runtime.registryMirrors."{place}:99"',
        f'runtime.registryMirrors."{place}:99"[0]',
    }
    if place == "10.96.7.7":  # a Service may be a registry, or an identity provider
        wanted -= {f'runtime.registryMirrors."{place}:99"', "controlPlane.oidc.issuerUrl"}
    assert {*found} == wanted


def test_a_name_may_be_of_digits() -> None:
    assert refused(everywhere("1-2")) == {}


def test_localhost_is_no_place_for_all() -> None:
    assert {*fields()} <= {*refused(everywhere("localhost"))}


@pytest.mark.parametrize(
    "edits",
    [
        {"cluster.dnsDomain": "example.com", "cluster.endpoint": "api.example.com"},
        {"cluster.endpoint": "kubernetes.default.svc"},
        {"cluster.endpoint": "kubernetes"},
        {"cluster.endpoint": "10.92.0.11:8443"},
    ],
)
def test_an_endpoint_leads_somewhere(edits: Config) -> None:
    assert [*refused(lab(edits))] == ["cluster.endpoint"]


def test_a_jump_host_is_no_node() -> None:
    ssh = {"agent": True, "bastion": {"address": "192.0.2.11", "hostKey": host_key(5)}}
    assert [*refused(adopted({"machines.ssh": ssh}))] == ["machines.ssh.bastion.address"]


@pytest.mark.parametrize("port", sorted({*ports.of_roles(["etcd", "master", "worker"]), 22, 8472}))
def test_no_range_of_node_ports_holds_a_port_in_use(port: int) -> None:
    flag = "controlPlane.apiServerArgs"
    low, high = max(port - 5, 1), port + 5
    found = refused(lab({flag: {"service-node-port-range": f"{low}-{high}"}}))
    assert [*found] == [f"{flag}.service-node-port-range"]


def test_ports_are_compared_with_the_range_that_was_told() -> None:
    flag = {"controlPlane.apiServerArgs": {"service-node-port-range": "12000-13000"}}
    vip = {"frontDoors.vip": {"address": "10.92.0.250", "port": 12500}}
    ingress = {"frontDoors.ingress": {"hosts": ["a.example.com"], "nodePort": 30080}}
    assert [*refused(lab({**flag, **vip}))] == ["frontDoors.vip.port"]
    assert [*refused(lab({**vip, "frontDoors.vip.port": 30443}))] == ["frontDoors.vip.port"]
    assert refused(lab({**flag, **vip, "frontDoors.vip.port": 30443})) == {}
    told = lab({**flag, **vip, "frontDoors.vip.port": 8443, **ingress})
    assert [*refused(told)] == ["frontDoors.ingress.nodePort"]
    told = lab(
        {
            **flag,
            **vip,
            "frontDoors.vip.port": 8443,
            **ingress,
            "frontDoors.ingress.nodePort": 12080,
        }
    )
    assert refused(told) == {}


def test_sshd_and_doors_do_not_meet() -> None:
    doors = {
        "vip": {"address": "192.0.2.200"},
        "ingress": {"hosts": ["a.example.com"]},
    }
    raw = adopted({"frontDoors": doors, "machines.ssh": {"agent": True, "port": 443}})
    assert [*refused(raw)] == ["machines.ssh.port"]
    door = {"frontDoors.etcd": {"pools": ["worker"], "port": 22}}
    assert [*refused(lab(door))] == ["frontDoors.etcd.port"]
    assert [*refused(lab({**door, "frontDoors.etcd.port": 30001}))] == ["frontDoors.etcd.port"]


@pytest.mark.parametrize("key", sorted(_OWN_TAINTS))
def test_taints_of_kubernetes_itself_are_not_the_users(key: str) -> None:
    for where in ("pools.worker", "nodes.worker-1"):
        raw = lab({f"{where}.taints": [{"key": key, "effect": "NoSchedule"}]})
        assert [*refused(raw)] == [f"{where}.taints[0]"]


@pytest.mark.parametrize(
    ("directory", "good"),
    [
        ("/mnt/etcd", True), ("/srv/backups/x", True), ("/backup", True), ("/media/nfs", True),
        ("/etc/kubernetes", False), ("/var/lib/kube-ha/etcd", False), ("/mnt/../var/lib", False),
        ("/mnt/./x", False), ("//mnt", False), ("/", False), ("/run/x", False), ("/home/a", False),
        ("/var/lib", False), ("/usr/local/x", False), ("/proc/x", False), ("mnt/x", False),
    ],
)  # fmt: skip
def test_backups_go_where_the_machine_is_not(directory: str, *, good: bool) -> None:
    found = refused(lab({"etcd.backup": {"directory": directory}}))
    assert [*found] == ([] if good else ["etcd.backup.directory"])


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (adopted({"machines.lab": {"subnet": "10.93.0.0/24"}}), "machines.lab"),
        (gcp({"machines.lab": {"subnet": "10.93.0.0/24"}}), "machines.lab"),
        (lab({"network": {"plugin": "none", "backend": "host-gw"}}), "network.backend"),
        (lab({"proxy": {"noProxy": ["example.com"]}}), "proxy.noProxy"),
        (gcp({"machines.gcp.labels": {"kube-ha-cluster": "x"}}), "machines.gcp.labels"),
        (aws({"machines.aws.labels": {"kube-ha-cluster": "x"}}), "machines.aws.labels"),
        (lab({"rollout": {"order": [{"zones": ["z"]}]}}), "rollout.order[0].zones"),
        (
            lab({"rollout": {"order": [{"nodes": ["worker-1"]}, {"nodes": ["worker-1"]}]}}),
            "rollout.order[1].nodes",
        ),
        (lab({"allow": ["mass-removal/*"]}), "allow[0]"),
        (lab({"allow": ["host-key/*"]}), "allow[0]"),
    ],
)
def test_what_does_nothing_or_too_much_is_refused(raw: Config, path: str) -> None:
    assert [*refused(raw)] == [path]


def test_no_two_nodes_have_a_certificate_of_one_name() -> None:
    raw = adopted({"pools.master.hosts.0.name": "a", "pools.master.hosts.1.name": "a-apiserver"})
    assert [*refused(raw)] == ["pools.master.hosts[1]"]


POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({"level": "None", "user": ["x"]}, ""),
        ({"level": "None", "users": "x"}, ".users"),
        ({"level": "None", "omitStages": ["Never"]}, ".omitStages"),
        ({"level": "None", "resources": [{"groups": ""}]}, ".resources[0]"),
        ({"level": "None", "resources": {"group": ""}}, ".resources"),
        ({"level": "None", "omitManagedFields": "yes"}, ".omitManagedFields"),
    ],
)
def test_a_policys_unknown_fields_widen_no_rule(rule: Config, path: str) -> None:
    raw = lab({"controlPlane.audit.policy": {**POLICY, "rules": [rule]}})
    assert [*refused(raw)] == [f"controlPlane.audit.policy.rules[0]{path}"]


GOOD = [
    "e2-standard-4",
    "n2d-highmem-8",
    "c4a-standard-16",
    "t2a-standard-2",
    "e2-custom-4-8192",
    "a2-highgpu-1g",
]
GOOD_AWS = [
    "m6i.large",
    "t3.medium",
    "c7gn.16xlarge",
    "u-6tb1.56xlarge",
    "i3.metal",
    "m7i-flex.large",
    "t4g.small",
]


@pytest.mark.parametrize("type_", [*GOOD, *GOOD_AWS])
def test_machine_types_that_there_are_pass(type_: str) -> None:
    assert CLOUDS["aws" if "." in type_ else "gcp"].unfit(type_, ["master"]) == ""


@pytest.mark.parametrize(
    "type_", ["e2-micro", "f1-micro", "anything", "big-machine", "e2-standard"]
)
def test_types_that_google_has_not_or_are_too_small_are_refused(type_: str) -> None:
    assert [*refused(gcp({"machines.gcp.machineType": type_}))] == ["machines.gcp.machineType"]


@pytest.mark.parametrize("type_", ["t3.nano", "t3.micro", "m4.large", "c3.xlarge", "m6i.huge"])
def test_types_that_aws_has_not_or_that_do_not_fit_are_refused(type_: str) -> None:
    assert [*refused(aws({"machines.aws.machineType": type_}))] == ["machines.aws.machineType"]


def test_ids_of_aws_say_what_they_are() -> None:
    vpc, subnet = "vpc-0123456789abcdef0", "subnet-0123456789abcdef0"
    raw = aws({"machines.aws.vpcId": subnet, "machines.aws.subnets.eu-central-1a.id": vpc})
    found = refused(raw)
    assert "its ID begins with vpc-" in found["machines.aws.vpcId"]
    assert "its ID begins with subnet-" in found["machines.aws.subnets.eu-central-1a.id"]


def edit(before: Config, after: Config) -> list[str]:
    """The ids that an edit of a running cluster is refused for."""
    try:
        transition.check(memory.read(memory.of(planned(before))), planned(after))
    except TransitionError as error:
        return [path for path, _ in error.problems]
    return []


def two_pools(left: int, right: int, **edits: object) -> Config:
    pool = {"roles": ["worker"], "addressOffset": 150}
    return lab({"pools.worker.count": left, "pools.other": {**pool, "count": right}, **edits})


def test_most_workers_do_not_leave_at_once_whatever_their_pools() -> None:
    assert edit(two_pools(3, 3), two_pools(1, 1)) == ["pools"]
    assert edit(two_pools(3, 3), two_pools(2, 1)) == []
    allowed = two_pools(1, 1, allow=["mass-removal/all.workers"])
    assert edit(two_pools(3, 3), allowed) == []


def test_most_workers_are_not_made_anew_at_once() -> None:
    ten = {"pools.worker.count": 10}
    again = {f"nodes.worker-{n}.generation": 2 for n in range(1, 7)}
    assert edit(lab(ten), lab({**ten, **again})) == ["nodes"]
    del again["nodes.worker-6.generation"]
    assert edit(lab(ten), lab({**ten, **again})) == []
