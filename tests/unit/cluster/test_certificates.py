"""The table of certificates."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stacks.cluster.certificates import Leaf, table
from tests.unit.configs import lab, planned

STACKED_1_1 = {"pools.master.count": 1, "pools.worker.count": 1}
SERVER = ("digital_signature", "server_auth")
CLIENT = ("digital_signature", "client_auth")
BOTH = ("digital_signature", "server_auth", "client_auth")


def leafs(edits: Mapping[str, object]) -> dict[str, Leaf]:
    made = table(planned(lab(edits)))
    by_name = {leaf.name: leaf for leaf in made}
    assert len(by_name) == len(made), "names are unique"
    return by_name


EXPECTED = [
    ("master-1-apiserver", "kubernetes", "/etc/kubernetes/pki/apiserver", "kube-apiserver", (), SERVER),
    ("master-1-apiserver-kubelet-client", "kubernetes", "/etc/kubernetes/pki/apiserver-kubelet-client", "kube-apiserver-kubelet-client", ("kubeadm:cluster-admins",), CLIENT),
    ("master-1-front-proxy-client", "front-proxy", "/etc/kubernetes/pki/front-proxy-client", "front-proxy-client", (), CLIENT),
    ("master-1-apiserver-etcd-client", "etcd", "/etc/kubernetes/pki/apiserver-etcd-client", "kube-apiserver-etcd-client", (), CLIENT),
    ("master-1-approver", "kubernetes", "/etc/kube-ha/approver", "kube-ha:approver", (), CLIENT),
    ("master-1-etcd-server", "etcd", "/etc/kube-ha/etcd/server", "master-1", (), BOTH),
    ("master-1-etcd-peer", "etcd", "/etc/kube-ha/etcd/peer", "master-1", (), BOTH),
    ("master-1-etcd-client", "etcd", "/etc/kube-ha/etcd/client", "kube-etcd-healthcheck-client", (), CLIENT),
    ("admin", "kubernetes", None, "kubernetes-admin", ("kubeadm:cluster-admins",), CLIENT),
]  # fmt: skip


def test_one_master_one_worker_has_exactly_these() -> None:
    assert list(leafs(STACKED_1_1)) == [row[0] for row in EXPECTED]


@pytest.mark.parametrize(("name", "ca", "path", "common_name", "organizations", "usages"), EXPECTED)
def test_subject_signer_and_usages(
    name: str,
    ca: str,
    path: str | None,
    common_name: str,
    organizations: tuple[str, ...],
    usages: tuple[str, ...],
) -> None:
    leaf = leafs(STACKED_1_1)[name]
    assert (leaf.ca, leaf.path, leaf.common_name) == (ca, path, common_name)
    assert (leaf.organizations, leaf.usages) == (organizations, usages)
    assert leaf.node == (None if name == "admin" else "master-1")


def test_the_administrator_of_a_generation_is_another_one_in_a_group_of_its_own() -> None:
    found = {number: leafs({"pki.adminGeneration": number}) for number in (1, 2)}
    for number, made in found.items():
        leaf = made[f"admin-{number}"]
        assert leaf.organizations == (f"kube-ha:admins-{number}",)
        assert "admin" not in made
    # What masters act by is not of a generation.
    one = found[2]["master-1-apiserver-kubelet-client"]
    assert one.organizations == ("kubeadm:cluster-admins",)


def test_the_api_server_answers_to_every_name_clients_use() -> None:
    leaf = leafs(
        {
            "cluster.endpoint": "api.example.com:443",
            "cluster.dnsDomain": "k8s.test",
            "controlPlane.certSans": ["10.9.9.9", "*.api.example.com"],
        }
    )["master-2-apiserver"]
    assert leaf.dns_names == (
        "*.api.example.com",
        "api.example.com",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.k8s.test",
        "localhost",
        "master-2",
    )
    assert leaf.ip_addresses == ("10.9.9.9", "10.92.0.12", "10.96.0.1", "127.0.0.1")


def test_members_answer_to_name_address_and_loopback() -> None:
    for use in ("server", "peer"):
        leaf = leafs({})[f"master-3-etcd-{use}"]
        assert leaf.dns_names == ("localhost", "master-3")
        assert leaf.ip_addresses == ("10.92.0.13", "127.0.0.1")


def test_clients_have_no_names_and_workers_no_certificates() -> None:
    made = leafs({})
    assert not any(leaf.node and leaf.node.startswith("worker") for leaf in made.values())
    for leaf in made.values():
        assert bool(leaf.dns_names) == ("server_auth" in leaf.usages)


def test_separate_machines_hold_only_what_their_role_needs() -> None:
    made = leafs(
        {
            "pools.etcd": {"roles": ["etcd"], "count": 3},
            "pools.master": {"roles": ["master"], "count": 2},
        }
    )
    of_member = [name for name, leaf in made.items() if leaf.node == "etcd-2"]
    of_master = [name for name, leaf in made.items() if leaf.node == "master-2"]
    assert of_member == ["etcd-2-etcd-server", "etcd-2-etcd-peer", "etcd-2-etcd-client"]
    assert [name.removeprefix("master-2-") for name in of_master] == [
        "apiserver",
        "apiserver-kubelet-client",
        "front-proxy-client",
        "apiserver-etcd-client",
        "approver",
    ]


def test_a_new_master_renews_nobody_elses_certificate() -> None:
    before, after = leafs({}), leafs({"pools.master.count": 5})
    assert {name: after[name] for name in before} == before
