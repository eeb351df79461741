"""Story: every CA, the key of service accounts and the key of Secrets are replaced, step by step."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import LabError
from tests.e2e.harness.stack import Stack

NODES = {"master-1", "worker-1"}
PATHS = (
    "pki.rotation.kubernetes",
    "pki.rotation.etcd",
    "pki.rotation.frontProxy",
    "pki.rotation.serviceAccount",
    "controlPlane.encryptionKey",
)
# Of every node: who signed the kubelet's certificates, and the names of all CAs it trusts.
_SIGNER = "openssl x509 -noout -issuer -in /var/lib/kubelet/pki/kubelet-client-current.pem"
_SERVES = "openssl x509 -noout -issuer -in /var/lib/kubelet/pki/kubelet-server-current.pem"
_TRUSTED = r"""
for file in /etc/kube-ha/ca.crt /etc/kube-ha/etcd/ca.crt /etc/kubernetes/pki/{ca,front-proxy-ca,etcd/ca}.crt; do
  if [ -f $file ]; then openssl crl2pkcs7 -nocrl -certfile $file | openssl pkcs7 -print_certs -noout | grep subject; fi
done
for file in /etc/kubernetes/*.conf; do
  sed -n 's/^ *certificate-authority-data: *//p' $file | base64 -d >/run/embedded
  openssl crl2pkcs7 -nocrl -certfile /run/embedded | openssl pkcs7 -print_certs -noout | grep subject
done
"""
# The key under which each Secret is in etcd.
_LIES = "get /registry/secrets/ --prefix --print-value-only | grep -aoE '^k8s:enc:secretbox:v1:key-[0-9]+:' | sort | uniq -c"


def wanted() -> config.Config:
    return config.lab("test-keys", "10.93.47.0/24", masters=1, workers=1)


@pytest.fixture(scope="module")
def first_kubeconfig(stack: Stack) -> Path:
    """What an administrator took on the cluster's first day."""
    stack.up()
    stack.kubectl("create", "secret", "generic", "old", "--from-literal", "word=kept")
    kept = stack.folder / "first-kubeconfig"
    kept.write_bytes(stack.kubeconfig().read_bytes())
    return kept


def step(stack: Stack, name: str) -> None:
    for path in PATHS:
        stack.edit(path, {"generation": 2, "step": name})


def test_a_skipped_step_is_refused(stack: Stack, first_kubeconfig: Path) -> None:
    assert first_kubeconfig.exists()
    step(stack, "issue")
    said = stack.preview(fails=True).output
    assert said.count("nodes that do not know the new one would refuse what it made") == len(PATHS)


def test_all_keys_are_replaced(stack: Stack, first_kubeconfig: Path) -> None:
    assert first_kubeconfig.exists()
    for name in ("trust", "issue", "drop"):
        step(stack, name)
        update = stack.up()
        stack.took(f"{name}", update.seconds)
        stack.forget_kubeconfig()
        stack.wait_healthy(NODES, limit_s=60)
        assert_secret_is_kept(stack)


def assert_secret_is_kept(stack: Stack) -> None:
    assert stack.kubectl("get", "secret", "old", "-o", "jsonpath={.data.word}") == "a2VwdA=="


def test_nobody_knows_the_old_ones(stack: Stack, first_kubeconfig: Path) -> None:
    for name in NODES:
        node = stack.node(name)
        assert "kubernetes-2" in node.run(_SIGNER), name
        assert "kubernetes-2" in node.run(_SERVES), name
        subjects = node.run(_TRUSTED).splitlines()
        assert subjects
        assert [line for line in subjects if not line.endswith("-2")] == [], name
    lies = stack.node("master-1").etcdctl(_LIES)
    assert "key-2:" in lies
    assert "key-1:" not in lies
    kubectl = [".local/bin/kubectl", "--kubeconfig", str(first_kubeconfig), "get", "nodes"]
    done = subprocess.run(kubectl, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "certificate signed by unknown authority" in done.stderr


def test_pods_of_the_cluster_go_on(stack: Stack, first_kubeconfig: Path) -> None:
    assert first_kubeconfig.exists()
    for name in ("kube-system/deployment/coredns", "kube-system/daemonset/kube-proxy"):
        namespace, kind, what = name.split("/")
        stack.kubectl(
            "-n", namespace, "rollout", "status", f"{kind}/{what}", "--timeout=60s", limit_s=90
        )
    with pytest.raises(LabError):
        stack.kubectl("get", "secret", "there-is-none")


def test_second_up_changes_nothing(stack: Stack, first_kubeconfig: Path) -> None:
    assert first_kubeconfig.exists()
    assert_up_changes_nothing(stack)
