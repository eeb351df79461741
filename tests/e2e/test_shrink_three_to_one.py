"""Story: three masters become one in a single edit, while clients go on."""

from __future__ import annotations

import pytest

from tests.e2e.harness import config, lab
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-shrink"
SUBNET = "10.93.13"
LEFT = ("master-2", "master-3")

# Every address that this node's own HAProxy may send a client to, by its config and by what runs.
_HAPROXY = (
    "awk '$1 == \"server\" {print $3}' /etc/haproxy/haproxy.cfg; "
    "echo 'show servers state' | socat - UNIX-CONNECT:/run/haproxy/admin.sock | "
    'awk \'$2 == "kubernetes-api" {print $5 ":" $19}\''
)
# Rules of the node's network that mention an address of the lab's machines.
_RULES = "nft list ruleset | grep -oE '\\b10\\.93\\.12\\.[0-9]+\\b' | sort -u || true"


def wanted() -> config.Config:
    return config.lab(NAME, f"{SUBNET}.0/24", masters=3, workers=1)


def test_two_masters_leave_in_one_edit_and_clients_go_on(stack: Stack) -> None:
    stack.up()
    left = [_address(stack, name) for name in LEFT]
    stack.make_leader("master-3")
    stack.edit("pools.master.count", 1)
    with Load(stack, "while shrinking", service=_service(stack)) as load:
        update = stack.up()
        stale = wait_for("no trace of them", lambda: _traces(stack, left), limit_s=30)
    stack.took("up from 3 to 1 masters", update.seconds)
    stack.measured(f"addresses that left are nowhere any more after another {stale:.1f} s")
    load.assert_unharmed()
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=30)
    assert not {f"kube-ha-{NAME}-{name}" for name in LEFT} & set(lab.containers(NAME))


def test_one_voting_member_is_left(stack: Stack) -> None:
    rows = stack.node("master-1").etcdctl("member list -w simple").strip().splitlines()
    assert len(rows) == 1
    assert f"https://{SUBNET}.11:2380" in rows[0]
    assert rows[0].endswith(", false")


@pytest.mark.parametrize("name", ["master-1", "worker-1"])
def test_every_node_knows_one_master(stack: Stack, name: str) -> None:
    assert set(stack.node(name).run(_HAPROXY).split()) == {f"{SUBNET}.11:6443"}


def test_what_new_nodes_read_is_right(stack: Stack) -> None:
    info = stack.kubectl("get", "configmap", "cluster-info", "-n", "kube-public", "-o", "yaml")
    settings = stack.kubectl(
        "get", "configmap", "kubeadm-config", "-n", "kube-system", "-o", "yaml"
    )
    assert "server: https://127.0.0.1:3446" in info
    assert "controlPlaneEndpoint: 127.0.0.1:3446" in settings
    assert f"{SUBNET}.1" not in info + settings, "an address of a machine"


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def test_it_grows_again(stack: Stack) -> None:
    stack.edit("pools.master.count", 3)
    stack.up()
    stack.wait_healthy({"master-1", *LEFT, "worker-1"}, limit_s=30)


def _address(stack: Stack, name: str) -> str:
    path = '{.status.addresses[?(@.type=="InternalIP")].address}'
    return stack.kubectl("get", "node", name, "-o", f"jsonpath={path}").strip()


def _service(stack: Stack) -> str:
    """Where pods find the API."""
    path = "{.spec.clusterIP}:{.spec.ports[0].port}"
    return stack.kubectl("get", "service", "kubernetes", "-o", f"jsonpath={path}")


def _traces(stack: Stack, left: list[str]) -> str:
    """Where an address of a master that left is still used."""
    path = "{range .items[*]}{.endpoints[*].addresses[0]}{end}"
    found = [
        f"the Service: {address}"
        for address in stack.kubectl(
            "get", "endpointslices", "-n", "default", "-o", f"jsonpath={path}"
        ).split()
        if address in left
    ]
    for name in ("master-1", "worker-1"):
        rules = set(stack.node(name).run(_RULES).split()) & set(left)
        found += [f"network rules of {name}: {address}" for address in sorted(rules)]
    return ", ".join(found)
