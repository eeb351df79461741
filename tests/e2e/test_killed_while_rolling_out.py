"""Story: settings of etcd, of the API server and of kubelets change, and the engine is killed at ten random steps of that; clients feel nothing, and a plain up ends what was begun.

KUBE_HA_SEED=<number> kills at the same steps as the run that printed it.
"""

from __future__ import annotations

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.faults import engine_deaths_at_random, seeded
from tests.e2e.harness.load import Load
from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack

MASTERS = ("master-1", "master-2", "master-3")
NODES = {*MASTERS, "worker-1"}
KILLS = 10


def wanted() -> config.Config:
    return config.lab("test-killed-rolling", "10.93.17.0/24", masters=3, workers=1)


def test_settings_change_though_the_engine_dies_anywhere(stack: Stack) -> None:
    chance = seeded(stack)
    stack.up()
    pods.deploy(stack)
    stack.edit("etcd.quotaBackendGib", 3)
    stack.edit("controlPlane.apiServerArgs", {"max-requests-inflight": "500"})
    stack.edit("kubelet.maxPods", 90)
    with Load(stack, "engine killed") as load:
        killed = engine_deaths_at_random(stack, chance, KILLS)
        update = stack.up()
    stack.took(f"killed {killed} times; the update after that", update.seconds)
    assert killed >= 8, "one of the first steps was the last one: the run says little"
    load.assert_unharmed()


def test_every_node_is_new_and_serves(stack: Stack) -> None:
    stack.wait_healthy(NODES, limit_s=30)
    pods.wait_running(stack)
    for name in NODES:
        assert "maxPods: 90" in stack.node(name).run("cat /var/lib/kubelet/config.yaml"), name
    for name in MASTERS:
        words = _command_lines(stack.node(name))
        assert "--max-requests-inflight=500" in words, name
        assert "--quota-backend-bytes=3221225472" in words, name
    assert_sound(stack)


def _command_lines(master: Node) -> str:
    """Arguments and settings that its API server and its etcd run with."""
    script = r"""
for program in kube-apiserver etcd; do
  pid=$(pgrep -x "$program")
  tr '\0' '\n' <"/proc/$pid/cmdline"
  tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^ETCD_QUOTA_BACKEND_BYTES=/--quota-backend-bytes=/p'
done
"""
    return master.run(script)
