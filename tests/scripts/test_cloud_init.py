"""What machines in a cloud are told at boot: the disk is ours and mounted before anybody can log in."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from stacks.render import cloud_init
from tests.no_network import without_network

STUBS = {
    "ip": 'echo "ip $*" >>"$CALLS"',
    # A disk is a file here, with its label in the middle; BLKID is how the program ends where there is none.
    "blkid": """label=$(dd if="${@: -1}" bs=1M skip=2 count=1 2>/dev/null | tr -d '\\0')
if [[ $* == *LABEL* ]]; then printf '%s' "$label"; fi
if [[ -z $label ]]; then exit ${BLKID:-2}; fi""",
    "blockdev": 'stat -c %s "${@: -1}"',
    "mkfs.ext4": 'echo "mkfs $*" >>"$CALLS"; printf kube-ha | dd of="${@: -1}" bs=1M seek=2 conv=notrunc 2>/dev/null',
    "mount": 'echo "mount $*" >>"$CALLS"',
    "mountpoint": "exit ${MOUNTED:-1}",
    "sleep": "exit 0",
}


class Machine:
    """Files of a machine below a folder, and what its commands were called with."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, folder / "calls"
        self.disk, self.fstab = folder / "disk", folder / "fstab"
        self.at = folder / "kube-ha"
        self.fstab.touch()
        self.unit = folder / "etcd.service"
        (folder / "bin").mkdir()
        for name, body in STUBS.items():
            stub = folder / "bin" / name
            stub.write_text(f"#!/bin/bash\n{body}\n")
            stub.chmod(0o755)

    def boot(
        self, *, pod_metadata: bool = False, **values: str
    ) -> subprocess.CompletedProcess[str]:
        disks = ["/nowhere", str(self.disk)]
        made = yaml.safe_load(text(disks, pod_metadata=pod_metadata))
        ((shell, flag, script),) = made["bootcmd"]
        # Only paths of the test's own machine; a file stands for the block device.
        script = script.replace("/etc/fstab", str(self.fstab)).replace("-b $path", "-e $path")
        script = script.replace("/etc/systemd/system/etcd.service", str(self.unit))
        script = script.replace("AT=/var/lib/kube-ha", f"AT={self.at}")
        script = script.replace("SECONDS + 300", "SECONDS + 1")
        self.calls.write_text("")
        environment = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "CALLS": str(self.calls)}
        return subprocess.run(
            [shell, flag, script],
            env=environment | values,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def plug(self, label: str = "", *, at: int = 2 << 20) -> None:
        """A disk of 4 MiB, blank but for a label (or what else), at that place."""
        content = bytearray(4 << 20)
        content[at : at + len(label)] = label.encode()
        self.disk.write_bytes(content)

    def called(self, word: str) -> list[str]:
        return [line for line in self.calls.read_text().splitlines() if line.startswith(word)]


def text(disks: list[str] | None, *, pod_metadata: bool = False) -> str:
    return cloud_init.user_data(
        "master-1",
        host_key="-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
        host_key_public="ecdsa-sha2-nistp256 BBBB",
        authorized_key="ssh-ed25519 CCCC",
        disks=disks,
        pod_metadata=pod_metadata,
    )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_new_disk_is_made_ready_and_mounted_by_its_label(machine: Machine) -> None:
    machine.plug()
    done = machine.boot()
    assert done.returncode == 0, done.stderr
    assert machine.called("mkfs") == [f"mkfs -q -L kube-ha {machine.disk}"]
    assert machine.fstab.read_text() == f"LABEL=kube-ha {machine.at} ext4 noatime,nofail 0 2\n"
    assert machine.called("mount")[0] == f"mount -o noatime {machine.disk} {machine.at}"


def test_a_disk_that_is_kept_keeps_its_data_and_forgets_the_old_boot_disk(machine: Machine) -> None:
    machine.plug("kube-ha")
    state = machine.at / "state"
    state.mkdir(parents=True)
    for name in ("owner", "incarnation", "etcd.artefact", "etcd.service.sum", "etcd.files"):
        (state / name).touch()
    assert machine.boot().returncode == 0
    assert machine.called("mkfs") == []
    assert {path.name for path in state.iterdir()} == {"owner", "incarnation"}


def test_a_later_boot_changes_nothing(machine: Machine) -> None:
    machine.plug()
    machine.boot()
    marks = machine.at / "state"
    marks.mkdir(parents=True)
    (marks / "etcd.artefact").touch()
    before = machine.fstab.read_text()
    assert machine.boot(MOUNTED="0").returncode == 0
    assert (machine.called("mkfs"), machine.called("mount")) == ([], [])
    assert machine.fstab.read_text() == before
    assert (marks / "etcd.artefact").exists()


def test_a_disk_with_something_else_on_it_is_left_alone(machine: Machine) -> None:
    machine.plug("somebody")
    done = machine.boot()
    assert done.returncode == 1
    assert "holds something that is not ours" in done.stderr
    assert machine.called("mkfs") == []


def test_a_disk_that_does_not_come_is_waited_for_and_told(machine: Machine) -> None:
    done = machine.boot()
    assert done.returncode == 1
    assert "came within 300 s" in done.stderr


def test_pods_of_any_network_do_not_reach_the_metadata_service_and_the_machine_does() -> None:
    """By the kernel's own answers, after two boots: one interface leads to the provider, one to pods."""
    ((*script,),) = yaml.safe_load(text(disks=None))["bootcmd"]
    steps = f"""set -e
ip link add provider type veth peer name far
ip link add pods type bridge
for one in provider far pods; do ip link set "$one" up; done
ip address add 10.0.0.2/24 dev provider
ip address add 10.244.1.1/24 dev pods
ip route add default via 10.0.0.1
echo 1 >/proc/sys/net/ipv4/ip_forward
for boot in 1 2; do {shlex.join(script)}; done
asks() {{ if ip route get 169.254.169.254 "$@" >/dev/null 2>&1; then echo reached; else echo refused; fi; }}
asks ipproto tcp dport 80
asks ipproto tcp dport 80 from 10.0.0.2
asks ipproto tcp dport 80 from 10.244.1.7 iif pods
asks ipproto udp dport 53 from 10.244.1.7 iif pods
asks ipproto tcp dport 53 from 10.244.1.7 iif pods
ip -json -details rule show"""
    command = without_network(["bash", "-c", steps], {"PATH": os.environ["PATH"]})
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    *answers, rules = done.stdout.splitlines()
    assert answers == ["reached", "reached", "refused", "reached", "reached"]
    ours = [rule for rule in json.loads(rules) if rule.get("dst") == "169.254.169.254"]
    # systemd-networkd, whenever it starts, takes away rules of others but those of protocol kernel (systemd #19106).
    assert [rule["protocol"] for rule in ours] == ["kernel", "kernel"]


def test_pods_that_may_ask_the_metadata_service_meet_no_rule(machine: Machine) -> None:
    machine.plug()
    assert machine.boot(pod_metadata=True).returncode == 0
    assert machine.called("ip rule add") == []
    assert machine.called("mkfs") != []


def test_the_text_says_who_may_log_in_and_by_which_key_the_machine_is_known() -> None:
    made = yaml.safe_load(text(disks=None))
    assert text(disks=None).startswith("#cloud-config\n")
    assert made["ssh_keys"] == {
        "ecdsa_private": "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
        "ecdsa_public": "ecdsa-sha2-nistp256 BBBB",
    }
    (user,) = made["users"]
    assert (user["name"], user["ssh_authorized_keys"]) == ("ops", ["ssh-ed25519 CCCC"])
    assert (made["disable_root"], made["ssh_pwauth"], user["lock_passwd"]) == (True, False, True)
    paths = [file["path"] for file in made["write_files"]]
    assert paths == ["/etc/ssh/sshd_config.d/10-kube-ha.conf"]


def test_etcd_does_not_start_without_its_disk() -> None:
    (_, unit) = yaml.safe_load(text(disks=["/dev/sdb"]))["write_files"]
    assert unit["path"] == "/etc/systemd/system/etcd.service.d/10-disk.conf"
    assert unit["content"] == "[Unit]\nRequiresMountsFor=/var/lib/kube-ha\n"


@pytest.mark.parametrize("code", ["4", "8", "1"], ids=["unreadable", "ambivalent", "broken"])
def test_only_a_disk_that_says_to_be_empty_is_made_ready(machine: Machine, code: str) -> None:
    machine.plug()
    done = machine.boot(BLKID=code)
    assert done.returncode == 1
    assert f"blkid ends with {code}" in done.stderr
    assert machine.called("mkfs") == []


@pytest.mark.parametrize("at", [0, 1024, (1 << 20) - 4, (3 << 20) + 1, (4 << 20) - 4])
def test_a_disk_whose_signature_is_damaged_is_left_alone(machine: Machine, at: int) -> None:
    """What finds no file system finds none in a damaged one either."""
    machine.plug("data", at=at)
    machine.boot(BLKID="2")
    assert machine.called("mkfs") == []
    assert machine.called("mount") == []


@pytest.mark.parametrize("mark", ["fstab", "unit"])
def test_a_machine_that_has_had_its_disk_gets_no_other_one(machine: Machine, mark: str) -> None:
    """Its etcd would begin with nothing."""
    machine.plug()
    if mark == "fstab":
        machine.fstab.write_text(f"LABEL=kube-ha {machine.at} ext4 noatime,nofail 0 2\n")
    else:
        machine.unit.touch()
    done = machine.boot()
    assert done.returncode == 1
    assert "this machine has had its disk" in done.stderr
    assert (machine.called("mkfs"), machine.called("mount")) == ([], [])
