"""Story: Services of type LoadBalancer on machines without a cloud, by metallb: reached from outside, while speakers restart, while the worker that announces dies; addresses change; it leaves."""

from __future__ import annotations

import json
import subprocess

from stacks.releases import versions as lock
from tests.e2e.harness import config, versions
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.caller import Caller, ask
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

ALONE = "addresses move within 20 s"
NAME = "test-load-balancer"
SUBNET = "10.93.135.0/24"
FIRST, OTHER = "10.93.135.240", "10.93.135.250"
SPACE = "shop"
PORT = 8080
_MOVES_WITHIN_S = 20


def wanted() -> config.Config:
    made = config.lab(NAME, SUBNET, masters=1, workers=2)
    made["addons"] = {"metallb": {"addresses": [f"{FIRST}-10.93.135.242"]}}
    return versions.with_load_balancers(made, SUBNET)


def test_a_service_is_reached_by_its_address_from_outside(stack: Stack) -> None:
    update = stack.up()
    stack.took("up of 1+2 with metallb", update.seconds)
    stack.kubectl("apply", "-f", "-", stdin=json.dumps(_shop()))
    wait_for("address of the Service", lambda: "" if _address(stack) == FIRST else _address(stack) or "none", limit_s=60)  # fmt: skip
    wait_for("its pods", lambda: _unready(stack), limit_s=120)
    wait_for("an answer", lambda: _silence(FIRST), limit_s=30)
    assert _announcer(stack) in ("worker-1", "worker-2")
    assert_up_changes_nothing(stack)


def test_speakers_restart_and_the_address_stays_reachable(stack: Stack) -> None:
    with Caller(FIRST, PORT) as caller:
        stack.kubectl("-n", "metallb-system", "rollout", "restart", "daemonset/speaker")
        words = ("rollout", "status", "daemonset/speaker", "--timeout", "100s")
        stack.kubectl("-n", "metallb-system", *words, limit_s=110)
        wait_for("an answer", lambda: _silence(FIRST), limit_s=30)
    stack.measured(f"all speakers restart: {caller.told()}")
    assert caller.longest_gap_s < _MOVES_WITHIN_S, caller.told()


def test_the_worker_that_announces_dies_and_the_address_moves(stack: Stack) -> None:
    dies = _announcer(stack)
    stays = "worker-2" if dies == "worker-1" else "worker-1"
    with Caller(FIRST, PORT) as caller:
        wait_for("an answer", lambda: "" if caller.answered else caller.last, limit_s=30)
        before = len(caller.answered)
        stack.node(dies).kill()
        took = wait_for("the other worker announces it", lambda: "" if _announcer(stack) == stays else caller.last, limit_s=60)  # fmt: skip
        wait_for("answers again", lambda: "" if len(caller.answered) > before + 20 else caller.last, limit_s=60)  # fmt: skip
    stack.measured(f"the worker that announces dies: moved after {took:.1f} s; {caller.told()}")
    assert caller.longest_gap_s < _MOVES_WITHIN_S, caller.told()
    stack.set_nodes({dies: {"state": "lost"}})
    stack.up()
    assert ask(FIRST, PORT)


def test_another_range_is_told_and_the_service_gets_an_address_of_it(stack: Stack) -> None:
    stack.edit("addons.metallb.addresses", [OTHER])
    words = " ".join(stack.preview().output.split())
    assert "get another one" in words, words
    stack.up()
    wait_for("another address", lambda: "" if _address(stack) == OTHER else _address(stack) or "none", limit_s=60)  # fmt: skip
    wait_for("an answer", lambda: _silence(OTHER), limit_s=30)
    assert _silence(FIRST), "the former address is still answered"


def test_it_leaves_and_what_is_kept_is_told(stack: Stack) -> None:
    stack.kubectl("-n", SPACE, "delete", "service", "shop")
    stack.config["addons"] = {}
    stack.write()
    words = " ".join(stack.preview().output.split())
    assert "kept, for you to delete:" in words, words
    stack.up()
    assert _silence(OTHER), "an address is still answered"
    stack.kubectl("delete", "namespace", "metallb-system", limit_s=60)
    listed = stack.kubectl("get", "crd", "-o", "name").split()
    kinds = [name.rpartition("/")[2] for name in listed if name.endswith(".metallb.io")]
    stack.kubectl("delete", "crd", *kinds, limit_s=60)
    kinds = stack.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    asked = ",".join(kind for kind in kinds if not kind.startswith("events"))
    every = stack.kubectl("get", asked, "--all-namespaces", "-o", "name").split()
    assert [name for name in every if "metallb" in name] == []
    assert stack.up().changes == {}


def _address(stack: Stack) -> str:
    path = "jsonpath={.status.loadBalancer.ingress[0].ip}"
    return stack.kubectl("-n", SPACE, "get", "service", "shop", "-o", path).strip()


def _unready(stack: Stack) -> str:
    path = "jsonpath={.status.desiredNumberScheduled} {.status.numberReady}"
    found = stack.kubectl("-n", SPACE, "get", "daemonset", "shop", "-o", path).split()
    return "" if found == ["2", "2"] else f"wanted and ready: {found}"


def _silence(address: str) -> str:
    """Empty where somebody answers."""
    try:
        return "" if ask(address, PORT) else "an empty answer"
    except OSError as error:
        return str(error) or type(error).__name__


def _announcer(stack: Stack) -> str:
    """Whose card this computer has for the address; empty where it has none."""
    found = subprocess.run(
        ["ip", "neigh", "show", FIRST], capture_output=True, text=True, check=True
    )
    words = found.stdout.split()
    card = words[words.index("lladdr") + 1] if "lladdr" in words else "none"
    for node in stack.nodes():
        if card in node.run("cat /sys/class/net/eth0/address"):
            return node.name
    return ""


def _shop() -> dict[str, object]:
    """A pod on each worker, and their Service, which leads to pods of the node that it arrives at."""
    about = {"name": "shop", "namespace": SPACE}
    labels = {"app": "shop"}
    agnhost = lock.for_kubernetes(config.kubernetes()).agnhost
    container = {
        "name": "shop",
        "image": f"registry.k8s.io/e2e-test-images/agnhost:{agnhost}",
        "args": ["netexec", f"--http-port={PORT}"],
        "readinessProbe": {"httpGet": {"path": "/hostname", "port": PORT}, "periodSeconds": 2},
    }
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": about,
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": about,
            "spec": {
                "type": "LoadBalancer",
                "externalTrafficPolicy": "Local",
                "selector": labels,
                "ports": [{"port": PORT}],
            },
        },
    ]  # fmt: skip
    return {"apiVersion": "v1", "kind": "List", "items": items}
