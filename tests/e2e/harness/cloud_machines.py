"""Machines that boot by cloud-init, with the exact user data that a cloud would hand them (NoCloud source)."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from components.machines import host_keys
from stacks.render import cloud_init
from tests.e2e.harness import lab
from tests.e2e.harness.lab import shell

IMAGE = "localhost/kube-ha-lab-cloud"
SEED = "/var/lib/cloud/seed/nocloud"
# Where Google shows the disk that the program attaches as kube-ha.
DISK = "/dev/disk/by-id/google-kube-ha"

# The lab's image as a cloud's: no keys of the lab, no user of the lab, cloud-init from the distribution.
_INSTALL = """
set -e
apt-get -q update
DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends cloud-init e2fsprogs fdisk
printf 'network: {config: disabled}\n' >/etc/cloud/cloud.cfg.d/99-network.cfg
printf 'locale: false\n' >/etc/cloud/cloud.cfg.d/99-locale.cfg # the lab's image has none
printf 'datasource_list: [NoCloud, None]\n' >/etc/cloud/cloud.cfg.d/99-source.cfg
rm -f /etc/ssh/sshd_config.d/lab.conf /etc/ssh/ssh_host_* /etc/ssh/lab_authorized_keys
userdel --remove admin
rm -f /etc/sudoers.d/admin
apt-get clean
mkdir -p /var/lib/cloud/seed
"""


def make_image() -> None:
    """The image, unless there is one of this lab image already."""
    base = lab.engine(
        "image", "inspect", "--format", "{{.Id}}", "localhost/kube-ha-lab:current"
    ).strip()[:12]
    name = f"{IMAGE}:{base}-{hashlib.sha256(_INSTALL.encode()).hexdigest()[:8]}"
    known = lab.engine("images", "--format", "{{.Repository}}:{{.Tag}}", IMAGE).split()
    if name in known:
        return
    builder = "kube-ha-cloud-image"
    lab.engine("rm", "--force", "--ignore", builder)
    words = ["run", "--name", builder, "--network", "host", "--runtime", "runc"]
    words += ["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=32768:32768"]
    # The computer's own mirrors and proxies.
    words += ["--volume", "/etc/apt:/etc/apt:ro", *_proxies()]
    lab.engine(*words, "localhost/kube-ha-lab:current", "bash", "-c", _INSTALL, timeout_s=400)
    lab.engine("commit", "--quiet", builder, name)
    lab.engine("tag", name, f"{IMAGE}:current")
    lab.engine("rm", "--force", builder)
    for old in known:
        if old != f"{IMAGE}:current":
            lab.engine("rmi", "--force", old)


def _proxies() -> list[str]:
    names = [
        name for name in os.environ if name.lower() in ("http_proxy", "https_proxy", "no_proxy")
    ]
    return [word for name in names for word in ("--env", name)]


class CloudMachine:
    """One machine of a lab, known by a host key that was there before it."""

    def __init__(self, lab_name: str, name: str, address: str, authorized_key: str) -> None:
        self.name, self.address = name, address
        self.container = f"kube-ha-{lab_name}-{name}"
        self._lab, self._user_key = lab_name, authorized_key
        self._host_key = host_keys.private(f"seed of {lab_name}", name)
        self._loop = ""

    @property
    def entry(self) -> dict[str, object]:
        """Its entry for a pool's hosts."""
        key = host_keys.public(self._host_key)
        return {"name": self.name, "address": self.address, "hostKey": key}

    def user_data(self, *, disk: bool) -> str:
        """The very text that the program hands to the provider."""
        return cloud_init.user_data(
            self.name,
            host_key=self._host_key,
            host_key_public=host_keys.public(self._host_key),
            authorized_key=self._user_key,
            disks=[DISK] if disk else None,
        )

    def start(self, *, disk: Path | None) -> None:
        """Boot it for the first time; `disk` is the file behind the disk of its own."""
        volume = "/var/lib/kube-ha"
        if disk is not None:
            self._loop = shell(["losetup", "--find", "--show", str(disk)]).strip()
            volume = f"{self._loop}:{DISK}"
        # As lab/machine.sh makes a machine, less its keys; it is freed with the lab by these labels.
        lab.engine(
            *("create", "--name", self.container, "--hostname", "localhost"),
            *("--network", f"kube-ha-{self._lab}", "--ip", self.address),
            *("--label", f"kube-ha.lab={self._lab}", "--label", f"kube-ha.checkout={lab.ROOT}"),
            *("--label", f"kube-ha.machine={self.name}"),
            *("--label", f"kube-ha.made-from=1 {self.address}"),
            *("--runtime", "runc", "--systemd=false", "--privileged", "--cgroupns", "private"),
            *("--ulimit", "nofile=20000:20000", "--ulimit", "nproc=32768:32768"),
            *("--pids-limit", "-1", "--stop-signal", "SIGRTMIN+3", "--env", "container=podman"),
            *("--volume", "/var/lib/containerd", "--volume", "/var/lib/kubelet"),
            *("--volume", volume, "--tmpfs", "/run:exec,mode=755", "--tmpfs", "/run/lock"),
            *("--tmpfs", "/tmp:exec,mode=1777"),  # noqa: S108 (of the machine)
            *(f"{IMAGE}:current", "/sbin/init"),
        )
        self._seed(self.user_data(disk=disk is not None))
        lab.engine("start", self.container)

    def _seed(self, text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            seed = Path(folder) / "nocloud"
            seed.mkdir()
            (seed / "user-data").write_text(text)
            (seed / "meta-data").write_text(f"instance-id: {self.container}\n")
            shell([*lab.engine_command("cp", str(seed), f"{self.container}:/var/lib/cloud/seed/")])

    def free(self) -> None:
        """Take its disk away, after the lab is gone."""
        if self._loop:
            shell(["losetup", "--detach", self._loop])
