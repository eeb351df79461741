"""Story: who has taken a worker acts on no other node, gets no certificate but its own, and misleads no master; new workers join meanwhile."""

from __future__ import annotations

import json

import pytest

from tests.e2e.harness import config, kubelets
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.thief import Request, Thief
from tests.e2e.harness.waiting import wait_for

OTHERS = ("master-1", "worker-2")
HASH = "0123456789abcdef"
OVERLAY = "flannel.alpha.coreos.com/"
WRITES: list[dict[str, object]] = [
    {"metadata": {"annotations": {"kube-ha.io/failed": "x\n-lkubernetes.io/os|x|True||"}}},
    {"metadata": {"annotations": {"kube-ha.io/drain": "always SECONDS[$(reboot)] -"}}},
    {"metadata": {"annotations": {"kube-ha.io/applied": HASH}}},
    {"metadata": {"annotations": {f"{OVERLAY}public-ip": "10.93.41.9"}}},
    {"metadata": {"labels": {"example.com/stolen": "yes"}}},
    {"spec": {"unschedulable": True}},
    {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
]
FORGED = "x\n-lkubernetes.io/os|x|True||\nmaster-1|x|True||\nworker-2|x|True||"


def wanted() -> config.Config:
    return config.lab("test-stolen", "10.93.41.0/24", masters=1, workers=2)


@pytest.fixture(scope="module")
def thief(cluster: Stack) -> Thief:
    return Thief(cluster.node("worker-1"))


def standing(stack: Stack) -> dict[str, object]:
    """What somebody else may have changed of a Node, by its name."""
    found: dict[str, object] = {}
    for node in json.loads(stack.kubectl("get", "nodes", "-o", "json"))["items"]:
        about, spec = node["metadata"], node["spec"]
        ready = [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"]
        said = {k: v for k, v in about["annotations"].items() if "/" in k}
        found[about["name"]] = (about["labels"], said, spec.get("taints"), spec.get("unschedulable"), ready)  # fmt: skip
    return found


def test_the_approver_has_no_power_but_its_own(cluster: Stack) -> None:
    master = cluster.node("master-1")
    assert master.run("systemctl is-active kube-ha-approver").strip() == "active"
    pid = master.run("systemctl show -p MainPID --value kube-ha-approver").strip()
    facts = dict(
        line.split(":\t", 1) for line in master.run(f"cat /proc/{pid}/status").splitlines()
    )
    assert facts["Uid"].split()[0] != "0"
    assert (facts["CapEff"].strip("0"), facts["NoNewPrivs"], facts["Seccomp"]) == ("", "1", "2")
    inside = f"nsenter -t {pid} -m -- setpriv --reuid {facts['Uid'].split()[0]} --clear-groups"
    for path in ("/etc/kubernetes/admin.conf", "/etc/kubernetes/pki/ca.key", "/etc/kube-ha/approver.key"):  # fmt: skip
        assert master.asked(f"{inside} cat {path}") == "", path
    cluster.measured(master.asked("systemd-analyze security kube-ha-approver | tail -n 1").strip())


def test_nothing_is_written_on_other_nodes(cluster: Stack, thief: Thief) -> None:
    requests: list[Request] = [
        ("PATCH", f"/api/v1/nodes/{name}{part}", body)
        for name in OTHERS
        for part in ("", "/status")
        for body in WRITES
    ]
    requests += [("DELETE", f"/api/v1/nodes/{name}", None) for name in OTHERS]
    before, tried, taken = standing(cluster), 0, []
    for token in ("", thief.token_of("kube-flannel:flannel")):
        answers = thief.ask_all(requests, token=token)
        tried += len(answers)
        pairs = zip(requests, answers, strict=True)
        taken += [pair for pair in pairs if pair[1].status not in (403, 422)]
    cluster.measured(f"{tried} writes tried on other nodes, {len(taken)} taken")
    assert taken == []
    after = standing(cluster)
    assert {name: after[name] for name in OTHERS} == {name: before[name] for name in OTHERS}


def test_its_own_node_says_what_a_node_may_say_and_no_more(thief: Thief) -> None:
    path = "/api/v1/nodes/worker-1"
    own: list[Request] = [
        ("PATCH", f"{path}{part}", body) for part in ("", "/status") for body in WRITES[:2]
    ]
    assert {answer.status for answer in thief.ask_all(own)} == {422}
    others = (*WRITES[:3], *WRITES[4:5], WRITES[6])
    flannels: list[Request] = [("PATCH", f"{path}/status", body) for body in others]
    answers = thief.ask_all(flannels, token=thief.token_of("kube-flannel:flannel"))
    assert {answer.status for answer in answers} == {422}


def test_no_certificate_is_had_but_its_own(cluster: Stack, thief: Thief) -> None:
    address = kubelets.internal_ip(cluster, "worker-1")
    subject, own = "/O=system:nodes/CN=system:node:worker-1", f"DNS:worker-1,IP:{address}"
    api = (
        f"DNS:kubernetes,DNS:localhost,IP:127.0.0.1,IP:{kubelets.internal_ip(cluster, 'master-1')}"
    )
    assert thief.request("victim", subject, api).status == 201
    path = "{.metadata.uid} {.metadata.resourceVersion}"
    meant = cluster.kubectl("get", "csr", "victim", "-o", f"jsonpath={path}")
    closing = '","labels":{"a":"b"},"generateName":"'
    for name in (f"victim {meant}", f"victim {meant}{closing}", "victim?", 'victim"\nurl = "x'):
        assert thief.request(name, subject, own).status == 201
    assert thief.request("of-another", "/O=system:nodes/CN=system:node:worker-2", own).status == 403
    join_token = "abcdef.0123456789abcdef"
    for node in ("master-1", "worker-2", "worker-9"):
        _make_token(cluster, join_token)
        asked = thief.request(f"to-be-{node}", f"/O=system:nodes/CN=system:node:{node}",
                              signer="kube-apiserver-client-kubelet", token=join_token)  # fmt: skip
        assert asked.status == 201, asked
    assert thief.request("honest", subject, own).status == 201

    def pending() -> str:
        return "" if "Approved" in kubelets.conditions(cluster, "honest") else "not approved"

    cluster.measured(f"an honest request waits {wait_for('approval', pending, limit_s=60):.1f} s")
    kubelets.wait_noted(cluster, ["master-1"], "no token of the stack to join by")
    found = json.loads(cluster.kubectl("get", "csr", "-o", "json"))["items"]
    strange = [
        csr["metadata"]["name"]
        for csr in found
        if csr["metadata"]["name"].startswith(("victim", "to-be-"))
    ]
    assert len(strange) == 8
    approved = {csr["metadata"]["name"] for csr in found if csr["status"].get("conditions")}
    assert approved & set(strange) == set()
    cluster.measured(f"{len(strange)} foreign requests, 0 approved")


def test_masters_are_not_misled_and_workers_join_meanwhile(cluster: Stack, thief: Thief) -> None:
    forged = {f"kube-ha.io/{word}": FORGED for word in ("failed", "labels", "taints", "leaving")}
    thief.keep_writing({"metadata": {"annotations": forged}}, seconds=240)
    cluster.edit("pools.worker.labels", {"example.com/edited": "yes"})
    cluster.edit("pools.worker.count", 3)
    update = cluster.up()
    cluster.took("up that adds a worker and labels all", update.seconds)
    statuses = thief.statuses()
    cluster.measured(f"forged annotations meanwhile, by status: {statuses}")
    assert "200" not in statuses
    assert statuses.get("422", 0) > 5
    cluster.wait_healthy({"master-1", "worker-1", "worker-2", "worker-3"}, limit_s=10)
    for node in json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]:
        name, about = node["metadata"]["name"], node["metadata"]
        assert not node["spec"].get("unschedulable"), name
        assert "kube-ha.io/leaving" not in about["annotations"], name
        labelled = about["labels"].get("example.com/edited") == "yes"
        assert labelled == name.startswith("worker"), name
    rollout = ("rollout", "status", "daemonset/flannel", "--timeout=5s")
    assert "successfully rolled out" in cluster.kubectl("-n", "kube-flannel", *rollout)
    kubelets.assert_certified(cluster, {"worker-3"})


def test_second_up_changes_nothing(cluster: Stack) -> None:
    assert_up_changes_nothing(cluster)


def _make_token(stack: Stack, token: str) -> None:
    """A bootstrap token of somebody else's, as `kubeadm token create` makes it."""
    number, _, secret = token.partition(".")
    data = {
        "token-id": number,
        "token-secret": secret,
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    }
    metadata = {"name": f"bootstrap-token-{number}", "namespace": "kube-system"}
    kind = "bootstrap.kubernetes.io/token"
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind}
    stack.kubectl("apply", "-f", "-", stdin=json.dumps(body | {"stringData": data}))
