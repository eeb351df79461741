"""Story: every CA and key of three masters begins to sign and encrypt again, while clients go on.

It is the step that changes what everybody shows to everybody. The one before it took place when the cluster was made, for a story has ten minutes.
"""

from __future__ import annotations

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.test_rotate_keys import PATHS, step

NODES = {"master-1", "master-2", "master-3", "worker-1"}
_SIGNER = "openssl x509 -noout -issuer -in /var/lib/kubelet/pki/kubelet-client-current.pem"
_SERVING = (
    "openssl x509 -noout -issuer -in /etc/kubernetes/pki/apiserver.crt; "
    "openssl x509 -noout -issuer -in /etc/kube-ha/etcd/server.crt"
)
# The key under which each Secret is in etcd.
_LIES = "get /registry/secrets/ --prefix --print-value-only | grep -aoE '^k8s:enc:secretbox:v1:key-[0-9]+:' | sort | uniq -c"


def wanted() -> config.Config:
    return config.lab("test-keys-three", "10.93.48.0/24", masters=3, workers=1)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    step(stack, "trust")
    return stack


def test_all_keys_sign_anew_and_no_request_is_lost(stack: Stack) -> None:
    stack.up()
    stack.kubectl("create", "secret", "generic", "old", "--from-literal", "word=kept")
    step(stack, "issue")
    with Load(stack, "while keys change") as load:
        update = stack.up()
    stack.took(f"issue, of {len(PATHS)} keys of 3 masters", update.seconds)
    load.assert_unharmed()


def test_everybody_is_known_by_the_new_ones(stack: Stack) -> None:
    stack.wait_healthy(NODES, limit_s=60)
    for name in NODES:
        assert "kubernetes-2" in stack.node(name).run(_SIGNER), name
    for name in NODES - {"worker-1"}:
        issuers = stack.node(name).run(_SERVING).splitlines()
        assert ["-2" in line for line in issuers] == [True, True], issuers
    assert stack.kubectl("get", "secret", "old", "-o", "jsonpath={.data.word}") == "a2VwdA=="
    lies = stack.node("master-1").etcdctl(_LIES)
    assert "key-2:" in lies
    assert "key-1:" not in lies


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)
