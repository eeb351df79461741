"""Story: an update fails, is killed, is taken back; each next preview tells what is left to do."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-truth"
NOTHING = "nothing to do: the config is the one last applied"
BREAK = (
    "mkdir -p /run/systemd/system/kubelet.service.d; "
    "printf '[Service]\\nExecStartPre=/bin/false\\n' "
    ">/run/systemd/system/kubelet.service.d/99-broken.conf; systemctl daemon-reload"
)
MEND = "rm -r /run/systemd/system/kubelet.service.d; systemctl daemon-reload"


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.24.0/24", masters=1, workers=1)


def test_before_the_first_up_everything_is_to_be_made(stack: Stack) -> None:
    told = words(stack)
    assert told.startswith(f"Plan for cluster {NAME}, a new cluster Changes Create cluster {NAME}")
    assert "1 master, 1 etcd member, 1 worker" in told
    stack.up()
    assert NOTHING in words(stack)
    assert stack.preview().changes == {}


def test_after_a_failed_up_the_preview_still_tells_the_whole_edit(stack: Stack) -> None:
    stack.edit("kubelet.maxPods", 60)
    told = words(stack)
    assert "0 to add, 2 to change, 0 to replace, 0 to remove, 0 unchanged" in told
    stack.node("worker-1").run(BREAK)
    stack.up(fails=True)
    assert words(stack) == told, "it compares with the last success, and that has not changed"
    assert f"{NAME}-worker-1-node" in stack.preview().changes, "the failed command runs again"


def test_when_it_is_taken_back_the_engine_lists_what_undoes_it(stack: Stack) -> None:
    stack.edit("kubelet.maxPods", None)
    preview = stack.preview()
    assert NOTHING in preview.output
    assert "has failed or was interrupted since" in " ".join(preview.output.split())
    # The master had the change already, the worker half of it.
    assert {f"{NAME}-{node}-node" for node in ("master-1", "worker-1")} <= set(preview.changes)
    stack.node("worker-1").run(MEND)
    stack.up()
    assert stack.preview().changes == {}


def test_after_a_killed_up_too(stack: Stack) -> None:
    stack.edit("kubelet.maxPods", 70)
    told = words(stack)
    update = stack.start_up()
    try:
        wait_for(
            "the worker's turn",
            lambda: "" if update.has_begun(f"{NAME}-worker-1-node") else "not its turn yet",
            limit_s=120,
            every_s=0.1,
        )
    finally:
        update.sigkill()
    stack.cancel()
    assert words(stack) == told
    stack.edit("kubelet.maxPods", None)
    preview = stack.preview()
    assert NOTHING in preview.output
    assert f"{NAME}-worker-1-node" in preview.changes
    stack.up()
    assert_up_changes_nothing(stack)


def words(stack: Stack) -> str:
    """What the next preview says in words, from its title to its last line."""
    output = " ".join(stack.preview().output.split())
    told = output[output.index(f"Plan for cluster {NAME},") :]
    ends = [told.find(last) for last in ("(make plan VERBOSE=1)", "to take it back")]
    return told[: min(end for end in ends if end >= 0)]
