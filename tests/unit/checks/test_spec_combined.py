"""Several things wrong in one config: all are told, in the order of their paths, each as if it were alone."""

from __future__ import annotations

import pytest

from stacks.config.problems import SpecError
from stacks.load import load
from tests.unit.configs import GONE, adopted, lab

Problems = list[tuple[str, str]]

CONFIGS = [
    (lab({"cluster.name": "Dev", "pools.worker.count": -1, "etcd.electionTimeoutMs": 200, "network.plugin": "weave"}), [
        ("cluster.name", "'Dev' is not an RFC 1123 label; use 1 to 63 of a-z, 0-9 and '-', not '-' at an end"),
        ("etcd.electionTimeoutMs", "200 is under 5 x heartbeatIntervalMs; use 1000"),
        ("network.plugin", "\"weave\" is not one of 'flannel', 'cilium', 'calico', 'none'"),
        ("pools.worker.count", "-1 is too small; at least 0"),
    ]),
    (lab({"cluster.podCidr": "10.96.0.0/12", "pools.worker.lables": {"a": "b"}, "kubelet.maxPods": 600, "proxy.https": "proxy"}), [
        ("cluster.serviceCidr", "10.96.0.0/16 overlaps cluster.podCidr 10.96.0.0/12; use networks of their own"),
        ("kubelet.maxPods", "600 pods do not fit a node's /24 of podCidr, which has 253 addresses for them; use 253, or network.nodeCidrMask 22 for a new cluster"),
        ("pools.worker.lables", "unknown key `lables`; did you mean `labels`?"),
        ("proxy.https", "'proxy' is not a plain URL; write http(s)://host[:port][/path] without user, password or query"),
    ]),
    (adopted({"machines.ssh": {}, "pools.master.hosts.0.address": "10.96.0.7", "pools.worker.hosts.1.name": "worker-1"}), [
        ("machines.ssh.privateKeyFile", "is missing; name a private key file, or set machines.ssh.agent: true"),
        ("pools.master.hosts[0].address", "10.96.0.7 is in cluster.serviceCidr 10.96.0.0/16; choose another network there"),
        ("pools.worker.hosts[1].name", "'worker-1' is taken by worker-1 (pools.worker.hosts[0])"),
    ]),
    (adopted({"machines.lab": {"subnet": "10.0.0.0/24"}, "pools.worker.count": 3, "pools.worker.hosts.0.hostKey": GONE, "machines.onRelease": "burn"}), [
        ("machines.lab", "is for provider lab; leave it out"),
        ("machines.onRelease", "\"burn\" is not one of 'wipe', 'keep'"),
        ("pools.worker.count", "is for machines that are made; adopted machines are in hosts"),
        ("pools.worker.hosts[0].hostKey", "is missing; `make hostkeys STACK=...` prints that of 192.0.2.101: compare it with the machine's console and write it here (or, unprotected, set machines.ssh.insecureIgnoreHostKey: true)"),
    ]),
    (lab({"nodes/worker-9": {"state": "lost"}, "nodes/worker-1": {"state": "dead", "generation": 0}, "machines.onRelease": "wipe"}), [
        ("machines.onRelease", "is for provider adopt; machines of the lab are deleted"),
        ("nodes.worker-1.generation", "0 is too small; at least 1"),
        ("nodes.worker-1.state", "\"dead\" is not one of 'active', 'maintenance', 'absent', 'decommissioned', 'lost', 'compromised', 'removed'"),
        ("nodes.worker-9", "no node has this name; did you mean 'worker-2'?"),
    ]),
    (lab({"nodes": {"worker-1": {"drain": True, "keepPodsS": 60}, "worker-2": {"state": "maintenance", "drain": True, "keepPodsS": 60}}}), [
        ("nodes.worker-1.drain", "needs state: maintenance"),
        ("nodes.worker-1.keepPodsS", "needs state: maintenance"),
        ("nodes.worker-2.keepPodsS", "does nothing with drain, which evicts the pods; take one of the two out"),
    ]),
    (lab({"controlPlane.apiServerArgs": {"etcd-servers": "x", "--v": "4"}, "controlPlane.admissionPlugins": ["AlwaysPullImages"], "controlPlane.leaderElection": {"leaseDurationS": 5}}), [
        ("controlPlane.admissionPlugins", "NodeRestriction is missing; without it one worker's kubelet can act on other nodes"),
        ("controlPlane.apiServerArgs.--v", "'--v' is not a flag; write its name without dashes before, as 'v'"),
        ("controlPlane.apiServerArgs.etcd-servers", "is not yours to set: follows from the machines with role etcd"),
        ("controlPlane.leaderElection.leaseDurationS", "5 is not above renewDeadlineS 10; a leader must give up first"),
    ]),
    (lab({"pki": {"caValidityHours": 100, "leafValidityHours": 200, "leafRenewalHours": 300}, "cluster.kubernetes": "v1.36.3", "converge.generation": "2"}), [
        ("cluster.kubernetes", "'v1.36.3': write it without the v, as '1.36.3'"),
        ("converge.generation", "\"2\" is not a whole number"),
        ("pki.leafRenewalHours", "300 is not under leafValidityHours 200; every update would renew everything"),
        ("pki.leafValidityHours", "200 is not under caValidityHours 100; no certificate outlives its CA"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("config", "problems"), CONFIGS)
def test_all_problems_are_told_in_the_order_of_their_paths(
    config: dict[str, object], problems: Problems
) -> None:
    with pytest.raises(SpecError) as caught:
        load(config)
    assert [(path, text) for path, text in caught.value.problems] == problems
