"""The scripts of flannel's pod: what a node's CNI config is made of, and when."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.render.examples import lab
from tests.unit.render.manifests import Yaml, at, data, flannel, pod_of


class Shell:
    """The scripts of flannel's pod, run with folders of the test in place of the node's."""

    def __init__(self, folder: Path, network: Mapping[str, object]) -> None:
        pod = pod_of(flannel(lab(network=network)))
        self._forget = at(pod, "initContainers", 0, "command", 2)
        self._run = at(pod, "containers", 0, "command", 2)
        self._flanneld = folder / "flanneld"
        self._flanneld.write_text("#!/bin/sh\nexec sleep 60\n")
        self._flanneld.chmod(0o755)
        self.run = folder / "run"
        self.cni = folder / "cni"
        self.called = folder / "called"
        self.run.mkdir()
        self.cni.mkdir()

    @property
    def conflist(self) -> Path:
        return self.cni / "10-kube-ha.conflist"

    def written(self) -> list[str]:
        return sorted(path.name for path in self.cni.iterdir())

    def forget(self) -> None:
        subprocess.run(self._command(self._forget), check=True, timeout=10)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        container = subprocess.Popen(self._command(self._run), start_new_session=True)
        try:
            yield container
        finally:
            os.killpg(container.pid, signal.SIGKILL)
            container.wait()

    def await_conflist(self) -> None:
        end = time.monotonic() + 10
        while not self.conflist.exists() and time.monotonic() < end:
            time.sleep(0.05)

    def flanneld_writes(self, subnet: str, *, mtu: int = 1450) -> None:
        new = self.run / ".subnet.env"
        new.write_text(
            f"FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET={subnet}\n"
            f"FLANNEL_MTU={mtu}\nFLANNEL_IPMASQ=true\n"
        )
        new.rename(self.run / "subnet.env")

    def _command(self, script: Yaml) -> list[str]:
        assert isinstance(script, str)
        busybox = shutil.which("busybox")
        shell = [busybox, "sh"] if busybox else ["sh"]
        text = script.replace("/run/flannel", str(self.run))
        text = text.replace("/opt/bin/flanneld", str(self._flanneld))
        text = text.replace("ip link set", f"echo >{self.called} ip link set")
        return [*shell, "-c", text.replace("/etc/cni/net.d", str(self.cni))]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, {})


@pytest.mark.parametrize(
    ("subnet", "network"),
    [("10.244.3.1/24", "10.244.3.0/24"), ("10.244.3.129/25", "10.244.3.128/25")],
)
def test_a_node_gets_its_cni_config_when_flanneld_has_its_lease(
    shell: Shell, subnet: str, network: str
) -> None:
    with shell.running() as container:
        time.sleep(0.6)  # longer than one turn of the loop that waits for the lease
        assert shell.written() == []
        shell.flanneld_writes(subnet)
        shell.await_conflist()
        assert container.poll() is None
    assert not shell.called.exists()
    assert shell.written() == ["10-kube-ha.conflist"]
    assert shell.conflist.stat().st_mode & 0o777 == 0o600
    bridge, portmap = json.loads(shell.conflist.read_text())["plugins"]
    assert bridge["ipam"]["ranges"] == [[{"subnet": network}]]
    assert bridge["mtu"] == 1450
    assert bridge["isDefaultGateway"] is True
    assert bridge["hairpinMode"] is True
    # flanneld masquerades; the bridge plugin would do so between nodes too.
    assert bridge["ipMasq"] is False
    assert portmap["type"] == "portmap"


def test_after_a_boot_no_pod_starts_before_flanneld(shell: Shell) -> None:
    shell.conflist.touch()
    shell.forget()
    assert not shell.conflist.exists()


def test_an_update_of_flannel_does_not_make_its_node_unready(shell: Shell) -> None:
    shell.conflist.touch()
    shell.flanneld_writes("10.244.3.1/24")
    shell.forget()
    assert shell.conflist.exists()
    assert not (shell.run / "subnet.env").exists()


@pytest.mark.parametrize(
    ("backend", "told", "called"),
    [
        # flanneld takes 50 bytes off for its headers.
        ("vxlan", {"Type": "vxlan", "MTU": 8950}, "ip link set dev flannel.1 mtu 8900\n"),
        ("host-gw", {"Type": "host-gw"}, None),
    ],
)
def test_pods_take_packets_of_the_size_that_is_wanted(
    tmp_path: Path, backend: str, told: Mapping[str, object], called: str | None
) -> None:
    network = {"mtu": 8900, "backend": backend}
    assert json.loads(data(flannel(lab(network=network)), "net-conf.json"))["Backend"] == told
    shell = Shell(tmp_path, network)
    with shell.running():
        # As flanneld says it: what it was told, less its headers; of host-gw the interface's own.
        shell.flanneld_writes("10.244.3.1/24", mtu=8900 if backend == "vxlan" else 1500)
        shell.await_conflist()
    assert json.loads(shell.conflist.read_text())["plugins"][0]["mtu"] == 8900
    assert (shell.called.read_text() if shell.called.exists() else None) == called
