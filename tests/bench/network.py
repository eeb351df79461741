"""Throughput and latency between pods on two machines, of each pod network that runs here.

    python -m tests.bench.network [--seconds 5] [--rounds 5] [--only flannel-vxlan,...]

Beside each figure stands that of two processes of the same machines in the same round, node to
node: the same programs in the network of their machines. Machines are containers of this computer
and their network is a bridge of its kernel, so a figure tells what a pod network adds, and nothing
of a wire. One connection carries as much as it can (iperf3), then small requests follow each other
on new connections (curl). Let nothing else run on this computer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stacks.catalogue import toolbox
from stacks.releases import versions as lock
from tests.bench.create import machine, say
from tests.e2e.harness import config, versions
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-bench-network"  # a lab of tests: tests.run free removes what a killed run leaves
SUBNET = "10.93.146.0/24"
NAMESPACE = "bench"
NODE_TO_NODE = "node to node"
REQUESTS = 200  # of one round
# By the words of the output: section network of the config.
NETWORKS: Mapping[str, Mapping[str, object]] = {
    "flannel-vxlan": {"plugin": "flannel"},
    "flannel-host-gw": {"plugin": "flannel", "backend": "host-gw"},
    "cilium-vxlan": {"plugin": "cilium"},
    "cilium-native-without-kube-proxy": {
        "plugin": "cilium",
        "backend": "native",
        "kubeProxyReplacement": True,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """From a pod on one machine to what serves on another one."""

    what: str
    client: str
    host: str
    iperf_port: int
    http_port: int


@dataclass(frozen=True, slots=True)
class Measure:
    """Of one way in one round."""

    gbit_s: float
    request_ms: float  # median, a new connection each


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=5, help="of throughput, each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(NETWORKS))
    given = parser.parse_args()
    lines: list[str] = []
    for name in given.only.split(","):
        made = config.lab(NAME, SUBNET, masters=1, workers=2)
        made["network"] = dict(NETWORKS[name])
        with Stack("bench_network", versions.with_networks_and_tools(made, SUBNET)) as stack:
            stack.up()
            stack.settled()
            found = _measured(stack, given.rounds, given.seconds)
        lines += [f"{name}: {line}" for line in _lines(found)]
        say("\n  ".join(["so far", *lines]))
    print(f"\nMachine: {machine()}; {given.rounds} rounds of {given.seconds} s, medians")
    print("\n".join(f"  {line}" for line in lines))
    return 0


def _measured(stack: Stack, rounds: int, seconds: int) -> Mapping[str, Sequence[Measure]]:
    """By way. All ways are measured in turn in each round."""
    listed = {"apiVersion": "v1", "kind": "List", "items": [*_objects()]}
    stack.kubectl("apply", "-f", "-", stdin=json.dumps(listed))
    wait_for("pods that serve and ask", lambda: _missing(stack), limit_s=120)
    ways = _ways(stack)
    found: dict[str, list[Measure]] = {way.what: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            found[way.what].append(_measure(stack, way, seconds))
    return found


def _ways(stack: Stack) -> Sequence[Way]:
    path = "jsonpath={.status.podIP}"
    pod = stack.kubectl("-n", NAMESPACE, "get", "pod", "serves", "-o", path)
    path = "jsonpath={.spec.clusterIP}"
    service = stack.kubectl("-n", NAMESPACE, "get", "service", "serves", "-o", path)
    path = "jsonpath={.status.hostIP}"
    node = stack.kubectl("-n", NAMESPACE, "get", "pod", "serves", "-o", path)
    return (
        Way(what=NODE_TO_NODE, client="asks-of-node", host=node, iperf_port=5202, http_port=8082),
        Way(what="pod to pod", client="asks", host=pod, iperf_port=5201, http_port=8081),
        Way(what="pod to Service", client="asks", host=service, iperf_port=5201, http_port=8081),
    )


def _measure(stack: Stack, way: Way, seconds: int) -> Measure:
    said = _exec(
        stack, way, f"iperf3 -J -c {way.host} -p {way.iperf_port} -t {seconds}", seconds + 30
    )
    bits = json.loads(said)["end"]["sum_received"]["bits_per_second"]
    one = (
        f"curl -sf -o /dev/null -w '%{{time_total}}\\n' http://{way.host}:{way.http_port}/hostname"
    )
    said = _exec(stack, way, f"for n in $(seq {REQUESTS}); do {one}; done", 60)
    times = [float(line) for line in said.split()]
    assert len(times) == REQUESTS, said
    return Measure(gbit_s=bits / 1e9, request_ms=1000 * statistics.median(times))


def _exec(stack: Stack, way: Way, script: str, limit_s: float) -> str:
    words = ("-n", NAMESPACE, "exec", way.client, "--", "bash", "-ec", script)
    return stack.kubectl("--request-timeout", "0", *words, limit_s=limit_s)


def _lines(found: Mapping[str, Sequence[Measure]]) -> Iterator[str]:
    base = found[NODE_TO_NODE]
    for what, measures in found.items():
        throughput = statistics.median(one.gbit_s for one in measures)
        latency = statistics.median(one.request_ms for one in measures)
        line = f"{what:<14} {throughput:6.2f} Gbit/s, {latency:6.3f} ms a request"
        if what != NODE_TO_NODE:
            pairs = list(zip(measures, base, strict=True))
            more = statistics.median(one.gbit_s / node.gbit_s for one, node in pairs)
            longer = statistics.median(one.request_ms / node.request_ms for one, node in pairs)
            line += f"; {more:.2f} and {longer:.2f} of node to node"
        yield line


def _missing(stack: Stack) -> str:
    path = '{range .items[*]}{.metadata.name}={.status.phase}{"\\n"}{end}'
    rows = stack.kubectl("-n", NAMESPACE, "get", "pods", "-o", f"jsonpath={path}").split()
    phases = dict(row.split("=") for row in rows)
    late = {name: phase for name, phase in phases.items() if phase != "Running"}
    return str(late) if late or len(phases) != 4 else ""


def _objects() -> Iterator[Mapping[str, object]]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "serves", "namespace": NAMESPACE},
        "spec": {
            "selector": {"app": "serves"},
            "ports": [{"name": "iperf", "port": 5201}, {"name": "http", "port": 8081}],
        },
    }
    yield _pod("asks", "worker-1", (_tool("sleep infinity"),))
    yield _pod("asks-of-node", "worker-1", (_tool("sleep infinity"),), of_node=True)
    yield _pod("serves", "worker-2", (_tool("iperf3 -s -p 5201"), _web(8081)))
    servers = (_tool("iperf3 -s -p 5202"), _web(8082))
    yield _pod("serves-of-node", "worker-2", servers, of_node=True)


def _pod(
    name: str, node: str, containers: Sequence[Mapping[str, object]], *, of_node: bool = False
) -> Mapping[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {
            "nodeName": node,
            "hostNetwork": of_node,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": list(containers),
        },
    }


def _tool(command: str) -> Mapping[str, object]:
    image = toolbox.image(lock.for_kubernetes(config.kubernetes()))
    return {"name": "tool", "image": image, "command": ["bash", "-c", f"exec {command}"]}


def _web(port: int) -> Mapping[str, object]:
    agnhost = lock.for_kubernetes(config.kubernetes()).agnhost
    image = f"registry.k8s.io/e2e-test-images/agnhost:{agnhost}"
    return {
        "name": "web",
        "image": image,
        "args": ["netexec", f"--http-port={port}", "--udp-port=-1"],
    }


if __name__ == "__main__":
    sys.exit(main())
