"""What is told is what is done: for drawn pairs of configs, as for each row of docs/operate/change.md (test_day_2.py)."""

from __future__ import annotations

import os
import shutil

import pytest

from stacks.cluster import charts
from tests.fuzz.clusters import LOGIN
from tests.fuzz.draws_of_addons import LOGIN_HOSTS
from tests.plan import told_files
from tests.plan.settled import Stacks
from tests.plan.told import Told
from tests.plan.told_lives import UPDATES, life
from tests.plan.told_pairs import Pair, told, updated
from tests.plan.told_shrunk import shrunk
from tests.unit.charts import SETTINGS, packed
from tests.unit.cloud_shapes import DISK_KEYS, IDENTITIES, ISSUER
from tests.unit.configs import (
    GONE,
    adopted,
    aws,
    behind_tunnel,
    by_identity,
    edited,
    gcp,
    host_key,
    lab,
    with_store,
)

NAMED = {"cluster.endpoint": "api.example.com"}
ZONE = {"frontDoors": {"dns": "managed", "zone": {"domain": "example.com", "private": True}}}
CLOUDS = {
    "a policy": (aws(), aws({"machines.aws.policies": ["arn:aws:iam::aws:policy/AdministratorAccess"]})),
    "AWS, labels": (aws(), aws({"machines.aws.labels": {"team": "a"}})),
    "AWS, whose account": (aws(), aws({"machines.aws.account": "123456789012"})),
    "AWS, one NAT gateway": (aws(), aws({"machines.aws.natGateways": "one"})),
    "AWS, NAT by zone": (aws({"machines.aws.natGateways": "one"}), aws()),
    "AWS, no protection": (aws(), aws({"machines.aws.deletionProtection": False})),
    "AWS, another balancer": (aws(), aws({"machines.aws.apiLoadBalancer": "external", "cluster.endpoint": "api.example.com"})),
    "AWS, a name for its balancer": (aws(), aws(NAMED)),
    "AWS, another bastion": (aws(), aws({"machines.aws.bastionMachineType": "t3.small", "machines.aws.labels": {"team": "a"}})),
    "AWS, another image of the bastion": (aws(), aws({"machines.aws.bastionImage": "ami-0123456789abcdef0"})),
    "AWS, from a bastion to a tunnel": (aws({"machines.aws.apiFrom": ["203.0.113.0/24"]}), aws({**behind_tunnel("aws"), "machines.aws.apiFrom": ["203.0.113.0/24"]})),
    "AWS, a cloud controller": (aws(), aws({"machines.aws.cloudController": "external"})),
    "AWS, public machines, labels": (aws({"machines.aws.access": "public"}), aws({"machines.aws.access": "public", "machines.aws.labels": {"team": "a"}})),
    "AWS, disks": (aws(), aws({"machines.aws.etcdDiskGib": 30, "machines.aws.etcdDiskType": "io2", "machines.aws.diskType": "io2"})),
    "AWS, faster disks, a key": (aws(), aws({"machines.aws.etcdDiskIops": 4000, "machines.aws.etcdDiskThroughput": 500, "machines.aws.diskKey": DISK_KEYS["aws"], "pools.worker.count": 3})),
    "AWS, a zone of its own": (aws(NAMED), aws({**NAMED, **ZONE})),
    "open node ports": (gcp(), gcp({"machines.gcp.nodePortsFrom": ["0.0.0.0/0"]})),
    "Google, labels and roles": (gcp(), gcp({"machines.gcp.labels": {"team": "a"}, "machines.gcp.serviceAccountRoles": ["roles/compute.viewer"]})),
    "Google, another bastion": (gcp(), gcp({"machines.gcp.bastionMachineType": "e2-small"})),
    "Google, from a bastion to a tunnel": (gcp({"machines.gcp.apiFrom": ["203.0.113.0/24"]}), gcp({**behind_tunnel("gcp"), "machines.gcp.apiFrom": ["203.0.113.0/24"]})),
    "Google, public machines, labels": (gcp({"machines.gcp.access": "public"}), gcp({"machines.gcp.access": "public", "machines.gcp.labels": {"team": "a"}})),
    "Google, disks": (gcp(), gcp({"machines.gcp.etcdDiskGib": 30, "machines.gcp.diskType": "pd-ssd"})),
    "Google, a key and one machine of it": (gcp({"machines.gcp.deletionProtection": False}), gcp({"machines.gcp.deletionProtection": False, "machines.gcp.diskKey": DISK_KEYS["gcp"], "nodes": {"master-1": {"generation": 2}}})),
    "Google, a zone of its own": (gcp(NAMED), gcp({**NAMED, **ZONE})),
    "Google, another balancer": (gcp(), gcp({"machines.gcp.apiLoadBalancer": "external", **NAMED})),
    "Google, no balancer": (gcp(), gcp({"machines.gcp.apiLoadBalancer": "none"})),
    "AWS, one and more masters at one address": (aws({"machines.aws.apiLoadBalancer": "external", "pools.master.count": 1}), aws({"machines.aws.apiLoadBalancer": "external"})),
    "Google, many masters and one at one address": (gcp({"machines.gcp.apiLoadBalancer": "external", "machines.gcp.deletionProtection": False}), gcp({"machines.gcp.apiLoadBalancer": "external", "machines.gcp.deletionProtection": False, "pools.master.count": 1})),
    "AWS, ingress": (aws(), aws({"frontDoors.ingress": {}})),
    "AWS, no ingress": (aws({"frontDoors.ingress": {}}), aws()),
    "AWS, ingress of one worker more": (aws({"frontDoors.ingress": {}}), aws({"frontDoors.ingress": {"proxyProtocol": True}, "pools.worker.count": 3})),
    "Google, ingress": (gcp(), gcp({"frontDoors.ingress": {}})),
    "Google, no ingress": (gcp({"frontDoors.ingress": {}}), gcp()),
    "Google, ingress for fewer": (gcp({"frontDoors.ingress": {}}), gcp({"frontDoors.ingress": {}, "machines.gcp.ingressFrom": ["198.51.100.0/24"], "pools.worker.count": 1})),
    "AWS, roles for service accounts": (aws(), aws({**IDENTITIES["aws"], "controlPlane.serviceAccountIssuers": ["https://kubernetes.default.svc.cluster.local", ISSUER]})),
    "AWS, a key of tokens more": (aws(IDENTITIES["aws"]), aws({**IDENTITIES["aws"], "pki.rotation.serviceAccount": {"generation": 2, "step": "trust"}})),
    "AWS, no roles": (aws(IDENTITIES["aws"]), aws({"controlPlane.serviceAccountIssuers": [ISSUER]})),
    "Google, roles for service accounts": (gcp(), gcp(IDENTITIES["gcp"])),
    "Google, a key of tokens that signs": (gcp({**IDENTITIES["gcp"], "pki.rotation.serviceAccount": {"generation": 2, "step": "trust"}}), gcp({**IDENTITIES["gcp"], "pki.rotation.serviceAccount": {"generation": 2, "step": "issue"}})),
    "AWS, snapshots by the machines' role": (aws(), aws(by_identity("aws"))),
    "AWS, snapshots by the role and no key": (aws(with_store()), aws(by_identity("aws"))),
    "AWS, snapshots by a key again": (aws(by_identity("aws")), aws(with_store())),
    "AWS, snapshots of the role to elsewhere": (aws(by_identity("aws")), aws(by_identity("aws", prefix="b", prune=False))),
    "AWS, no snapshots by the role": (aws(by_identity("aws")), aws()),
    "Google, snapshots by the machines' account": (gcp(with_store()), gcp(by_identity("gcp"))),
    "Google, fewer rights of it": (gcp(by_identity("gcp")), gcp(by_identity("gcp", prune=False))),
    "Google, no snapshots by the account": (gcp(by_identity("gcp")), gcp()),
    "AWS, more spot machines": (aws({"pools.worker.spot": True}), aws({"pools.worker.spot": True, "pools.worker.count": 3})),
    "Google, spot machines instead of others": (gcp(), gcp({"pools.worker.spot": True, "nodes": {f"worker-{number}": {"generation": 2} for number in (1, 2)}})),
}  # fmt: skip
CALICO = {"network.plugin": "calico", "network.backend": "bgp"}
NONE = {"network.plugin": "none"}
OWN = {
    "rollouts": ["kube-system/daemonset/kube-router"],
    "ports": [{"protocol": "tcp", "port": 179}],
    "mtuOverhead": 50,
    "kernelModules": ["ip_vs"],
    "sysctls": {"net.ipv4.conf.all.rp_filter": "0"},
}
NETWORKS = {
    "Calico's birth": (None, lab({**CALICO, "network.bgpTopology": "reflectors"})),
    "Calico, a router": (lab(CALICO), lab({**CALICO, "network.bgpPeers": [{"address": "192.0.2.1", "asNumber": 65001}]})),
    "Calico, reflectors beside the mesh": (lab(CALICO), lab({**CALICO, "network.bgpTopology": "mesh-and-reflectors"})),
    "one's own, of which more is known": (lab(NONE), lab({**NONE, "network.mtu": 1400, "network.own": OWN})),
    "one's own in a cloud": (gcp(NONE), gcp({**NONE, "network.own": OWN | {"mtuOverhead": 0}})),
    "Calico, another MTU and Typha": (lab(CALICO), lab({**CALICO, "network.mtu": 1400, "network.typha": True})),
}  # fmt: skip
RANGE = {"addresses": ["10.92.0.240-10.92.0.245"]}
_NODES_LOGIN = {
    "namespaces": ["kube-system"],
    "type": "kubernetes.io/dockerconfigjson",
    "data": {".dockerconfigjson": "login"},
}
_LOGIN = {"hosts": [*LOGIN_HOSTS], "secrets": {"registry-login": _NODES_LOGIN}}
_SEALED = {"addonSecrets": {"login": {"secure": LOGIN}}}
_LOGS_IN = lab({"addons": {"registry-login": _LOGIN}, **_SEALED})
_ONE_LESS = {"addons.registry-login.hosts": [LOGIN_HOSTS[1]]}
ADDONS = {
    "a login of nodes": (lab(), _LOGS_IN),
    "at one registry less": (_LOGS_IN, edited(_LOGS_IN, _ONE_LESS)),
    "of nodes no more": (_LOGS_IN, lab(_SEALED)),
    "denied no more": (lab({"network.plugin": "cilium", "addons": {"default-deny": {"namespaces": ["shop"]}}}), lab({"network.plugin": "cilium"})),
    "addresses for Services": (lab(), lab({"addons": {"metallb": RANGE}})),
    "other addresses": (lab({"addons": {"metallb": RANGE}}), lab({"addons": {"metallb": {"addresses": ["10.92.0.250"]}}})),
    "deny by default": (lab({"network.plugin": "cilium"}), lab({"network.plugin": "cilium", "addons": {"default-deny": {"namespaces": ["shop"]}}})),
}  # fmt: skip
LIVES = -(-int(os.environ.get("KUBE_HA_TOLD", "64")) // UPDATES)
EDGES = lab(
    {
        "frontDoors.vip": {"address": "10.92.0.5"},
        "pools.edge": {"roles": ["loadbalancer"], "count": 2},
        "pools.worker": GONE,
        "pools.master.count": 1,
    }
)
OWN = edited(EDGES, {"frontDoors.vip.failover": "own"})
BALANCERS = {
    "a lost one": (EDGES, edited(EDGES, {"nodes": {"edge-1": {"state": "lost"}}})),
    "one in wrong hands": (EDGES, edited(EDGES, {"nodes": {"edge-1": {"state": "compromised"}}})),
    "one without keepalived": (OWN, edited(OWN, {"nodes": {"edge-2": {"state": "lost"}}})),
    "one alone whose packages change": (
        edited(EDGES, {"pools.edge.count": 1}),
        edited(EDGES, {"pools.edge.count": 1, "os.packages": "a"}),
    ),
    "one that is recreated": (OWN, edited(OWN, {"nodes": {"edge-2": {"generation": 2}}})),
}
MIRRORED = {"mirror": {"url": "http://m.example.com", "registry": "http://m.example.com:5000", "manifest": ".local/bundle/manifest.json"}}  # fmt: skip
APART = gcp({"pools.etcd": {"roles": ["etcd"], "count": 1, "zones": ["europe-west3-a"]}, "pools.master.roles": ["master"]})  # fmt: skip
MIRRORS = {
    "given machines": (adopted(), adopted(MIRRORED)),
    "AWS, one master": (aws({"pools.master.count": 1}), aws({"pools.master.count": 1, **MIRRORED})),
    "members of their own": (APART, edited(APART, MIRRORED)),
    "with another version of etcd": (adopted(), adopted({**MIRRORED, "cluster.etcd": "3.6.15"})),
    "no more": (adopted(MIRRORED), adopted()),
}
FILTERED = {"machines.firewall": {"networks": ["10.92.0.0/24"], "sshFrom": ["10.92.0.1/32"], "apiFrom": ["10.0.0.0/8"], "more": [{"protocol": "tcp", "ports": 9100}]}}  # fmt: skip
WIDE, NARROW = ({"machines.firewall": {**FILTERED["machines.firewall"], "apiFrom": nets}} for nets in (["0.0.0.0/0"], ["192.0.2.0/24"]))  # fmt: skip
VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
FIREWALLS = {
    "its birth": (None, lab(FILTERED)),
    "begun": (lab(), lab(FILTERED)),
    "begun, and nobody outside notices": (lab(), lab(WIDE)),
    "ended": (lab(FILTERED), lab()),
    "narrowed": (lab(FILTERED), lab(NARROW)),
    "widened": (lab(FILTERED), lab(WIDE)),
    "a worker comes": (lab(FILTERED), lab({**FILTERED, "pools.worker.count": 3})),
    "a worker comes with it": (lab(), lab({**FILTERED, "pools.worker.count": 3})),
    "a master is recreated": (lab(FILTERED), lab({**FILTERED, "nodes": {"master-2": {"generation": 2}}})),
    "masters leave": (lab(FILTERED), lab({**FILTERED, "pools.master.count": 1})),
    "one is absent": (lab(FILTERED), lab({**WIDE, "nodes": {"worker-1": {"state": "absent"}}})),
    "one is decommissioned": (lab(FILTERED), lab({**FILTERED, "nodes": {"worker-1": {"state": "decommissioned"}}})),
    "load balancers": (lab({**FILTERED, **VIP}), lab({**FILTERED, **VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}})),
    "pods are named, who come anyway": (lab(), lab({"machines.firewall": {**FILTERED["machines.firewall"], "apiFrom": ["10.244.0.0/16"]}})),
    "on given machines": (adopted(), adopted({"machines.firewall": {"networks": ["192.0.2.0/24"], "sshFrom": ["0.0.0.0/0"], "apiFrom": []}})),
}  # fmt: skip
DECOMMISSIONED = {"nodes": {"worker-1": {"state": "decommissioned"}}}
BIRTHS = {
    "lab": lab(),
    "adopt": adopted(),
    "gcp": gcp(),
    "aws": aws(),
    "lab, one is out of use": lab(DECOMMISSIONED),
    "adopt, one is out of use": adopted(DECOMMISSIONED),
}


