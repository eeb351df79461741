"""Story: a worker is emptied for maintenance, once budgets allow it; pods of another one wait for it while its power is off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stacks.releases import versions
from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-maintenance"
ALL = {"master-1", "worker-1", "worker-2", "worker-3"}
_WAITS_S = 20  # how long pods of `brief` tolerate a node that is down
_TAINTS = ("not-ready", "unreachable")


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.132.0/24", masters=1, workers=3)


def test_a_node_whose_pods_may_not_go_is_left_as_it_was(stack: Stack) -> None:
    stack.up()
    pods.deploy(stack)
    set_budget(stack, 0)
    home = next(iter(where(stack, "somewhere").values()))
    stack.set_nodes({home: {"state": "maintenance", "drain": True}})
    words = stack.preview().output
    assert "cordon for maintenance, evict its pods" in words
    assert f"evicted from {home}, for maintenance, as PodDisruptionBudgets allow" in words
    failed = stack.up(fails=True)
    assert (
        f"evictions would be refused, no node was touched: on {home} {pods.NAMESPACE}/somewhere-"
        in failed.tail()
    )
    assert cordoned(stack) == set()


def test_it_is_emptied_within_the_budget(stack: Stack) -> None:
    [home] = stack.config["nodes"]
    set_budget(stack, 1)
    with Load(stack, "a node is emptied") as load:
        update = stack.up()
    load.assert_unharmed()
    assert cordoned(stack) == {home}
    assert home not in where(stack, "somewhere").values()
    assert all(owner == "DaemonSet" for owner in owners(stack, home)), owners(stack, home)
    stack.took(
        "a worker is emptied",
        update.durations()[f"{NAME}-nodes"][1] - update.durations()[f"{NAME}-nodes"][0],
    )
    stack.set_nodes({})
    stack.up()
    assert cordoned(stack) == set()


def test_pods_wait_for_a_machine_whose_power_is_off(stack: Stack) -> None:
    """Those of another machine, which nobody called in maintenance, do not."""
    stack.kubectl("apply", "-f", "-", stdin=json.dumps(_brief()))
    wait_for(
        "two pods of brief",
        lambda: "" if len(where(stack, "brief")) == 2 else "not yet",
        limit_s=60,
    )
    kept, lost = sorted(set(where(stack, "brief").values()))
    before = tolerated(stack)
    stack.set_nodes({kept: {"state": "maintenance", "keepPodsS": 600}})
    stack.up()
    # Those of the acceptance test come and go.
    during = {name: said for name, said in tolerated(stack).items() if before.get(name)}
    here = {name for name, node in where(stack).items() if node == kept and name in during}
    assert {name for name in during if during[name] != before[name]} == here
    assert all(set(during[name].values()) == {600} for name in here)

    for name in (kept, lost):
        stack.node(name).kill()

    def left() -> str:
        there = where(stack, "brief", alive=True)
        return " ".join(name for name, node in there.items() if node == lost)

    wait_for(f"pods of {lost} deleted", left, limit_s=180)
    alive = where(stack, alive=True)
    assert here <= set(alive), f"of {kept}, too: {here - set(alive)}"

    for name in (kept, lost):
        stack.node(name).start()
    stack.wait_healthy(ALL)
    pods.wait_running(stack)
    stack.set_nodes({})
    stack.up()
    after = tolerated(stack)
    assert {name: after.get(name) for name in here} == {name: before[name] for name in here}
    assert cordoned(stack) == set()


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def set_budget(stack: Stack, most: int) -> None:
    patch = json.dumps({"spec": {"maxUnavailable": most}})
    stack.kubectl("-n", pods.NAMESPACE, "patch", "pdb", "somewhere", "-p", patch)


def cordoned(stack: Stack) -> set[str]:
    path = '{range .items[?(@.spec.unschedulable==true)]}{.metadata.name}{"\\n"}{end}'
    return set(stack.kubectl("get", "nodes", "-o", f"jsonpath={path}").split())


def listed(stack: Stack) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(stack.kubectl("get", "pods", "-A", "-o", "json"))[
        "items"
    ]
    return found


def where(stack: Stack, app: str = "", *, alive: bool = False) -> dict[str, str]:
    """Node of each pod that has one; `alive`: of those that nobody has deleted."""
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in listed(stack)
        if "nodeName" in pod["spec"]
        and (not app or pod["metadata"].get("labels", {}).get("app") == app)
        and not (alive and "deletionTimestamp" in pod["metadata"])
    }


def owners(stack: Stack, node: str) -> list[str]:
    return [
        pod["metadata"]["ownerReferences"][0]["kind"]
        for pod in listed(stack)
        if pod["spec"].get("nodeName") == node
    ]


def tolerated(stack: Stack) -> dict[str, Mapping[str, int]]:
    """Seconds by taint of each pod that tolerates a node that is down for a time."""
    return {
        pod["metadata"]["name"]: {
            one["key"]: one["tolerationSeconds"]
            for one in pod["spec"].get("tolerations", [])
            if "tolerationSeconds" in one
        }
        for pod in listed(stack)
    }


def _brief() -> object:
    label = {"matchLabels": {"app": "brief"}}
    spread = {
        "topologyKey": "kubernetes.io/hostname",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": label,
    }
    tolerations = [
        {
            "key": f"node.kubernetes.io/{taint}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _WAITS_S,
        }
        for taint in _TAINTS
    ]
    image = f"registry.k8s.io/pause:{versions.for_kubernetes(config.kubernetes()).pause}"
    template = {
        "metadata": {"labels": {"app": "brief"}},
        "spec": {
            "tolerations": tolerations,
            "topologySpreadConstraints": [spread],
            "containers": [{"name": "brief", "image": image}],
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "brief", "namespace": "default"},
        "spec": {"replicas": 2, "selector": label, "template": template},
    }
