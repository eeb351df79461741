"""Story: machines boot with the user data that clouds hand them, and a cluster is made of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from ipaddress import ip_interface
from pathlib import Path

import pytest

from tests.e2e.harness import cloud_machines, config, lab
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.cloud_machines import CloudMachine
from tests.e2e.harness.machines import Machines
from tests.e2e.harness.stack import Stack

LAB = "test-cloud-init"


class Cloud:
    """A lab whose machines boot by cloud-init: one with a disk of its own, one without."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ground = Machines(LAB, "10.93.66.0/24", folder)
        self.started = 0.0
        self.disk = folder / "disk"
        self.machines: dict[str, CloudMachine] = {}

    def start(self) -> None:
        cloud_machines.make_image()
        self.ground.start_lab()
        key = self.ground.user_key.with_suffix(".pub").read_text().strip()
        lab.shell(["truncate", "--size", "2G", str(self.disk)])
        self.started = time.monotonic()
        for name, number, disk in (("master-1", 11, self.disk), ("worker-1", 101, None)):
            machine = CloudMachine(LAB, name, self.ground.address(number), key)
            self.machines[name] = machine
            machine.start(disk=disk)

    def free(self) -> None:
        lab.free(LAB)
        for machine in self.machines.values():
            machine.free()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    made = Cloud(Path(tmp_path_factory.mktemp("cloud")))
    lab.free(LAB)
    try:
        yield made
    finally:
        made.free()


@pytest.fixture(scope="module")
def stack(cloud: Cloud) -> Iterator[Stack]:
    empty = config.adopted(LAB, cloud.ground.mirror, cloud.ground.user_key, {})
    with Stack("cloud_init", empty) as stack:
        cloud.start()
        hosts = {pool: [cloud.machines[f"{pool}-1"].entry] for pool in ("master", "worker")}
        stack.config = config.adopted(LAB, cloud.ground.mirror, cloud.ground.user_key, hosts)
        machines = stack.config["machines"]
        machines["ssh"] = {"user": "ops", "privateKeyFile": str(cloud.ground.user_key)}
        stack.write()
        yield stack


def test_the_first_up_finds_the_keys_it_knows_and_makes_a_cluster(
    stack: Stack, cloud: Cloud
) -> None:
    """No wait before: the first connection is tried while the machines boot."""
    update = stack.up()
    stack.took("up of 1 master and 1 worker that booted by cloud-init", update.seconds)
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=10)


def test_cloud_init_came_to_its_end_without_a_complaint(stack: Stack, cloud: Cloud) -> None:
    for node in stack.nodes():
        said = node.run("cloud-init status --wait --long || true; cat /run/cloud-init/result.json")
        assert "status: done" in said, said
        assert '"errors": []' in said, said
        assert "DataSourceNoCloud" in said, said


def test_etcd_lies_on_the_disk_of_its_own_known_by_its_label(stack: Stack, cloud: Cloud) -> None:
    master, worker = stack.node("master-1"), stack.node("worker-1")
    source = master.run("findmnt -no SOURCE,FSTYPE --target /var/lib/kube-ha/etcd").split()
    assert source == [cloud_machines.DISK, "ext4"]
    label = lab.shell(["blkid", "-p", "-o", "value", "-s", "LABEL", str(cloud.disk)]).strip()
    assert label == "kube-ha"
    assert "LABEL=kube-ha /var/lib/kube-ha ext4" in master.run("cat /etc/fstab")
    assert "RequiresMountsFor" in master.run("systemctl cat etcd.service")
    assert "LABEL=kube-ha" not in worker.run("cat /etc/fstab")


def test_nobody_else_gets_in_and_pods_do_not_reach_the_metadata(stack: Stack) -> None:
    for node in stack.nodes():
        settings = node.run("sshd -T")
        assert "\npasswordauthentication no\n" in settings
        assert "\nhostkey /etc/ssh/ssh_host_ecdsa_key\n" in settings
        assert node.run("ls /etc/ssh/ssh_host_*_key").split() == ["/etc/ssh/ssh_host_ecdsa_key"]
        # The kernel's own answers, for a packet of its own and for one that comes from a pod.
        asks = "ip route get 169.254.169.254 ipproto tcp dport 80"
        assert "dev eth0" in node.run(asks)
        (bridge,) = json.loads(node.run("ip -4 -json address show cni0"))
        ours = ip_interface(f"{bridge['addr_info'][0]['local']}/24").network
        pod = f"from {ours[200]} iif cni0"
        assert "Permission denied" in node.run(f"{asks} {pod} 2>&1 || true")


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)
