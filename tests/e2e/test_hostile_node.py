"""Story: a worker that writes what it likes into its own Node, all the time, moves nobody else and executes nothing, while labels change, another worker leaves and a stranger is there."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.stack import Stack

NODES = ("master-1", "worker-1", "worker-2")
MARK = "/run/executed"
# Rows of other Nodes, options of kubectl, what bash would execute, and what a terminal would.
_TEXTS = rf"""
texts=('x\nmaster-1|0123456789abcdef|True||\nworker-1||True||' 'x\n-lkubernetes.io/os|x|True||' 'always SECONDS[$(touch${{IFS}}{MARK})] SECONDS[$(touch${{IFS}}{MARK})]' 'a=1 node-role.kubernetes.io/control-plane= $(touch {MARK})' 'true\u001b[2J\n::add-mask::x')
keys=(failed drain leaving maintenance kept labels taints os updating)
"""
# By its own kubelet identity, as fast as it can; admission lets hardly any of it through.
_FORGE = rf"""{_TEXTS}
id=/var/lib/kubelet/pki/kubelet-client-current.pem
while true; do
  for text in "${{texts[@]}}"; do
    for key in "${{keys[@]}}"; do
      curl -s --max-time 5 --noproxy '*' --cacert /etc/kube-ha/ca.crt --cert "$id" -o /dev/null -w '%{{http_code}}\n' -X PATCH -H 'Content-Type: application/merge-patch+json' \
        -d "{{\"metadata\":{{\"annotations\":{{\"kube-ha.io/$key\":\"$text\"}}}}}}" "https://127.0.0.1:3446/api/v1/nodes/worker-2" >>/run/forged
    done
  done
done
"""
# And by somebody whom no admission looks at: what is there is of a cluster from before it, say.
_WRITE = rf"""{_TEXTS}
while true; do
  for text in "${{texts[@]}}"; do
    words=()
    for key in "${{keys[@]}}"; do words+=("kube-ha.io/$key=$(printf "${{text//%/%%}}")"); done
    kubectl --kubeconfig /etc/kubernetes/admin.conf annotate --overwrite -- node worker-2 "${{words[@]}}" && echo written >>/run/written
  done
done >/dev/null 2>&1
"""


def wanted() -> config.Config:
    return config.lab("test-hostile", "10.93.83.0/24", masters=1, workers=2)


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    stack.up()
    for node, name, text in (("worker-2", "forge", _FORGE), ("master-1", "write", _WRITE)):
        stack.node(node).put(f"/run/{name}", text)
        start = f"systemd-run -q --collect --unit {name} bash /run/{name}"
        stack.node(node).run(f"{start}; sleep 3; systemctl is-active {name}")
    watch = (
        "get nodes -w -o jsonpath='{.metadata.name} {.spec.unschedulable}{\"\\n\"}' >/run/watched"
    )
    stack.node("master-1").start_program(f"kubectl --kubeconfig /etc/kubernetes/admin.conf {watch}")
    return stack


def watched(cluster: Stack) -> str:
    """Every Node as it ever was: one that was cordoned for a moment, too."""
    return cluster.node("master-1").run("cat /run/watched")


def kept(cluster: Stack) -> dict[str, tuple[object, ...]]:
    """Of each Node its uid, and whether somebody takes it out of service."""
    items = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    return {
        node["metadata"]["name"]: (
            node["metadata"]["uid"],
            node["spec"].get("unschedulable", False),
        )
        for node in items
    }


def assert_nothing_executed(cluster: Stack) -> None:
    for name in NODES:
        assert cluster.node(name).asked(f"ls {MARK} 2>/dev/null || true").strip() == ""


def test_a_label_is_set_and_nobody_is_moved(cluster: Stack) -> None:
    before = kept(cluster)
    cluster.edit("pools.worker.labels", {"tier": "web"})
    update = cluster.up()
    assert kept(cluster) == before
    assert "worker-1" in watched(cluster)
    assert re.search(r"(?m)^(master-1|worker-1) true$", watched(cluster)) is None
    for name in ("worker-1", "worker-2"):
        found = json.loads(cluster.kubectl("get", "node", name, "-o", "json"))
        assert found["metadata"]["labels"]["tier"] == "web"
    assert_nothing_executed(cluster)
    written = int(cluster.node("master-1").run("wc -l </run/written"))
    assert written > 10
    patches = cluster.node("worker-2").run("sort /run/forged | uniq -c | tr '\\n' ' '")
    cluster.measured(
        f"label set in {update.seconds:.0f} s beside a worker whose answers were {patches.strip()}; {written} writes of others to its Node"
    )


def test_a_worker_that_leaves_is_the_only_one_that_goes(cluster: Stack) -> None:
    """worker-1 is taken out of the list; a Node that the stack never asked for stays, and drift tells of it."""
    # As kwok's: no pod of a DaemonSet is waited for there.
    metadata = {"name": "guest-1", "labels": {"type": "kwok"}}
    guest = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(guest))
    before = kept(cluster)
    cluster.set_nodes({"worker-1": {"state": "decommissioned"}})
    update = cluster.up()
    after = kept(cluster)
    assert set(after) == {"master-1", "worker-2", "guest-1"}
    assert {name: after[name] for name in after} == {name: before[name] for name in after}
    cluster.measured(f"a worker leaves in {update.seconds:.0f} s beside a hostile one")
    assert_nothing_executed(cluster)


def test_second_up_changes_nothing(cluster: Stack) -> None:
    cluster.node("worker-2").run("systemctl stop forge")
    cluster.node("master-1").run("systemctl stop write")
    assert_up_changes_nothing(cluster)
