"""Story: an upgrade fails on its first master and is taken back; begun again it is killed, cannot be taken back, and continues."""

from __future__ import annotations

from tests.e2e.harness import config, versions
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.faults import engine_death
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

SUBNET = "10.93.39.0/24"
OLD = "1.35.4"
NODES = {"master-1", "master-2", "worker-1"}

# After the API server has drained and the kubelet was swapped. Before the right one on PATH, so that no download is touched.
_BREAK = r"""
cat >/usr/local/sbin/kubeadm <<'END'
#!/bin/sh
case "$*" in *"phase control-plane"*) echo broken by the test >&2; exit 1 ;; esac
exec /usr/local/bin/kubeadm "$@"
END
chmod 755 /usr/local/sbin/kubeadm
"""
_MEND = "rm /usr/local/sbin/kubeadm"


def wanted() -> config.Config:
    out = config.lab("test-cut-off", SUBNET, masters=2, workers=1)
    out["cluster"]["kubernetes"] = OLD
    return versions.with_older_ones(out, SUBNET)


def test_an_upgrade_that_failed_on_its_first_master_is_taken_back(stack: Stack) -> None:
    stack.up()
    first = stack.node("master-1")
    first.run(_BREAK)
    stack.edit("cluster.kubernetes", config.kubernetes())
    with Load(stack, "failed and taken back") as load:
        failed = stack.up(fails=True)
        assert "static pods: broken by the test" in failed.tail()
        assert first.asked("kubelet --version").split()[-1] == f"v{config.kubernetes()}"
        first.run(_MEND)
        stack.edit("cluster.kubernetes", OLD)
        back = stack.up()
    load.assert_unharmed()
    stack.took("taken back on the first of 2 masters", back.seconds)
    _assert_all(stack, OLD)


def test_begun_again_and_killed_it_does_not_go_back_but_on(stack: Stack) -> None:
    stack.edit("cluster.kubernetes", config.kubernetes())
    second = stack.node("master-2")
    with Load(stack, "killed and continued") as load:
        engine_death(
            stack, resource="test-cut-off-master-2-master", until=lambda: second.runs("kubeadm")
        )
        stack.edit("cluster.kubernetes", OLD)
        refused = stack.up(fails=True)
        told = f"has finished Kubernetes {config.kubernetes()}, so it cannot go back to {OLD}"
        assert told in refused.tail()
        stack.edit("cluster.kubernetes", config.kubernetes())
        stack.up()
    load.assert_unharmed()
    _assert_all(stack, config.kubernetes())


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def _assert_all(stack: Stack, version: str) -> None:
    stack.wait_healthy(NODES, limit_s=60)
    assert versions.of_kubelets(stack) == dict.fromkeys(NODES, f"v{version}")
    assert set(versions.of_images(stack, "kube-apiserver").values()) == {f"v{version}"}
    assert versions.published(stack) == f"v{version}"
