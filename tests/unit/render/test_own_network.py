"""What the config says of a pod network that the user brings, and what follows from it everywhere else."""

from __future__ import annotations

import json

import pytest

from stacks.cluster import artifacts, firewall
from stacks.cluster.plan import Plan
from stacks.edits import memory, transition
from stacks.explain import report, terminal
from stacks.phases import gate, nodes, preflight, wave
from stacks.render import sysctl
from tests.unit.configs import adopted, gcp, lab, planned

ROUTER = "kube-system/daemonset/kube-router"
OWN: dict[str, object] = {
    "rollouts": [ROUTER],
    "ports": [{"protocol": "tcp", "port": 179}, {"protocol": "tcp", "port": 5000, "to": "master"}],
    "mtuOverhead": 20,
    "kernelModules": ["ip_vs", "vxlan"],
    "sysctls": {"net.ipv4.conf.all.rp_filter": 2, "net.ipv4.tcp_rmem": "4096 87380 6291456"},
}


def wanted(config: dict[str, object], **own: object) -> Plan:
    return planned({**config, "network": {"plugin": "none", "mtu": 1400, "own": {**OWN, **own}}})


def bare(config: dict[str, object]) -> Plan:
    return planned({**config, "network": {"plugin": "none"}})


def told_to_network(plan: Plan) -> set[str]:
    gates = [
        one.settings["NETWORK"]
        for one in wave.gates(plan, {"worker-1", "worker-2"})
        if one.settings
    ]
    assert gates
    return {gate.of_gate(plan)["NETWORK"], nodes.of_nodes(plan)["NETWORK"], *gates}


def test_with_rollouts_nodes_become_ready_and_pods_are_proved() -> None:
    said = gate.of_gate(wanted(lab()))
    assert ROUTER in said["DEPLOYMENTS"].split()
    assert told_to_network(wanted(lab())) == {"1"}
    assert told_to_network(wanted(lab(), rollouts=[])) == {"0"}
    assert told_to_network(bare(lab())) == {"0"}
    plan = wanted(lab())
    text = terminal.as_text(report.report(None, plan, transition.check(None, plan)), verbose=True)
    assert "a pod on every node reaches pods" in text


def test_a_clouds_firewall_opens_its_ports_and_no_others() -> None:
    rules = {rule.name: rule for rule in firewall.rules(wanted(gcp()))}
    assert "nodes-all" not in rules
    assert (rules["own-tcp-179"].to, rules["own-tcp-179"].ports) == ("node", (179, 179))
    assert rules["own-tcp-5000"].to == "master"
    more = {"protocol": "ipip"}
    opened = wanted(gcp({"machines.gcp.nodeRules": [more]}))
    assert "nodes-ipip" in {rule.name for rule in firewall.rules(opened)}


def test_without_ports_everything_is_open() -> None:
    for plan in (bare(gcp()), wanted(gcp(), ports=None)):
        assert "nodes-all" in {rule.name for rule in firewall.rules(plan)}


def test_make_preflight_tries_its_ports() -> None:
    assert "own-tcp-179" in {rule.name for rule in firewall.between_machines(wanted(adopted()))}


def test_a_machine_has_its_modules_settings_and_room_for_its_packets() -> None:
    plan = wanted(adopted())
    said = preflight.preflight(plan, plan.workers[0], artifacts.files(plan, "amd64"))
    assert (said["MTU"], said["VXLAN"], said["MODULES"]) == ("1420", "1", "ip_vs")
    assert {"ip_vs", "vxlan"} <= {*sysctl.modules(plan).splitlines()}
    lines = sysctl.sysctl(plan).splitlines()
    assert "net.ipv4.conf.all.rp_filter = 2" in lines
    assert "net.ipv4.tcp_rmem = 4096 87380 6291456" in lines


@pytest.mark.parametrize(("enforces", "told"), [(True, 0), (False, 1)])
def test_a_new_cluster_is_told_where_policies_do_not_hold(*, enforces: bool, told: int) -> None:
    warned = [
        one
        for one in transition.check(None, wanted(lab(), policies=enforces)).warnings
        if one.path == "network.plugin"
    ]
    assert len(warned) == told


def test_a_config_that_does_not_say_it_is_what_it_was() -> None:
    for plan in (planned(lab()), bare(lab())):
        assert '"own":' not in json.dumps(memory.of(plan)["config"])
    plan = wanted(lab())
    then = memory.read(json.loads(json.dumps(memory.of(plan))))
    assert then.plan is not None
    assert then.plan.spec.network == plan.spec.network
