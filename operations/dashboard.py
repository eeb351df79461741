"""`python -m operations.dashboard STACK`: the cluster on one screen, until Ctrl-C.

Leads 127.0.0.1:9090 to a server of add-on prometheus, by `kubectl port-forward` and the rights of
the stack's administrator. Where that server ends, the other one is taken. A browser asks for a
name and a password: those of Secret kube-system/prometheus-access, which are not printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from components.ssh import tunnel
from operations.engine import kubectl as kubectls
from operations.engine import sealing, stack
from operations.engine.engine import StackError
from operations.engine.kubectl import Kubectl
from operations.holding import forwarded, say, until_ended
from stacks.catalogue import registry
from stacks.catalogue.prometheus import screen
from stacks.catalogue.prometheus.names import ACCESS, NAMESPACE, PORT, SERVER, USER
from stacks.cluster.plan import Plan
from stacks.providers.cloud import LOCAL

_WHO = "dashboard"
_ENTRY = "prometheus"
_PAUSE_S = 5  # before the other server is asked


def main(arguments: list[str]) -> int:
    """Hold the way; exit code 0 when a person ends it."""
    parser = argparse.ArgumentParser(
        prog="python -m operations.dashboard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as dev for Pulumi.dev.yaml")
    parser.add_argument("--port", type=int, default=PORT, help=f"on this computer ({PORT})")
    said = parser.parse_args(arguments)
    return until_ended(_WHO, lambda: _hold(said.stack, said.port))


def _hold(name: str, port: int) -> None:
    found = stack.read(name, applied=True, whole=False, connects=False)
    see_addon(found.plan)
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        kubeconfig = sealing.put(Path(folder) / "kubeconfig", found.kubeconfig.encode())
        hold(Kubectl(program=kubectls.program(), kubeconfig=kubeconfig), name, port)


def hold(kubectl: Kubectl, name: str, port: int, *, pause_s: float = _PAUSE_S) -> None:
    """Lead to one server after the other, without an end.

    Raises StackError where the port is taken, and where none of them could be reached at the first
    round.
    """
    if tunnel.listens(port):
        raise StackError(
            f"something listens at {LOCAL}:{port} already\n  do: end it, or say PORT=<free port>"
        )
    reached = False
    while True:
        pods = kubectl.items("pods", "--namespace", NAMESPACE, "--selector", f"app={SERVER}")
        names = sorted(str(_metadata(pod)["name"]) for pod in pods)
        for pod in names:
            was, words = forwarded(_forwarding(kubectl, pod, port), port, partial(_tell, pod, port))
            reached = reached or was
            say(_WHO, f"the way to {pod} ended: {words}")
            time.sleep(pause_s)
        if not reached:
            raise StackError(
                f"none of {', '.join(names) or 'its pods'} could be reached\n  do: make status "
                f"STACK={name}, then kubectl -n {NAMESPACE} describe pods -l app={SERVER}"
            )


def see_addon(plan: Plan) -> None:
    """Raises StackError where the config does not have the add-on."""
    if _ENTRY not in registry.chosen(plan.spec):
        raise StackError(
            f"the cluster has no add-on {_ENTRY}\n  do: add `{_ENTRY}: {{}}` to addons, and run up "
            "(docs/operate/metrics.md)"
        )


def _tell(pod: str, port: int) -> None:
    say(_WHO, f"http://{LOCAL}:{port}/consoles/{screen.NAME}.html is the cluster, by {pod}")
    shown = "-o jsonpath='{.data.password}' | base64 -d"
    say(_WHO, f"name {USER}; password: kubectl -n {NAMESPACE} get secret {ACCESS} {shown}")
    say(_WHO, "leave this running, end with Ctrl-C")


def _forwarding(kubectl: Kubectl, pod: str, port: int) -> Sequence[str]:
    own = [str(kubectl.program), "--kubeconfig", str(kubectl.kubeconfig)]
    return [*own, "--namespace", NAMESPACE, "port-forward", f"pod/{pod}", f"{port}:{PORT}"]


def _metadata(pod: dict[str, object]) -> dict[str, object]:
    found = pod["metadata"]
    return found if isinstance(found, dict) else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
