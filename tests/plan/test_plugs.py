"""Another provider and another pod network are one file each, and a line where they are registered."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import create_model

from stacks.cluster import artifacts, cloud_resources, firewall
from stacks.config import parse
from stacks.config.machines import MachinesSpec
from stacks.config.network import NetworkSpec
from stacks.config.problems import SpecError
from stacks.config.spec import Spec
from stacks.edits import memory, transition
from stacks.explain import formats, report, terminal
from stacks.load import load, planned
from stacks.networks import registry as networks
from stacks.phases import downloads, gate, preflight, system_addons
from stacks.providers import registry as providers
from stacks.render import sysctl
from tests.plan import told_places, toy_network, toy_provider
from tests.plan.settled import Stacks
from tests.plan.told_pairs import Pair, told
from tests.unit.configs import edited, gcp, lab

CONFIG: dict[str, object] = {
    "cluster": {"name": "prod", "kubernetes": "1.36.3"},
    "machines": {"provider": "toy", "toy": {"region": "play-ground1", "sshFrom": ["203.0.113.0/24"]}},
    "pools": {
        "master": {"roles": ["etcd", "master"], "count": 3, "zones": [f"play-ground1{n}" for n in (1, 2, 3)]},
        "worker": {"roles": ["worker"], "count": 1, "zones": ["play-ground11"]},
    },
}  # fmt: skip


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    # The lines: a word and a section of the config ...
    words = Literal["lab", "adopt", "gcp", "aws", "hcloud", "toy"]
    section = create_model(
        "MachinesSpec",
        __base__=MachinesSpec,
        provider=(words, ...),
        toy=(toy_provider.ToySpec | None, None),
    )
    spec = create_model("Spec", __base__=Spec, machines=(section, ...))
    monkeypatch.setattr(parse, "Spec", spec)
    # ... and one in the registry.
    monkeypatch.setitem(providers.CLOUDS, "toy", toy_provider)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Literal["flannel", "none", "toy"]
    section = create_model("NetworkSpec", __base__=NetworkSpec, plugin=(words, "flannel"))
    spec = create_model("Spec", __base__=Spec, network=(section, section()))
    monkeypatch.setattr(parse, "Spec", spec)
    monkeypatch.setitem(networks.NETWORKS, "toy", toy_network)


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ({"machines.toy.region": "no-where1"}, "machines.toy.region: is no region of the toy"),
        ({"machines.toy.sshFrom": []}, "machines.toy.sshFrom: is empty; name the networks that you and the CI system come from"),
        ({"machines.toy.machineType": "m6i.large"}, "machines.toy.machineType: m6i.large is not a type of toy; write it as 'box-2'"),
        ({"machines.toy.machineType": "box-1"}, "machines.toy.machineType: box-1 is too small"),
        ({"pools.worker.arch": "arm64"}, "pools.worker.arch: box-2 is a machine of amd64, the pool says arm64; set arch, or another machineType"),
        ({"pools.worker.zones": ["eu-1"]}, "pools.worker.zones: eu-1 is not a zone of region play-ground1; write it as 'play-ground11'"),
        ({"machines.toy.labels": {"toy-own": "a"}}, "machines.toy.labels: `toy-own` belongs to this program or to the cloud; choose another key"),
        ({"cluster.podCidr": "10.30.0.0/16"}, "machines.toy.cidr: 10.30.0.0/20 overlaps cluster.podCidr 10.30.0.0/16; use networks of their own"),
        ({"machines.toy.cidr": "10.30.0.0/27"}, "pools.worker.addressOffset: machine 1 would be address 101 of 10.30.0.0/27; lower it, or make machines.toy.cidr wider"),
        ({"network.backend": "host-gw"}, "network.backend: host-gw needs one layer 2, which no network of a cloud is; use vxlan"),
        ({"machines.ssh": {"user": "ops"}}, "machines.ssh: does nothing on toy, where machines and keys are made; leave it out"),
    ],
)  # fmt: skip
def test_another_providers_config_is_checked(edit: dict[str, object], problem: str) -> None:
    load(CONFIG)
    with pytest.raises(SpecError) as caught:
        load(edited(CONFIG, edit))
    assert problem in str(caught.value).splitlines()


@pytest.mark.usefixtures("provider")
def test_another_provider_is_planned_and_its_edits_are_refused() -> None:
    plan = planned(load(CONFIG))
    assert [node.address for node in plan.nodes] == [
        "10.30.0.11",
        "10.30.0.12",
        "10.30.0.13",
        "10.30.0.101",
    ]
    assert (plan.made, plan.local, plan.balancer, plan.endpoint) == (
        True,
        False,
        "internal",
        "10.30.0.5:6443",
    )
    assert "198.51.100.0/24" in {text for rule in firewall.rules(plan) for text in rule.ranges}
    then = memory.read(memory.of(plan))
    assert then.plan is not None
    with pytest.raises(transition.TransitionError) as caught:
        transition.check(
            then, planned(load(edited(CONFIG, {"machines.toy.cidr": "10.30.16.0/20"})))
        )
    assert "machines.toy.cidr: cannot change from '10.30.0.0/20' to '10.30.16.0/20'" in str(
        caught.value
    )
    with pytest.raises(transition.TransitionError) as caught:
        transition.check(then, planned(load(edited(CONFIG, {"pools.master.count": 1}))))
    assert "master-3 would be deleted, and the toy protects it" in str(caught.value)


@pytest.mark.usefixtures("provider")
def test_another_provider_is_explained_and_registered(
    stacks: Stacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(load(CONFIG))
    text = terminal.as_text(report.report(None, plan, transition.check(None, plan)), verbose=True)
    assert "load balancer: 1 resource is made (api-internal)" in text
    parts = {
        name: ("cloud", f"{one.kind} made") for name, one in cloud_resources.told(plan, ()).items()
    }
    monkeypatch.setattr(told_places, "_OF_CLUSTER", {**told_places._OF_CLUSTER, **parts})
    assert told(stacks, Pair("toy", None, CONFIG)).findings() == []
    engine, run = stacks.settled(CONFIG)
    assert {"prod-api-internal", "prod-vxlan-let-in", "prod-worker-1-machine"} <= {
        one.name for one in run.custom
    }
    assert engine.up(CONFIG).changes == []
    grown = engine.up(edited(CONFIG, {"pools.worker.count": 2}))
    assert "+ prod-worker-2-machine" in map(str, grown.changes)


@pytest.mark.usefixtures("network")
def test_another_network_is_checked_planned_and_explained(stacks: Stacks) -> None:
    config = lab({"network": {"plugin": "toy", "mtu": 1400}})
    plan = planned(load(config))
    master = plan.masters[0]
    assert "mtu: '1400'" in system_addons.addons(plan)["toy"].replace('"', "'")
    assert "flannel" not in system_addons.addons(plan)
    assert "kube-toy/daemonset/toy" in gate.of_gate(plan)["DEPLOYMENTS"]
    assert gate.of_gate(plan)["NETWORK"] == "1"
    assert "image/flannel" not in downloads.node_images(plan, master)
    assert "network toy" in formats.plan(plan)
    text = terminal.as_text(report.report(None, plan, transition.check(None, plan)), verbose=True)
    assert "a pod on every node reaches pods" in text
    with pytest.raises(SpecError) as caught:
        load(
            edited(
                config, {"controlPlane.apiServerArgs": {"service-node-port-range": "30900-31000"}}
            )
        )
    assert "30999, which belongs to the toy's packets on" in str(caught.value)
    with pytest.raises(SpecError) as caught:
        load(
            edited(
                config, {"controlPlane.apiServerArgs": {"service-node-port-range": "29900-29997"}}
            )
        )
    assert "29997, which belongs to the toy's chief on master-1" in str(caught.value)
    with pytest.raises(transition.TransitionError) as refused:
        transition.check(
            memory.read(memory.of(plan)),
            planned(load(edited(config, {"network.backend": "host-gw"}))),
        )
    assert "from vxlan to host-gw: the toy stops everywhere; set it back to 'vxlan'" in str(
        refused.value
    )
    engine, run = stacks.settled(config)
    assert "dev-addon-toy" in {resource.name for resource in run.custom}
    assert engine.up(config).changes == []


@pytest.mark.usefixtures("network")
def test_another_network_of_a_cloud_has_its_ports_and_modules() -> None:
    plan = planned(load(gcp({"network": {"plugin": "toy", "mtu": 1400}})))
    assert "udp (30999, 30999)" in {
        f"{rule.protocol} {rule.ports}" for rule in firewall.rules(plan)
    }
    assert "toy\n" in sysctl.modules(plan)
    assert "net.ipv4.toy = 1\n" in sysctl.sysctl(plan)
    files = artifacts.files(plan, "amd64")
    master, worker = (
        preflight.preflight(plan, node, files) for node in (plan.masters[0], plan.workers[0])
    )
    assert (master["MTU"], master["FILESYSTEMS"]) == ("1408", "toyfs")
    own = {"29997", "29998"}
    assert [own & {*said["PORTS"].split()} for said in (master, worker)] == [own, {"29998"}]
