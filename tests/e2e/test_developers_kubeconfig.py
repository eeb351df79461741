"""Story: a developer's kubeconfig may what its group may, is audited and ends by itself; an administrator's that leaked ends by one edit."""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.e2e.harness import config, lab
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import ROOT, LabError
from tests.e2e.harness.operations import operation
from tests.e2e.harness.points import held
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-developers"
HOURS = 2
PKI = "/etc/kubernetes/pki"
AUDIT = "/var/log/kubernetes/audit.log"


def wanted() -> config.Config:
    said = config.lab(NAME, "10.93.43.0/24", masters=1, workers=1)
    said["pki"] = {"adminGeneration": 1}
    return {**said, "addons": {"rights": {"manifests": ["examples/addons/developers.yaml"]}}}


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Iterator[Stack]:
    stack.up()
    yield stack
    shutil.rmtree(ROOT / ".local/outputs" / stack.name, ignore_errors=True)


@pytest.fixture(scope="module")
def jane(cluster: Stack) -> Path:
    """Her kubeconfig."""
    started = time.monotonic()
    words = ("--user", "jane@example.com", "--groups", "dev", "--hours", str(HOURS))
    said = operation(cluster, "kubeconfig", *words)
    cluster.took("kubeconfig of a developer", time.monotonic() - started)
    assert "jane@example.com (groups dev) until " in said
    file = ROOT / ".local/outputs" / cluster.name / "users/jane@example.com.kubeconfig"
    assert f"export KUBECONFIG={file}" in said
    assert file.stat().st_mode & 0o777 == 0o600
    return file


def kubectl(file: Path, *words: str, context: str = "") -> str:
    """What kubectl prints, of errors too."""
    more = ["--context", context] if context else []
    program = str(ROOT / ".local/bin/kubectl")
    try:
        return lab.shell([program, "--kubeconfig", str(file), "--request-timeout", "10s", *more, *words])  # fmt: skip
    except LabError as error:
        return str(error)


def test_what_is_the_clusters_own_is_refused_all_at_once(cluster: Stack) -> None:
    before = cluster.kubectl("get", "csr", "-o", "name")
    words = ("--user", "kubernetes-admin", "--groups", "dev system:masters", "--hours", "9000")
    said = operation(cluster, "kubeconfig", *words, fails=True)
    for told in ("USER: 'kubernetes-admin'", "GROUPS: 'system:masters'", "HOURS: 9000 is above 8760"):  # fmt: skip
        assert told in said
    assert cluster.kubectl("get", "csr", "-o", "name") == before
    assert not (ROOT / ".local/outputs" / cluster.name / "users").exists()


def test_a_developer_may_what_the_group_may_by_every_way(cluster: Stack, jane: Path) -> None:
    text = "-n team-a create configmap by-jane --from-literal=a=b"
    assert "configmap/by-jane created" in kubectl(jane, *text.split())
    for denied in (
        "get nodes",
        "-n kube-system get secrets",
        "-n team-a create rolebinding x --clusterrole admin --user jane@example.com",
        "get csr",
        "--as kubernetes-admin get nodes",
    ):
        assert "forbidden" in kubectl(jane, *denied.split()).lower(), denied
    contexts = [one["name"] for one in yaml.safe_load(jane.read_text())["contexts"]]
    theirs = yaml.safe_load(cluster.kubeconfig().read_text())["contexts"]
    assert contexts == [one["name"] for one in theirs]
    for context in contexts:
        who = json.loads(kubectl(jane, "auth", "whoami", "-o", "json", context=context))
        seen = who["status"]["userInfo"]
        assert (seen["username"], seen["groups"]) == ("jane@example.com", ["dev", "system:authenticated"])  # fmt: skip


def test_who_asked_and_who_approved_is_in_the_audit_log(cluster: Stack, jane: Path) -> None:
    rows = cluster.node("master-1").run(
        'jq -c \'select(.objectRef.resource == "certificatesigningrequests" and '
        '(.objectRef.name // .requestObject.metadata.name | startswith("user-jane@example.com-")) and '
        f'.user.username == "kubernetes-admin") | [.verb, .objectRef.subresource]\' {AUDIT}'
    )
    done = [json.loads(row) for row in rows.splitlines()]
    assert ["create", None] in done
    assert ["update", "approval"] in done


