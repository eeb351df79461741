"""`python -m operations.debug STACK`: tools for finding faults, on a node or beside a pod.

NODE: a privileged pod with the host's network and processes, its disk at /host. Where no pod can
begin there (dead kubelet, no API), the same image over SSH. POD: a container in its namespaces.
Either ends with what runs in it, within a minute after this program was killed or cut off, and at
the limit. Exit code: that of the command; 1 where none began, 124 at the limit, 255 without SSH.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from operations.debug import by_api, by_ssh, wanted
from operations.debug.by_api import NoKubeletError
from operations.debug.wanted import Wanted
from operations.engine import sealing, stack
from operations.engine.engine import StackError
from operations.engine.kubectl import Kubectl, programs_of
from operations.engine.stack import Stack
from stacks.catalogue import toolbox
from stacks.cluster.plan import Node


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = wanted.parser()
    parser.description = __doc__
    given = parser.parse_args(arguments)
    try:
        asked = wanted.of(given)
        return debug(given.stack, asked)
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def debug(name: str, asked: Wanted) -> int:
    """Raises StackError."""
    found = stack.read(name, applied=False, whole=False, connects=asked.way == "ssh")
    image = asked.image or toolbox.image(found.plan.versions)
    if not asked.node:
        with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
            return by_api.in_pod(_kubectl(found, Path(folder)), asked, image)
    found.target(asked.node)  # a node of the stack, before anything is asked of the cluster
    node = found.plan.node(asked.node)
    why = _no_pod(found, node) if asked.way != "ssh" else ""
    if asked.way != "ssh" and not why:
        try:
            with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
                return by_api.on_node(_kubectl(found, Path(folder)), node, asked, image)
        except NoKubeletError as error:
            why = str(error)
    if asked.way == "pod":
        raise StackError(f"{node.name}: {why}\n  do: without VIA=pod it goes over SSH then")
    if asked.way == "auto":
        sys.stderr.write(f"{node.name}: {why}; over SSH\n")
        found = stack.read(name, applied=False, whole=False)  # by its tunnel, where it has one
    return by_ssh.on_node(found.target(node.name), node, asked, image)


def _no_pod(found: Stack, node: Node) -> str:
    """Why there can be no pod, as far as it is known without asking; empty: there may be one."""
    if not node.in_kubernetes:
        return "it is not a node of Kubernetes"
    return "" if found.kubeconfig else "the stack has no kubeconfig yet"


def _kubectl(found: Stack, folder: Path) -> Kubectl:
    if not found.kubeconfig:
        raise StackError("the stack has no kubeconfig yet\n  do: make up; NODE= goes over SSH")
    kubeconfig = sealing.put(folder / "kubeconfig", found.kubeconfig.encode())
    program = programs_of(found.plan.spec.cluster.kubernetes, ("kubectl",))["kubectl"]
    return Kubectl(program=program, kubeconfig=kubeconfig)


if __name__ == "__main__":
    # The end of a terminal or of a job in CI: what was begun is ended in order.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
