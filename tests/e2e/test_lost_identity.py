"""Story: a worker is lost, and somebody has a copy of its identity: refused without its line, and once a new machine has its name."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.stack import Stack

PEM = "/var/lib/kubelet/pki/kubelet-client-current.pem"
LABEL = {"example.com/x": "y"}
KNOWN = ("-n", "kube-system", "get", "configmap", "kube-ha-credentials", "-o", "json")


def wanted() -> config.Config:
    return config.lab("test-fence", "10.93.94.0/24", masters=1, workers=2)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.up()
    return stack


@pytest.fixture(scope="module")
def stolen(stack: Stack) -> str:
    return stack.node("worker-2").run(f"cat {PEM}")


def written_by(stack: Stack, identity: str) -> str:
    """What the API says when somebody writes to Node worker-2 with this certificate and key."""
    return _asked(stack, identity, "PATCH", "/worker-2", {"metadata": {"labels": LABEL}})


def registered_by(stack: Stack, identity: str) -> str:
    """The same of a kubelet that registers that Node: while there is none, nobody is asked about a write to it."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-2", "labels": LABEL}}
    return _asked(stack, identity, "POST", "", node)


def _asked(stack: Stack, identity: str, verb: str, path: str, body: Mapping[str, object]) -> str:
    master, kind = stack.node("master-1"), "merge-patch+json" if verb == "PATCH" else "json"
    master.put("/root/stolen.pem", identity)
    master.put("/root/body", json.dumps(body))
    return master.run(
        "curl -sS --max-time 10 --cacert /etc/kubernetes/pki/ca.crt --cert /root/stolen.pem "
        f"-X {verb} -H 'Content-Type: application/{kind}' -d @/root/body "
        f"https://127.0.0.1:3446/api/v1/nodes{path}; rm /root/stolen.pem /root/body"
    )


def test_it_is_good_while_its_machine_is(stack: Stack, stolen: str) -> None:
    assert '"example.com/x"' in written_by(stack, stolen)


def test_nothing_is_taken_of_it_when_no_line_names_it_any_more(stack: Stack, stolen: str) -> None:
    stack.node("worker-2").kill()
    stack.set_nodes({"worker-2": {"state": "lost"}})
    stack.up()
    assert "declared lost or compromised" in registered_by(stack, stolen)
    stack.set_nodes({})
    stack.edit("pools.worker.count", 1)
    stack.up()
    assert "declared lost or compromised" in registered_by(stack, stolen)


def test_a_new_machine_of_that_name_is_taken_and_the_old_one_is_not(
    stack: Stack, stolen: str
) -> None:
    stack.edit("pools.worker.count", 2)
    refused = stack.preview(fails=True)
    assert "worker-2 was lost, and its old identity is refused; set it to 2" in refused.output
    stack.set_nodes({"worker-2": {"generation": 2}})
    stack.up()
    stack.wait_healthy({"master-1", "worker-1", "worker-2"}, limit_s=60)
    assert "not one of the node's present incarnation" in written_by(stack, stolen)
    now = stack.node("worker-2").run(f"cat {PEM}")
    assert '"example.com/x"' in written_by(stack, now)
    known = json.loads(stack.kubectl(*KNOWN))
    assert known["metadata"]["annotations"] == {"kube-ha.io/incarnations": "worker-2.2"}
    assert list(known["data"]) == ["worker-2.2"]
    assert_up_changes_nothing(stack)
