"""Story: one master becomes three and five and then three and one again, each by one number, while clients go on."""

from __future__ import annotations

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_no_trace, assert_sound
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

NAME = "test-five"
SUBNET = "10.93.30"


def wanted() -> config.Config:
    return config.lab(NAME, f"{SUBNET}.0/24", masters=1, workers=1)


def test_masters_come_and_go_and_clients_go_on(stack: Stack) -> None:
    stack.up()
    pods.deploy(stack)
    count = 1
    with Load(stack, "one to five and back") as load:
        for wanted in (3, 5, 3, 1):
            stay = _nodes(min(count, wanted))
            stack.edit("pools.master.count", wanted)
            with pods.untouched(stack, stay):
                update = stack.up()
            stack.took(f"up from {count} to {wanted} masters", update.seconds)
            load.read_kubeconfig_again()
            stack.wait_healthy(_nodes(wanted), limit_s=30)
            assert_no_trace(stack, [f"{SUBNET}.1{n}" for n in range(wanted + 1, count + 1)])
            count = wanted
    load.assert_unharmed()


def test_what_is_left_is_sound(stack: Stack) -> None:
    pods.wait_running(stack)
    assert_sound(stack, gone=[f"{SUBNET}.1{number}" for number in (2, 3, 4, 5)])


def _nodes(masters: int) -> set[str]:
    return {"worker-1", *(f"master-{number}" for number in range(1, masters + 1))}
