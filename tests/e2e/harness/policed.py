"""Pods that serve and dial, some of them let in by a NetworkPolicy and others not; one of each kind dials all the time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from stacks.releases import versions
from tests.e2e.harness import config, lab
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAMESPACE = "policed"
SERVICE = f"server.{NAMESPACE}.svc.cluster.local:8080"
_PORT = 8080
_KINDS = ("friend", "stranger")
_DIAL_S = 3

# Dials its target for ever, a line each time.
_LOOP = """\
while true; do
  if answer=$(/agnhost connect "$0" --timeout 2s 2>&1); then echo "passed"; else echo "failed $answer"; fi
  sleep 0.5
done
"""
_DENY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "nobody", "namespace": NAMESPACE},
    "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
}
_ALLOW = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "friends", "namespace": NAMESPACE},
    "spec": {
        "podSelector": {"matchLabels": {"app": "server"}},
        "policyTypes": ["Ingress"],
        "ingress": [
            {
                "from": [{"podSelector": {"matchLabels": {"kind": "friend"}}}],
                "ports": [{"port": _PORT, "protocol": "TCP"}],
            }
        ],
    },
}


def deploy(stack: Stack) -> None:
    """A server, a friend and a stranger on every worker, and a Service of the servers."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "server", "namespace": NAMESPACE},
        "spec": {"selector": {"app": "server"}, "ports": [{"port": _PORT}]},
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    serving = {
        "args": ["netexec", f"--http-port={_PORT}"],
        "readinessProbe": {"httpGet": {"path": "/hostname", "port": _PORT}, "periodSeconds": 2},
    }
    parts = [namespace, service, _everywhere("server", "server", serving)]
    parts += [_everywhere(kind, kind, {"args": ["pause"]}) for kind in _KINDS]
    _apply(stack, *parts)
    wait_running(stack)


def dial_on(stack: Stack, node: str, target: str) -> None:
    """On that node a friend and a stranger dial the target from now on."""
    loop = {"command": ["sh", "-c", _LOOP, target]}
    for kind in _KINDS:
        pod = _pod(f"{kind}-dials", kind, loop)
        _apply(
            stack,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{kind}-dials", "namespace": NAMESPACE, **pod["metadata"]},
                "spec": {**pod["spec"], "nodeName": node},
            },
        )

    def silent() -> str:
        try:
            return "" if all(_lines(stack, kind) for kind in _KINDS) else "no line yet"
        except lab.LabError as error:  # no container yet
            return str(error)

    wait_for("both dial", silent, limit_s=60)


def begin(stack: Stack) -> None:
    """Servers, friends and strangers on every worker; friends alone pass; from worker-1 both dial from now on."""
    deploy(stack)
    deny_all(stack)
    allow_friends(stack)
    assert_hold(stack)
    dial_on(stack, "worker-1", SERVICE)


def assert_hold(stack: Stack) -> None:
    """From every worker friends pass everywhere, and strangers nowhere."""
    nodes = sorted(pods(stack, "server"))
    wait_for(
        "strangers do not pass", lambda: none_passes(answers(stack, "stranger", nodes)), limit_s=60
    )
    wait_for("friends pass", lambda: all_pass(answers(stack, "friend", nodes)), limit_s=60)


def assert_held(stack: Stack) -> None:
    """All the while no stranger was let in, and of a friend's connections at most one of a hundred failed."""
    passed, failed = dialled(stack, "friend")
    stack.measured(
        f"all the while: {passed} of {passed + failed} new connections of a friend to a Service"
    )
    assert dialled(stack, "stranger")[0] == 0, "a stranger was let in"
    assert failed * 100 <= passed, f"{failed} of a friend's connections failed, {passed} did not"


def deny_all(stack: Stack) -> None:
    _apply(stack, _DENY)


def allow_friends(stack: Stack) -> None:
    _apply(stack, _ALLOW)