def test_it_ends_at_its_time(cluster: Stack, jane: Path) -> None:
    """Its notAfter is what was asked for; the same certificate, its life moved back by the cluster's CA, is refused past it."""
    user = yaml.safe_load(jane.read_text())["users"][0]["user"]
    issued = x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
    left = issued.not_valid_after_utc - datetime.now(UTC)
    assert timedelta(hours=HOURS, minutes=-5) < left < timedelta(hours=HOURS, minutes=1)
    ca = cluster.node("master-1").run(f"cat {PKI}/ca.key")
    for late, told in ((timedelta(minutes=-2), "jane@example.com"), (timedelta(seconds=5), "Unauthorized")):  # fmt: skip
        aged = jane.with_name("aged.kubeconfig")
        aged.write_text(_moved_back(jane, issued, left + late, ca))
        assert told in kubectl(aged, "auth", "whoami"), told


def _moved_back(file: Path, issued: x509.Certificate, by: timedelta, ca_key: str) -> str:
    key = serialization.load_pem_private_key(ca_key.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    aged = x509.CertificateBuilder(
        issued.issuer,
        issued.subject,
        issued.public_key(),
        issued.serial_number,
        issued.not_valid_before_utc - by,
        issued.not_valid_after_utc - by,
        [*issued.extensions],
    ).sign(key, hashes.SHA256())
    found = yaml.safe_load(file.read_text())
    pem = aged.public_bytes(serialization.Encoding.PEM)
    found["users"][0]["user"]["client-certificate-data"] = base64.b64encode(pem).decode()
    return str(yaml.safe_dump(found))


def test_an_edit_takes_the_rights_back(cluster: Stack, jane: Path) -> None:
    cluster.config["addons"] = {}
    cluster.write()
    words = " ".join(cluster.preview().output.split())
    assert "deleted at the end: RoleBinding team-a/developers, ClusterRoleBinding on-call" in words

    cluster.up()

    def may_still() -> str:
        said = kubectl(jane, "-n", "team-a", "get", "configmaps")
        return "" if "Forbidden" in said else said

    wait_for("rights of the developer gone", may_still, limit_s=10)
    assert_up_changes_nothing(cluster)


def test_an_administrators_kubeconfig_that_leaked_ends_by_one_edit(cluster: Stack) -> None:
    leaked = ROOT / ".local/outputs" / cluster.name / "leaked"
    leaked.write_text(cluster.kubeconfig().read_text())
    assert kubectl(leaked, "auth", "can-i", "*", "*").strip() == "yes"
    cluster.settled()
    before = {node.name: node.processes() for node in cluster.nodes()}
    cluster.edit("pki.adminGeneration", 2)
    words = " ".join(cluster.preview().output.split())
    assert "the stack's kubeconfig from before may do nothing from now on" in words
    assert "0 to change, 0 to replace, 0 to remove, 2 unchanged" in words, words

    master = cluster.node("master-1")
    with held(master, "addon", '[[ ${NAME:-} == admin-generation && $BASH_COMMAND == *"kubectl"* ]]') as point:  # fmt: skip
        update = cluster.start_up()
        point.wait(update)
        # Until the very write the old one counts, and masters have their own all along.
        assert kubectl(leaked, "auth", "can-i", "*", "*").strip() == "yes"
        update.sigkill()
    assert "worker-1" in master.run("kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes")
    cluster.cancel()

    update = cluster.up()
    cluster.took("up that shuts out an administrator's kubeconfig", update.seconds)
    seen = json.loads(kubectl(leaked, "auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert seen["groups"] == ["kube-ha:admins-1", "system:authenticated"]
    assert "Forbidden" in kubectl(leaked, "get", "nodes")
    assert "Forbidden" in kubectl(leaked, "-n", "kube-system", "get", "secrets")
    cluster.forget_kubeconfig()
    cluster.wait_healthy({"master-1", "worker-1"}, limit_s=30)
    assert cluster.kubectl("auth", "can-i", "*", "*").strip() == "yes"
    cluster.settled()
    assert {node.name: node.processes() for node in cluster.nodes()} == before
    assert_up_changes_nothing(cluster)


def test_a_kubeconfig_that_was_shut_out_does_not_come_back(cluster: Stack) -> None:
    cluster.edit("pki.adminGeneration", 1)
    refused = " ".join(cluster.preview(fails=True).output.split())
    cluster.edit("pki.adminGeneration", 2)
    assert "cannot go from 2 to 1: kubeconfigs of before would do everything again" in refused