@pytest.mark.parametrize("provider", BIRTHS)
def test_the_birth_of_a_cluster_is_told(stacks: Stacks, provider: str) -> None:
    assert told(stacks, Pair(provider, None, BIRTHS[provider])).findings() == []


@pytest.mark.parametrize("name", CLOUDS)
def test_what_is_around_machines_is_told(stacks: Stacks, name: str) -> None:
    assert told(stacks, Pair(name, *CLOUDS[name])).findings() == []


@pytest.mark.parametrize("name", MIRRORS)
def test_what_is_fetched_again_by_the_sum_of_a_mirror_is_told(stacks: Stacks, name: str) -> None:
    assert told(stacks, Pair(name, *MIRRORS[name])).findings() == []


@pytest.mark.parametrize("name", BALANCERS)
def test_a_load_balancer_that_is_given_up_is_told(stacks: Stacks, name: str) -> None:
    assert told(stacks, Pair(name, *BALANCERS[name])).findings() == []


@pytest.mark.parametrize("name", FIREWALLS)
def test_what_the_firewall_of_machines_does_is_told(stacks: Stacks, name: str) -> None:
    assert told(stacks, Pair(name, *FIREWALLS[name])).findings() == []


@pytest.mark.parametrize("name", NETWORKS)
def test_what_a_pod_network_changes_is_told(stacks: Stacks, name: str) -> None:
    assert told(stacks, Pair(name, *NETWORKS[name])).findings() == []


