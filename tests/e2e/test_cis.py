"""Story: a cluster of before the benchmark takes the newest defaults, and no scored control of it fails any more."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import LabError
from tests.e2e.harness.operations import operation
from tests.e2e.harness.stack import Stack

NAME = "test-cis"
# Said in a Secret, and nowhere else: what of it is in the log.
WORD = "kube-ha-cis-said-in-a-secret"
UNIT = "/etc/systemd/system/etcd.service"
# As machines were before etcd had an account: its unit, its data, its keys.
OF_ROOT = f"""set -e
systemctl stop etcd
sed -i -E '/^(User|Group|ExecStartPre|CapabilityBoundingSet|ProtectSystem|ReadWritePaths|ProtectHome|PrivateTmp)=/d' {UNIT}
chown -R root:root /var/lib/kube-ha/etcd /etc/kube-ha/etcd
userdel etcd
systemctl daemon-reload
systemctl start etcd"""
ASK = "curl -s -o /dev/null -w '%{http_code}' --max-time 10 --cacert /etc/kube-ha/ca.crt https://127.0.0.1:3446"
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "outside"},
    "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]},
}


def wanted() -> config.Config:
    out = config.lab(NAME, "10.93.88.0/24", masters=1, workers=1)
    out["cluster"]["defaults"] = 1
    return out


def test_a_cluster_of_before_answers_the_anonymous(stack: Stack) -> None:
    stack.up()
    assert _asked(stack, "/version") == "200"
    _create(stack, SERVICE)
    stack.kubectl("delete", "service", "outside")
    stack.node("master-1").run(OF_ROOT)
    assert stack.node("master-1").run("ps -o user= -C etcd").split() == ["root"]


def test_without_a_word_it_stays_as_it_is_and_is_told_what_others_get(stack: Stack) -> None:
    stack.edit("cluster.defaults", None)
    words = stack.preview().output
    assert "this cluster keeps level 1" in words
    assert "nothing to do" in words


def test_no_scored_control_fails_with_the_newest_defaults(stack: Stack) -> None:
    stack.edit("cluster.defaults", 2)
    stack.up()
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=30)
    told = json.loads(operation(stack, "cis", "--format", "json"))
    results = {each["id"]: each["result"] for each in told["controls"]}
    assert told["scoredFailures"] == []
    assert "UNKNOWN" not in results.values()
    # Those that nobody scores, and that are so by default all the same.
    for control in ("1.1.9", "1.2.3", "1.2.29", "3.2.2", "4.2.12", "4.2.13", "4.2.14", "5.2.1"):
        assert results[control] == "PASS", control
    assert results["1.2.1"] == "BY-DESIGN"
    stack.measured(operation(stack, "cis").splitlines()[-1])


def test_etcd_has_an_account_of_its_own_and_kept_its_data(stack: Stack) -> None:
    master = stack.node("master-1")
    assert master.run("ps -o user= -C etcd").split() == ["etcd"]
    assert master.run("stat -c %a:%U:%G /var/lib/kube-ha/etcd").strip() == "700:etcd:etcd"
    strangers = (
        "find /var/lib/kube-ha/etcd ! -user etcd; find /etc/kube-ha/etcd -name '*.key' ! -perm 600"
    )
    assert master.run(strangers) == ""


def test_nobody_without_a_credential_is_served_but_for_health(stack: Stack) -> None:
    assert {path: _asked(stack, path) for path in ("/api", "/version", "/readyz", "/livez")} == {
        "/api": "401",
        "/version": "401",
        "/readyz": "200",
        "/livez": "200",
    }


def test_services_take_no_addresses_of_others(stack: Stack) -> None:
    with pytest.raises(LabError, match="externalIPs"):
        _create(stack, SERVICE)


def test_the_audit_log_has_rights_with_their_bodies_and_secrets_without(stack: Stack) -> None:
    stack.kubectl("create", "clusterrolebinding", "kube-ha-cis", "--clusterrole=view", "--user=x")
    stack.kubectl("create", "secret", "generic", "kube-ha-cis", f"--from-literal=a={WORD}")
    log = "/var/log/kubernetes/audit.log"
    master = stack.node("master-1")
    pick = 'select(.objectRef.name == "kube-ha-cis") | [.objectRef.resource, .level, .requestObject.subjects[0].name] | @tsv'
    rows = [row.split("\t") for row in master.run(f"jq -r '{pick}' {log}").splitlines()]
    assert ["clusterrolebindings", "Request", "x"] in rows
    assert ["secrets", "Metadata", ""] in rows
    # The word itself, and as Kubernetes writes it.
    assert (
        master.run(f"grep -c -e {WORD} -e $(printf {WORD} | base64) {log} || true").strip() == "0"
    )
    refused = 'select(.requestURI == "/api" and .responseStatus.code == 401) | .level'
    assert "Metadata" in master.run(f"jq -r '{refused}' {log}")


def test_a_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def _asked(stack: Stack, path: str) -> str:
    return stack.node("worker-1").run(ASK + path).strip()


def _create(stack: Stack, document: Mapping[str, object]) -> None:
    stack.kubectl("create", "-f", "-", stdin=json.dumps(document))
