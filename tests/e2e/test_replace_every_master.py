"""Story: every master is replaced in turn, the bootstrap one first, until none of the original machines is left."""

from __future__ import annotations

from tests.e2e.harness import config, lab
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

NAME = "test-replace"


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.22.0/24", masters=3, workers=1)


def test_masters_are_replaced_one_per_up_and_clients_go_on(stack: Stack) -> None:
    stack.up()
    stack.kubectl("create", "configmap", "written-on-day-one", "--from-literal=a=b")
    witness = f"{NAME}-master-"
    with Load(stack, "every master replaced") as load:
        for number in (1, 2, 3):
            stack.edit("pools.master.count", 3 + number)
            gone: dict[str, object] = {
                f"master-{n}": {"state": "removed"} for n in range(1, number + 1)
            }
            stack.set_nodes(gone)
            update = stack.up()
            load.read_kubeconfig_again()
            stack.took(f"master-{number} replaced by master-{number + 3}", update.seconds)
    load.assert_unharmed()
    masters = {f"master-{n}" for n in (4, 5, 6)}
    stack.wait_healthy({*masters, "worker-1"}, limit_s=60)
    assert (
        stack.kubectl(
            "get",
            "configmap",
            "written-on-day-one",
            "-o",
            "jsonpath={.data.a}",
            context=f"{witness}5",
        )
        == "b"
    )
    machines = set(lab.containers(NAME))
    assert not {f"kube-ha-{NAME}-master-{n}" for n in (1, 2, 3)} & machines


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)