@pytest.mark.parametrize("name", ADDONS)
def test_what_an_add_on_of_the_catalogue_changes_is_told(stacks: Stacks, name: str) -> None:
    assert told(stacks, Pair(name, *ADDONS[name])).findings() == []


ONE = {"pools.worker": GONE, "pools.master.hosts": adopted()["pools"]["master"]["hosts"][:1]}  # type: ignore[index]
ALONE = {
    "pools.worker": GONE,
    "pools.master": {"roles": ["etcd", "master", "worker"], "count": 1},
}
GIVEN = {"certificates": [{"certificate": "keys/b.crt", "key": "keys/b"}]}
BASTION = {"address": "192.0.2.9", "hostKey": host_key(9), "privateKeyFile": "keys/b"}
FILES = {
    "the key of machines": adopted({**ONE, "machines.ssh": {"privateKeyFile": "keys/b"}}),
    "the key of a bastion": adopted({**ONE, "machines.ssh": {"agent": True, "bastion": BASTION}}),
    "a certificate of the ingress tier": lab(
        {**ALONE, "frontDoors": {"vip": {"address": "10.92.0.5"}, "ingress": GIVEN}}
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_another_one_under_its_name_is_told(stacks: Stacks, name: str) -> None:
    told_files.lay(stacks.folder)
    engine, config = stacks.new(FILES[name]), FILES[name]
    updated(stacks, engine, config)
    told_files.pair(stacks.folder / "keys/b")
    after = updated(stacks, engine, config)
    assert after.run.changes
    assert after.findings() == []
    assert "Change the content of keys/b" in after.report.headline.edits


def test_another_secret_of_the_object_store_is_told(stacks: Stacks) -> None:
    before = edited(lab({"pools.worker": GONE, "pools.master.count": 1}), with_store())
    after = {**before, "backupSecretKey": {"secure": "another-secret"}}
    changed = told(stacks, Pair("a secret", before, after))
    assert [str(change) for change in changed.run.changes] == ["~ dev-master-1-etcd-keys"]
    assert changed.findings() == []
    assert changed.report.headline.edits == ("Change the secret of the object store's key",)


SECRET = {"namespaces": ["default"], "data": {"key": "token"}}
WITH_FILES = {"secrets": {"own": SECRET}, "manifests": ["tests/fuzz/gadgets.yaml"]}
VALUES = {name: {"secure": f"the {name}"} for name in ("token", "other")}
OTHER = {**VALUES, "token": {"secure": "another"}}
SECRETS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "another value": ({}, {"addonSecrets": OTHER}),
    "another value, and files": ({"addons.x": WITH_FILES}, {"addonSecrets": OTHER}),
    "another key": ({}, {"addons.x.secrets.own.data": {"key": "token", "more": "other"}}),
    "another namespace": ({}, {"addons.x.secrets.own.namespaces": ["kube-system"]}),
    "one more": ({}, {"addons.x.secrets.more": SECRET}),
    "none any more": ({"addons.x": WITH_FILES}, {"addons.x.secrets": GONE}),
    "of an add-on of the catalogue": ({"addons.toolbox": {}}, {"addons.toolbox.secrets": {"more": SECRET}}),
}  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
def test_what_an_edit_does_to_secrets_of_add_ons_is_told(stacks: Stacks, name: str) -> None:
    told_files.lay(stacks.folder)
    start, edit = SECRETS[name]
    alone = {"pools.worker": GONE, "pools.master.count": 1}
    before = lab(
        {**alone, "addons": {"x": {"secrets": {"own": SECRET}}}, "addonSecrets": VALUES, **start}
    )
    changed = told(stacks, Pair(name, before, edited(before, edit)))
    assert changed.run.changes
    assert changed.findings() == []


MANY = "".join(
    f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {'n' * 100}-{n}}}\n"
    for n in range(100)
)
CHART_EDITS: dict[str, dict[str, object]] = {
    "another value": {"addons.x.chart.values": {"colour": "blue"}},
    "another version of Kubernetes": {"cluster.kubernetes": "1.36.3"},
    "manifests in its place": {"addons.x": {"manifests": ["tests/fuzz/gadgets.yaml"]}},
    "Secrets beside it": {"addons.x.secrets": {"own": SECRET}},
    "none any more": {"addons": GONE},
}


