"""Story: a report is of every machine that answers, changes none, and holds no key even where logs do."""

from __future__ import annotations

import json
import shutil
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.e2e.harness import config
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.leaks import needles, seen
from tests.e2e.harness.operations import operation
from tests.e2e.harness.stack import Stack

DEAD = "worker-2"
# What no log should ever hold: keys of the stack and of the machine, in the journal and in the log of a phase.
_LOG_KEYS = r"""
logger -p user.err -- "$(cat /etc/kubernetes/pki/*.key /var/lib/kubelet/pki/kubelet-client-current.pem 2>/dev/null)"
cat /etc/kubernetes/*.conf >>/var/lib/kube-ha/state/kubeadm.log
"""
_KEYS_OF_ITS_OWN = r"""
sed -n '/BEGIN.*PRIVATE KEY/,/END.*PRIVATE KEY/{/-----/!p}' /var/lib/kubelet/pki/kubelet-client-current.pem | grep -E '.{25,}'
sed -n 's/.*client-key-data: *//p' /etc/kubernetes/*.conf | cut -c 80-160
"""
# What the report could have left behind.
# A kubelet that asks a container by a command (exec probe) has runc write such a file, for a moment.
_WRITTEN = r"""
find /etc /root /home /usr /opt /tmp /var/lib/kube-ha/state /var/lib/kubelet/config.yaml /var/lib/kubelet/pki \
  -xdev -newer /run/before-the-look ! -type d ! -path '/etc/cni/*' ! -path '/tmp/runc-process*'
"""


def wanted() -> config.Config:
    return config.lab("test-report", "10.93.44.0/24", masters=1, workers=2)


@pytest.fixture(scope="module")
def folder(stack: Stack) -> Iterator[Path]:
    """Where reports of the story are."""
    found = ROOT / ".local/reports" / stack.name
    shutil.rmtree(found, ignore_errors=True)
    yield found
    shutil.rmtree(found, ignore_errors=True)


def unpacked(file: Path) -> dict[str, str]:
    with tarfile.open(file) as tar:
        held = {one.name.removeprefix("report/"): tar.extractfile(one) for one in tar}
        return {name: text.read().decode() for name, text in held.items() if text}


def test_a_report_is_of_what_answers_and_holds_no_secret(cluster: Stack, folder: Path) -> None:
    cluster.settled()
    cluster.node(DEAD).kill()
    nodes = [node for node in cluster.nodes() if node.name != DEAD]
    for node in nodes:
        node.run(_LOG_KEYS)
        node.run("touch /run/before-the-look; sleep 0.1")
    unknown = {line for node in nodes for line in node.run(_KEYS_OF_ITS_OWN).split()}
    assert len(unknown) > 6, "the machines have keys that the stack does not know"
    before = {node.name: (node.processes(), node.files()) for node in nodes}

    started = time.monotonic()
    said = operation(cluster, "report")
    cluster.took("make report of 3 machines, one of them dead", time.monotonic() - started)
    assert {node.name: (node.processes(), node.files()) for node in nodes} == before
    assert {node.name: node.run(_WRITTEN) for node in nodes} == {node.name: "" for node in nodes}

    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    found = unpacked(file)
    size = sum(map(len, found.values()))
    cluster.measured(f"a report of 2 machines has {len(found)} files, {size // 1024} KiB of text")
    assert f"left out: {DEAD}: " in said
    assert set(json.loads(found["about.json"])["leftOut"]) == {DEAD}
    assert {"config.yaml", "plan.json", "status.txt", "drift.json"} <= set(found)
    for path, word in {
        "cluster/pods.txt": "coredns",
        "cluster/nodes.txt": DEAD,
        "cluster/events.txt": "LAST SEEN",
        "nodes/master-1/members.txt": "master-1",
        "nodes/master-1/etcd.txt": "etcd[",
        "nodes/master-1/kubelet.txt": "kubelet[",
        "nodes/master-1/kube-apiserver.txt": "apiserver",
        "nodes/master-1/phases.txt": "kubeadm.log",
        "nodes/worker-1/containerd.txt": "containerd[",
        "nodes/worker-1/haproxy.txt": "haproxy",
    }.items():
        assert word in found[path], path
    secret = needles(cluster.export()) | dict.fromkeys(unknown, "key of a machine")
    assert [one for path, text in found.items() for one in seen(secret, path, text)] == []
    # Looked for where they are: else nothing was proved.
    for path in ("nodes/master-1/warnings.txt", "nodes/master-1/phases.txt"):
        assert "***" in found[path], path


def test_with_a_key_it_is_sealed(cluster: Stack, folder: Path) -> None:
    shutil.rmtree(folder)
    cluster.environment["KUBE_HA_STATE_KEY"] = Fernet.generate_key().decode()
    try:
        operation(cluster, "report")
        (sealed,) = folder.iterdir()
        assert b"config.yaml" not in sealed.read_bytes()
        operation(cluster, "report", "--open", str(sealed))
    finally:
        del cluster.environment["KUBE_HA_STATE_KEY"]
    assert "cluster/pods.txt" in unpacked(sealed.with_name(sealed.name.removesuffix(".sealed")))