def dialled(stack: Stack, kind: str) -> tuple[int, int]:
    """How often the one that dials all the time was let through, and how often it was not."""
    lines = _lines(stack, kind)
    passed = lines.count("passed")
    return passed, len(lines) - passed


def pods(stack: Stack, app: str) -> dict[str, tuple[str, str]]:
    """By node, name and address of a pod."""
    words = ("-n", NAMESPACE, "get", "pods", "-l", f"app={app}", "-o", "json")
    return {
        item["spec"]["nodeName"]: (item["metadata"]["name"], item["status"].get("podIP", ""))
        for item in json.loads(stack.kubectl(*words))["items"]
    }


def answers(stack: Stack, kind: str, nodes: Iterable[str]) -> dict[str, str]:
    """What a pod of that kind on each node gets of each server, of the Service and by its name: empty, TIMEOUT or more.

    By `node -> target`.
    """
    servers = {f"pod on {node}": f"{ip}:{_PORT}" for node, (_, ip) in pods(stack, "server").items()}
    words = ("-n", NAMESPACE, "get", "service", "server", "-o", "jsonpath={.spec.clusterIP}")
    targets = {**servers, "Service": f"{stack.kubectl(*words)}:{_PORT}", "name": SERVICE}
    clients = pods(stack, kind)
    ways = [(node, what) for node in sorted(nodes) for what in sorted(targets)]
    # Each that is not let through takes its time.
    with ThreadPoolExecutor(len(ways)) as pool:
        found = pool.map(lambda way: _dial(stack, clients[way[0]][0], targets[way[1]]), ways)
        return {
            f"{node} -> {what}": answer for (node, what), answer in zip(ways, found, strict=True)
        }


def all_pass(found: dict[str, str]) -> str:
    """What does not; empty: all do."""
    return ", ".join(f"{way}: {answer}" for way, answer in found.items() if answer)


def none_passes(found: dict[str, str]) -> str:
    """What is not a timeout; empty: all are."""
    return ", ".join(
        f"{way}: {answer or 'passed'}" for way, answer in found.items() if answer != "TIMEOUT"
    )


def wait_running(stack: Stack, *, limit_s: float = 120) -> None:
    def missing() -> str:
        path = '{range .items[*]}{.status.desiredNumberScheduled} {.status.numberReady}{"\\n"}{end}'
        words = ("-n", NAMESPACE, "get", "daemonsets", "-o", f"jsonpath={path}")
        rows = [row.split() for row in stack.kubectl(*words).splitlines()]
        fine = len(rows) == 1 + len(_KINDS) and all(
            len(set(row)) == 1 and row[0] != "0" for row in rows
        )
        return "" if fine else f"wanted and ready: {rows}"

    wait_for("pods that serve and dial", missing, limit_s=limit_s)


def _lines(stack: Stack, kind: str) -> list[str]:
    return stack.kubectl("-n", NAMESPACE, "logs", f"{kind}-dials").splitlines()


def _dial(stack: Stack, pod: str, target: str) -> str:
    command = ["/agnhost", "connect", target, "--timeout", f"{_DIAL_S}s"]
    try:
        stack.kubectl("-n", NAMESPACE, "exec", pod, "--", *command)
    except lab.LabError as error:
        text = str(error)
        return next((word for word in ("TIMEOUT", "REFUSED", "DNS") if word in text), text[-300:])
    return ""


def _apply(stack: Stack, *objects: object) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [*objects]}
    stack.kubectl("apply", "-f", "-", stdin=json.dumps(listed))


def _everywhere(name: str, kind: str, container: Mapping[str, object]) -> dict[str, object]:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": _pod(name, kind, container),
        },
    }


def _pod(name: str, kind: str, container: Mapping[str, object]) -> dict[str, dict[str, object]]:
    image = f"registry.k8s.io/e2e-test-images/agnhost:{versions.for_kubernetes(config.kubernetes()).agnhost}"
    return {
        "metadata": {"labels": {"app": name, "kind": kind}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": image, **container}],
        },
    }
