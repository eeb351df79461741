"""Machines that a test starts itself, to be adopted: the stack is told their addresses and host keys alone."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.harness import lab

# What a cluster must not leave behind. Packages and the machine's own files are its owner's.
LEFT = r"""
pgrep -lx 'etcd|kubelet|containerd|kube-apiserver|containerd-shim' || true
ls -d /etc/kubernetes /etc/kube-ha /etc/containerd /opt/cni/bin /usr/local/bin/kubelet \
  /etc/systemd/system/{etcd,kubelet,containerd}.service /home/admin/.kube-ha 2>/dev/null || true
find /var/lib/kube-ha /var/lib/kubelet /var/lib/containerd -mindepth 1 | head -n 5
ip -o link show | grep -E 'cni0|flannel' || true
nft list tables | grep -E 'kube-proxy|flannel' || true
grep -E ' /(var/lib/kubelet/|run/containerd)' /proc/mounts || true
"""


class Machines:
    """Network and mirror of a lab, and machines in it, with keys made by ssh-keygen."""

    def __init__(self, name: str, subnet: str, folder: Path) -> None:
        self.lab = name
        self._subnet = subnet
        self._folder = folder

    @property
    def user_key(self) -> Path:
        """Private key that every machine lets in."""
        return self._folder / "user"

    @property
    def mirror(self) -> str:
        return self.address(2)

    def address(self, number: int) -> str:
        return f"{self._subnet.rpartition('.')[0]}.{number}"

    def start_lab(self) -> None:
        """Network, mirror and the user's key."""
        self._folder.mkdir(parents=True, exist_ok=True)
        lab.machine_sh("lab-up", LAB=self.lab, SUBNET=self._subnet, BUNDLE=".local/bundle")
        _make_key(self.user_key)

    def start(self, name: str, number: int, *, generation: int = 1) -> dict[str, object]:
        """A machine at address `number` of the subnet; its entry for a pool's hosts.

        Another `generation` is another machine, in place of the one of that name.
        """
        host_key = self._folder / name
        _make_key(host_key)
        authorized = self.user_key.with_suffix(".pub").read_text().strip()
        lab.machine_sh(
            "up",
            stdin=f"HOST_KEY='{host_key.read_text()}'\nAUTHORIZED_KEY='{authorized}'\n",
            LAB=self.lab,
            MACHINE=name,
            ADDRESS=self.address(number),
            GENERATION=str(generation),
        )
        kind, key, *_ = host_key.with_suffix(".pub").read_text().split()
        return {"name": name, "address": self.address(number), "hostKey": f"{kind} {key}"}


def _make_key(file: Path) -> None:
    for old in (file, file.with_suffix(".pub")):
        old.unlink(missing_ok=True)
    lab.shell(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(file)])
