"""`make tunnel`: it waits, points to the bastion, begins again, and ends with all that it started."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components.ssh import tunnel as near_end
from components.ssh.hop import Hop
from operations import tunnel
from operations.engine import stack
from operations.engine.engine import StackError
from operations.ssh.client import Target
from stacks.providers.provider import Way
from tests.toolchain.sshd import free_port
from tests.unit.configs import aws, behind_tunnel, gcp, host_key, planned

ROOT = Path(__file__).parents[2]
INSTANCE = "i-0123456789abcdef0"
ZONE = "https://www.googleapis.com/compute/v1/projects/my-project/zones/europe-west3-b"
FOUND = {"gcp": json.dumps([{"zone": ZONE}]), "aws": json.dumps([INSTANCE])}
PROGRAMS = {"gcp": ["gcloud"], "aws": ["aws", "session-manager-plugin"]}
# Stands for gcloud and aws: keeps its arguments; says of the bastion what is in `found`, or fails with what lies
# in `refused`; as a tunnel it listens, by a child of its own as aws does, until it is ended or `cut` is there.
CLOUD = """#!/bin/bash
echo "${0##*/} $*" >>"$HERE/calls"
case $* in
*start-iap-tunnel* | *start-session*)
  python3 "$HERE/listen.py" "$PORT" &
  until [[ -e $HERE/cut ]]; do sleep 0.05; done
  rm "$HERE/cut"; kill $!; wait; exit 3 ;;
*)
  [[ ! -e $HERE/refused ]] || { cat "$HERE/refused" >&2; exit 1; }
  cat "$HERE/found" ;;
