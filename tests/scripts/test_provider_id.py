"""What a cloud knows a machine by: in the kubelet's flags before it starts, and on a Node that was there before."""

from __future__ import annotations

import pytest

from tests.scripts.node_api import NodeApi
from tests.scripts.shell import Shell

ID = "gce://my-project/europe-west3-a/prod-master-1"
FLAGS = f'KUBELET_CLOUD_ARGS="--cloud-provider=external --provider-id={ID}"\n'


def flags(shell: Shell, provider_id: str = "") -> str | None:
    """The file that the kubelet's unit reads; None: there is none."""
    values = {"PROVIDER_ID": provider_id} if provider_id else {}
    shell.run("cloud_args", phase="node", values=values)
    file = shell.root / "etc/kube-ha/kubelet.env"
    return file.read_text() if file.exists() else None


def test_the_kubelet_is_told_which_machine_it_runs_on(shell: Shell) -> None:
    assert flags(shell) is None
    assert flags(shell, ID) == FLAGS
    assert flags(shell, ID) == FLAGS
    assert flags(shell) is None


def told(api: NodeApi, provider_id: str = "", *, fails: bool = False) -> str:
    values = {"PROVIDER_ID": provider_id} if provider_id else {}
    return api.shell.run("tell_provider_id; finish", phase="identity", values=values, fails=fails)


def provider_id(api: NodeApi) -> object:
    spec = api._read("node.json")["spec"]
    assert isinstance(spec, dict)
    return spec.get("providerID")


@pytest.fixture
def api(shell: Shell) -> NodeApi:
    return NodeApi.of(shell)


def test_a_node_that_was_there_before_gets_it_once(api: NodeApi) -> None:
    assert "changes=1" in told(api, ID)
    assert provider_id(api) == ID
    assert "changes=0" in told(api, ID)


def test_without_a_controller_manager_nobody_asks(api: NodeApi) -> None:
    told(api)
    assert provider_id(api) is None
    assert api.shell.calls == []


def test_an_api_that_is_away_for_a_moment_is_waited_for(api: NodeApi) -> None:
    api.write("down", 3)
    told(api, ID)
    assert provider_id(api) == ID


def test_another_machine_under_the_nodes_name_is_an_error_with_the_way_out(api: NodeApi) -> None:
    told(api, ID)
    out = told(api, "aws:///eu-central-1a/i-0123456789abcdef0", fails=True)
    assert f"Node master-1 has provider ID {ID} and not aws:///eu-central-1a/i-0123" in out
    assert "do: raise nodes.master-1.generation" in out
    assert provider_id(api) == ID
