"""What several stories promise."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection

from tests.e2e.harness import lab
from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack

# Where a node could keep the address of another one; logs tell of the past, as does etcd's data.
_FILES = "/etc/haproxy /etc/kube-ha /etc/kubernetes /var/lib/kubelet/config.yaml /etc/hosts /etc/containerd"


def assert_up_changes_nothing(stack: Stack) -> None:
    """One more up: no resource, no SSH connection, no process on any node that started again."""
    stack.settled()
    connections = _connections(stack.nodes())
    assert all(connections.values()), f"logins are not counted: {connections}"
    processes = {node.name: node.processes() for node in stack.nodes()}
    again = stack.up()
    assert again.changes == {}
    assert again.ssh_connections == []
    assert _connections(stack.nodes()) == connections, "the sshd of these machines saw a login"
    assert {node.name: node.processes() for node in stack.nodes()} == processes
    stack.took("up without an edit: 0 resources, 0 SSH connections", again.seconds)


def _connections(nodes: list[Node]) -> dict[str, int]:
    return {node.name: node.connections() for node in nodes}


def assert_acceptance(stack: Stack) -> None:
    """`make verify` finds that the cluster works: API, scheduling, pods, Services and DNS, from every node."""
    command = [sys.executable, "-m", "operations.verify", stack.name]
    told = lab.shell(command, values=stack.environment, timeout_s=300)
    stack.settled()
    assert "the cluster works" in told, told


def assert_no_trace(stack: Stack, addresses: Collection[str], *, but: Collection[str] = ()) -> None:
    """None of these addresses is in any file of a node that could use it, nor in anything that the cluster keeps.

    `but`: machines that are not nodes now, and whose files stay as they are.
    """
    if not addresses:
        return
    pattern = "|".join(rf"\b{re.escape(address)}\b" for address in sorted(addresses))
    found = []
    for node in stack.nodes():
        if node.name in but:
            continue
        lines = node.run(f"grep -rsEI '{pattern}' {_FILES} || true").splitlines()
        found += [f"{node.name}: {line.strip()[:160]}" for line in lines]
    kept = {
        "kubeadm-config": ("configmap", "kubeadm-config", "--namespace", "kube-system"),
        "cluster-info": ("configmap", "cluster-info", "--namespace", "kube-public"),
        "Service kubernetes": ("endpointslices", "--namespace", "default"),
        "nodes": ("nodes",),
    }
    texts = {name: stack.kubectl("get", *words, "-o", "yaml") for name, words in kept.items()}
    texts["etcd"] = stack.members()[0].etcdctl("member list -w simple")
    texts["kubeconfig of the stack"] = str(stack.output("kubeconfig"))
    for name, text in texts.items():
        found += [
            f"{name}: {line.strip()[:160]}"
            for line in text.splitlines()
            if re.search(pattern, line)
        ]
    assert not found, "addresses that belong to nobody any more:\n" + "\n".join(found)


def assert_sound(stack: Stack, *, gone: Collection[str] = ()) -> None:
    """After an edit: it works, nothing is left to do, and machines that are gone (addresses) are gone everywhere."""
    assert_no_trace(stack, gone)
    assert_acceptance(stack)
    assert_up_changes_nothing(stack)
