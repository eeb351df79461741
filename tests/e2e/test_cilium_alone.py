"""Story: Cilium implements Services itself, without kube-proxy, and packets go by routes; policies hold, those of add-on default-deny too, and a machine that leaves has nothing of it left."""

from __future__ import annotations

from tests.e2e.harness import config, policed, versions
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

SUBNET = "10.93.119.0/24"
WORKERS = ("worker-1", "worker-2")
# What Cilium leaves on a machine: interfaces, programs and rules.
_LEFT = r"""
ip -o link show | grep -oE '(lxc|cilium_)[a-z0-9_]+' || true
ls -d /sys/fs/bpf/cilium /run/cilium /etc/cni/net.d/05-cilium.conflist 2>/dev/null || true
iptables-save 2>/dev/null | grep -c CILIUM_ | grep -vx 0 || true
tc filter show dev eth0 ingress | grep -o 'cil_[a-z_]*' || true
"""


def wanted() -> config.Config:
    made = config.lab("test-cilium-alone", SUBNET, masters=1, workers=2)
    made["network"] = {"backend": "native", "kubeProxyReplacement": True}
    return versions.with_network(made, SUBNET, "cilium")


def test_services_are_there_without_kube_proxy(cluster: Stack) -> None:
    pods = cluster.kubectl("-n", "kube-system", "get", "pods", "-o", "name")
    assert "cilium" in pods
    assert "kube-proxy" not in pods
    for node in cluster.nodes():
        rules = node.run("nft list ruleset 2>/dev/null; iptables-save 2>/dev/null")
        assert "KUBE-SVC" not in rules
        assert "table ip kube-proxy" not in rules
    routes = cluster.node("worker-1").run("ip route show")
    assert "via 10.93.119.102 dev eth0" in routes, routes
    policed.deploy(cluster)
    _wait_all_pass(cluster, "friend")


def test_denied_by_default_pods_reach_dns_and_nothing_else(cluster: Stack) -> None:
    cluster.edit("addons.default-deny", {"namespaces": [policed.NAMESPACE]})
    words = " ".join(cluster.preview().output.split())
    assert f"connections from and to pods in {policed.NAMESPACE} end" in words, words
    cluster.up()
    # A name that is not resolved would be DNS, and no timeout.
    wait_for(
        "nobody passes",
        lambda: policed.none_passes(policed.answers(cluster, "friend", WORKERS)),
        limit_s=60,
    )
    cluster.edit("addons.default-deny", None)
    cluster.up()
    _wait_all_pass(cluster, "stranger")


def test_policies_hold(cluster: Stack) -> None:
    policed.deny_all(cluster)
    policed.allow_friends(cluster)
    wait_for(
        "strangers do not pass",
        lambda: policed.none_passes(policed.answers(cluster, "stranger", WORKERS)),
        limit_s=60,
    )
    _wait_all_pass(cluster, "friend")


def test_a_machine_that_leaves_has_nothing_of_it_left(cluster: Stack) -> None:
    left = cluster.node("worker-2")
    assert "lxc" in left.run(_LEFT)
    cluster.set_nodes({"worker-2": {"state": "decommissioned"}})
    update = cluster.up()
    cluster.took("up that decommissions a worker with Cilium", update.seconds)
    assert left.run(_LEFT).strip() == ""
    cluster.set_nodes({})
    cluster.up()
    policed.wait_running(cluster)
    assert not policed.none_passes(policed.answers(cluster, "stranger", WORKERS))
    _wait_all_pass(cluster, "friend")
    assert_sound(cluster)


def _wait_all_pass(cluster: Stack, kind: str) -> None:
    wait_for(
        f"every {kind} passes",
        lambda: policed.all_pass(policed.answers(cluster, kind, WORKERS)),
        limit_s=60,
    )