@pytest.mark.parametrize(
    "templates", [{"a": SETTINGS}, {"a": SETTINGS, "b": MANY}], ids=["few", "many"]
)
@pytest.mark.parametrize("name", CHART_EDITS)
def test_what_an_edit_does_to_a_chart_is_told(
    stacks: Stacks, name: str, templates: dict[str, str]
) -> None:
    told_files.lay(stacks.folder)
    helm = stacks.folder / charts.PROGRAM
    helm.parent.mkdir(exist_ok=True)
    if not helm.exists():
        helm.symlink_to(charts.PROGRAM.resolve())
    chart = packed(stacks.folder / "charts/x.tgz", templates)
    alone = {"pools.worker": GONE, "pools.master.count": 1, "cluster.kubernetes": "1.36.1"}
    before = lab({**alone, "addons": {"x": {"chart": chart}}, "addonSecrets": VALUES})
    changed = told(stacks, Pair(name, before, edited(before, CHART_EDITS[name])))
    assert changed.run.changes
    assert changed.findings() == []


def test_a_key_file_in_another_place_is_no_other_way_of_login(stacks: Stacks) -> None:
    told_files.lay(stacks.folder)
    shutil.copy(stacks.folder / "keys/a", stacks.folder / "keys/c")
    before, after = (
        adopted({**ONE, "machines.ssh": {"privateKeyFile": f"keys/{name}"}}) for name in "ac"
    )
    moved = told(stacks, Pair("moved", before, after))
    assert moved.findings() == []
    assert {change.name for change in moved.run.changes if change.mark == "~"} == {
        "prod-nodes",
        "prod-gate",
    }


@pytest.mark.parametrize("number", range(LIVES))
def test_each_update_of_a_life_is_told_as_it_is_done(stacks: Stacks, number: int) -> None:
    for update in life(stacks, 11, number):
        assert update.findings() == [], f"{update.pair}"


def test_a_pair_that_is_told_falsely_is_made_small(
    stacks: Stacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that never tell of an add-on are false where one comes, and about nothing else of this edit."""
    before = lab({"pools.worker": GONE, "pools.master.count": 1})
    after = edited(before, {"addons": {"toolbox": {}}, "kubelet.maxPods": 60})
    whole = Told.__dict__["told"].func
    monkeypatch.setattr(
        Told,
        "told",
        property(lambda one: [place for place in whole(one) if place[1][0] != "addon"]),
    )
    small = shrunk(stacks, Pair("an add-on", before, after), "not told: addon", tries=8)
    assert small is not None
    assert small.after == edited(before, {"addons": {"toolbox": {}}})