esac
"""
LISTEN = """import socket, sys, time
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
time.sleep(60)
"""


class Cloud:
    """A computer with a cloud's commands, and a stack file whose machines are behind a tunnel."""

    def __init__(self, folder: Path, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.provider, self.port = folder, provider, free_port()
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name in PROGRAMS[provider]:
            program = self.programs / name
            program.write_text(CLOUD)
            program.chmod(0o755)
        (folder / "listen.py").write_text(LISTEN)
        (folder / "calls").touch()
        config = {"gcp": gcp, "aws": aws}[provider]
        port = {f"machines.{provider}.tunnelPort": self.port}
        self.raw = config({**behind_tunnel(provider), **port})
        keys = {f"kube-ha:{key}": value for key, value in self.raw.items()}
        (folder / "Pulumi.prod.yaml").write_text(json.dumps({"config": keys}))
        monkeypatch.setenv("PATH", f"{self.programs}:{os.environ['PATH']}")
        monkeypatch.setenv("HERE", str(folder))
        monkeypatch.setenv("PORT", str(self.port))
        monkeypatch.chdir(folder)

    def says(self, found: str) -> None:
        (self.folder / "found").write_text(found)

    def calls(self, word: str) -> list[str]:
        lines = (self.folder / "calls").read_text().splitlines()
        return [line for line in lines if word in line]

    def way(self) -> Way:
        found = tunnel.way(planned(self.raw))
        assert found
        return found


@pytest.fixture(params=["gcp", "aws"])
def cloud(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    return Cloud(tmp_path, request.param, monkeypatch)


class Running:
    """The operation as a process, with what it says."""

    def __init__(self, cloud: Cloud) -> None:
        self.log = cloud.folder / "log"
        code = (
            "import sys; from operations import tunnel; "
            "tunnel.hold.__kwdefaults__['pause_s'] = 0.1; sys.exit(tunnel.main(['prod']))"
        )
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def said(self) -> str:
        return self.log.read_text()


@pytest.fixture
def held(cloud: Cloud) -> Iterator[Callable[[], Running]]:
    started: list[Running] = []

    def start() -> Running:
        started.append(Running(cloud))
        return started[-1]

    yield start
    for one in started:
        one.process.send_signal(signal.SIGTERM)
        one.process.wait(30)


def wait(fact: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 30
    while not fact():
        assert time.monotonic() < end, f"not seen in 30 s: {what}"
        time.sleep(0.05)


def test_it_waits_for_the_bastion_and_then_leads_to_it(
    cloud: Cloud, held: Callable[[], Running]
) -> None:
    cloud.says("[]")
    running = held()
    wait(lambda: len(cloud.calls("prod-tunnel")) > 2, "three looks")
    assert running.said().count("waiting for prod-tunnel, which is not there yet") == 1
    assert not cloud.calls("start-")
    cloud.says(FOUND[cloud.provider])
    wait(lambda: near_end.listens(cloud.port), "the tunnel")
    (leads,) = cloud.calls("start-")
    if cloud.provider == "gcp":
        assert leads == (
            "gcloud compute start-iap-tunnel prod-tunnel 22 --project=my-project --quiet "
            f"--local-host-port=127.0.0.1:{cloud.port} --zone=europe-west3-b"
        )
    else:
        assert leads == (
            "aws ssm start-session --region=eu-central-1 "
            "--document-name=AWS-StartPortForwardingSession "
            f"--parameters=portNumber=22,localPortNumber={cloud.port} --target={INSTANCE}"
        )
    assert f"127.0.0.1:{cloud.port} points to prod-tunnel" in running.said()


def test_the_bastion_is_looked_for_by_its_name_its_cluster_and_that_it_runs(cloud: Cloud) -> None:
    found = " ".join(cloud.way().find)
    words = {
        "gcp": ["name=prod-tunnel", "labels.kube-ha-cluster=prod", "status=RUNNING", "my-project"],
        "aws": ["Name=tag:Name,Values=prod-tunnel", "Name=tag:kube-ha-cluster,Values=prod",
                "Name=instance-state-name,Values=running", "--region=eu-central-1"],
    }  # fmt: skip
    assert not [word for word in words[cloud.provider] if word not in found]


def test_a_tunnel_that_ends_begins_again(cloud: Cloud, held: Callable[[], Running]) -> None:
    cloud.says(FOUND[cloud.provider])
    running = held()
    wait(lambda: near_end.listens(cloud.port), "the tunnel")
    (cloud.folder / "cut").touch()
    wait(lambda: len(cloud.calls("start-")) == 2, "the second tunnel")
    wait(lambda: near_end.listens(cloud.port), "the second tunnel's port")
    assert f"{PROGRAMS[cloud.provider][0]} ended (exit code 3)" in running.said()
    # The bastion was looked for again: it may be another machine by now.
    assert len(cloud.calls("prod-tunnel")) >= 2


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_everything_that_it_started(
    cloud: Cloud, held: Callable[[], Running], how: signal.Signals
) -> None:
    cloud.says(FOUND[cloud.provider])
    running = held()
    wait(lambda: near_end.listens(cloud.port), "the tunnel")
    running.process.send_signal(how)
    assert running.process.wait(30) == 0
    assert not near_end.listens(cloud.port)
    assert running.said().endswith("tunnel    ended\n")


def test_a_cloud_that_knows_nobody_ends_it_at_once(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    (cloud.folder / "refused").write_text("ERROR: Reauthentication required.\n")
    assert tunnel.main(["prod"]) == 1
    said = capsys.readouterr().err
    assert "cannot find prod-tunnel: ERROR: Reauthentication required.\n  do: " in said
    assert {"gcp": "gcloud auth login", "aws": "aws sso login"}[cloud.provider] in said


def test_a_failure_later_on_is_said_and_passes(cloud: Cloud, held: Callable[[], Running]) -> None:
    cloud.says("[]")
    running = held()
    wait(lambda: "waiting for" in running.said(), "the first look")
    (cloud.folder / "refused").write_text("connection reset\n")
    wait(lambda: "cannot be looked for: connection reset" in running.said(), "the failure")
    cloud.says(FOUND[cloud.provider])
    (cloud.folder / "refused").unlink()
    wait(lambda: near_end.listens(cloud.port), "the tunnel")


def test_what_is_not_installed_is_named_with_where_to_get_it(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(cloud.programs))
    for name in PROGRAMS[cloud.provider]:
        (cloud.programs / name).rename(cloud.folder / name)
        with pytest.raises(StackError, match=f"there is no {name} on this computer\n.*https://"):
            tunnel.hold(cloud.way())
        (cloud.folder / name).rename(cloud.programs / name)


def test_a_port_that_is_taken_is_told(cloud: Cloud) -> None:

    with (
        socket.create_server(("127.0.0.1", cloud.port)),
        pytest.raises(StackError, match=f"listens at 127.0.0.1:{cloud.port} already"),
    ):
        tunnel.hold(cloud.way())
    assert not cloud.calls("")


def test_two_bastions_are_told(cloud: Cloud) -> None:
    twice = {"gcp": [{"zone": ZONE}] * 2, "aws": [INSTANCE, "i-0fedcba9876543210"]}
    cloud.says(json.dumps(twice[cloud.provider]))
    with pytest.raises(StackError, match="prod-tunnel is there 2 times"):
        tunnel.hold(cloud.way())


def test_a_stack_without_a_tunnel_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {f"kube-ha:{key}": value for key, value in gcp().items()}
    (tmp_path / "Pulumi.prod.yaml").write_text(json.dumps({"config": keys}))
    monkeypatch.chdir(tmp_path)
    assert tunnel.main(["prod"]) == 1
    assert "no tunnel reaches the machines of Pulumi.prod.yaml" in capsys.readouterr().err


def test_operations_say_that_the_tunnel_is_missing_before_they_ask_machines(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    hop = {"host": "10.20.0.11", "user": "ops", "privateKey": "key", "hostKey": host_key(1)}
    jump = {**hop, "host": "127.0.0.1", "port": cloud.port, "hostKey": host_key(2)}
    names = [node.name for node in planned(cloud.raw).nodes]
    outputs = {"clusterId": "0123456789ab", "ssh": {name: {**hop, "bastion": jump} for name in names}}  # fmt: skip
    program = cloud.programs / "pulumi"
    program.write_text(f"#!/bin/bash\ncat <<'EOF'\n{json.dumps(outputs)}\nEOF\n")
    program.chmod(0o755)
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file://state")
    with pytest.raises(StackError) as raised:
        stack.read("prod", applied=True)
    assert str(raised.value) == (
        f"nothing listens at 127.0.0.1:{cloud.port}, through which machines are reached\n"
        "  do: make tunnel STACK=prod, in another terminal, and leave it running"
    )
    # Who only reads what the stack knows needs none.
    assert len(stack.read("prod", applied=True, connects=False).targets) == 5

    with socket.create_server(("127.0.0.1", cloud.port)):
        target = stack.read("prod", applied=True).targets["master-1"]
    near = Hop(address="127.0.0.1", port=cloud.port, user="ops", host_key=host_key(2), key="key")
    far = Hop(address="10.20.0.11", port=22, user="ops", host_key=host_key(1), key="key")
    assert target == Target(hop=far, bastion=near)
