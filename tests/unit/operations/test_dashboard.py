"""The way to the pages of Prometheus: which server, what is said, and what is refused."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from operations import dashboard
from operations.engine.engine import StackError
from operations.engine.kubectl import Kubectl
from stacks.cluster.resolve import plan
from stacks.load import load
from tests.unit.configs import lab

# Pods as the API lists them; the way to the first one ends at once, that to the other one after a while.
KUBECTL = """\
#!{python}
import json, socket, sys, time
if "port-forward" not in sys.argv:
    names = {names!r}
    print(json.dumps({{"items": [{{"metadata": {{"name": name}}}} for name in names]}}))
elif "pod/prometheus-1" in sys.argv:
    with socket.create_server(("127.0.0.1", int(sys.argv[-1].split(":")[0]))):
        time.sleep(1)
    sys.exit("lost connection to pod")
else:
    sys.exit("error: unable to forward port because pod is not running")
"""


class EndedError(Exception):
    """In the place of Ctrl-C."""


def kubectl(folder: Path, *names: str) -> Kubectl:
    program = folder / "kubectl"
    program.write_text(KUBECTL.format(python=sys.executable, names=names))
    program.chmod(0o755)
    return Kubectl(program=program, kubeconfig=folder / "kubeconfig")


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def test_where_one_server_ends_the_other_one_is_taken(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def say(_who: str, text: str) -> None:
        told.append(text)
        if len(told) == 5:
            raise EndedError

    monkeypatch.setattr(dashboard, "say", say)
    with pytest.raises(EndedError):
        dashboard.hold(kubectl(tmp_path, "prometheus-1", "prometheus-0"), "dev", port, pause_s=0)
    assert told[0].startswith("the way to prometheus-0 ended: error: unable to forward port")
    assert (
        told[1] == f"http://127.0.0.1:{port}/consoles/cluster.html is the cluster, by prometheus-1"
    )
    assert told[4] == "the way to prometheus-1 ended: lost connection to pod"


@pytest.mark.parametrize("names", [(), ("prometheus-0",)])
def test_where_none_can_be_reached_it_ends_with_what_to_do(
    tmp_path: Path, port: int, names: tuple[str, ...]
) -> None:
    with pytest.raises(StackError, match="could be reached") as said:
        dashboard.hold(kubectl(tmp_path, *names), "dev", port, pause_s=0)
    assert "make status STACK=dev" in str(said.value)


def test_a_port_that_is_taken_is_nobodys_dashboard(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        with pytest.raises(StackError, match="PORT=<free port>"):
            dashboard.hold(kubectl(tmp_path, "prometheus-1"), "dev", port, pause_s=0)


def test_a_cluster_without_the_add_on_has_none() -> None:
    with pytest.raises(StackError, match="no add-on prometheus"):
        dashboard.see_addon(plan(load(lab())))
    dashboard.see_addon(plan(load(lab({"addons": {"prometheus": {}}}))))
