"""A machine of kube-ha as a tree of files and a list of what runs, for phases that take both away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.scripts.shell import OWNER, Shell

WHOLE_KUBECONFIG = "users:\n- name: x\n  user:\n    client-certificate: c\n    client-key: k\n"
WHOLE_CERTIFICATE = (
    "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
    "-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\n"
)
RUNNING = ("kubelet", "etcd", "haproxy", "containerd", "containerd-shim")
_FILES = (
    *(f"etc/kubernetes/{name}.conf" for name in ("admin", "super-admin", "scheduler")),
    *("etc/kubernetes/pki/ca.key", "etc/kubernetes/manifests/kube-apiserver.yaml"),
    *("etc/kube-ha/etcd/server.key", "etc/kube-ha/ca.crt", "etc/cni/net.d/10-kube-ha.conflist"),
    *("etc/systemd/system/etcd.service", "etc/systemd/system/kubelet.service.d/10-kubeadm.conf"),
    *("usr/local/bin/kubelet", "usr/local/bin/etcd", "usr/local/bin/somebody-elses"),
    *("usr/local/lib/kube-ha/leave", "run/cni/kube-ha/10.244.1.7", "run/flannel/subnet.env"),
    *("var/lib/calico/nodename", "var/log/calico/cni/cni.log", "etc/cni/net.d/calico-kubeconfig"),
    *("var/lib/kubelet/config.yaml", "var/lib/kubelet/pods/1/volumes/data"),
    *("var/lib/kubelet/pki/kubelet-client-2026-01-01.pem", "var/lib/containerd/meta.db"),
    *("var/log/kubernetes/audit.log", "etc/sysctl.d/90-kube-ha.conf", "etc/hosts"),
)
_STATE = ("containerd.artefact", "master.sum", "etcd.service.sum", "applied", "runtime-proof")


@dataclass(frozen=True, slots=True)
class Machine:
    shell: Shell

    @property
    def running(self) -> set[str]:
        return {file.name for file in (self.shell.folder / "running").iterdir()}

    @property
    def files(self) -> set[str]:
        """Files below / and of our own folder (`home/`)."""
        folders = [self.shell.root, self.shell.folder / "home"]
        found = (file for folder in folders for file in folder.rglob("*") if not file.is_dir())
        return {str(file.relative_to(self.shell.folder)) for file in found}

    @property
    def ours(self) -> set[str]:
        """All files but those of others."""
        return self.files - {"root/etc/hosts", "root/usr/local/bin/somebody-elses"}

    def make(self, *, running: Iterable[str] = RUNNING, owner: str = OWNER) -> None:
        """A master that serves, with its etcd member."""
        for path in _FILES:
            _write(self.shell.root / path, "x")
        _write(self.shell.root / "etc/haproxy/haproxy.cfg", "backend kubernetes-api\n")
        _write(self.shell.root / "etc/kubernetes/kubelet.conf", WHOLE_KUBECONFIG)
        _write(self.shell.identity, WHOLE_CERTIFICATE)
        _write(self.shell.folder / "home/etcd/member/wal/0.wal", "x")
        for name in _STATE:
            _write(self.shell.state / name, "x")
        if owner:
            _write(self.shell.state / "owner", f"{owner}\n")
        for name in running:
            _write(self.shell.folder / f"running/{name}", "")
        self.stub()

    def stub(self, *, cut_off_at: int = 0) -> None:
        """Commands as they act on this machine. The `cut_off_at`th call of any kills all of the run."""
        counted = (
            f'(($(wc -l <"{self.shell.folder}/calls") == {cut_off_at})) && kill -9 $MAIN $PPID\n'
        )
        running = f'"{self.shell.folder}/running"'
        bodies = {
            "systemctl": f'if [[ $1 == disable ]]; then rm -f {running}/"${{@: -1}}"; fi',
            "pkill": f"rm -f {running}/containerd-shim",
            "pgrep": f'ls {running} | grep -Ex -- "$2"',
            **dict.fromkeys(("ss", "ip", "nft", "iptables-save", "ip6tables-save", "umount")),
            **dict.fromkeys(("iptables-restore", "ip6tables-restore")),
            "etcdctl": "exit 1",
            "rm": '/bin/rm "$@"',
            "find": '/usr/bin/find "$@"',
            "mv": '/bin/mv "$@"',
        }
        for name, body in bodies.items():
            self.shell.stub(name, counted * (cut_off_at > 0) + (body or ""))

    def asked_of_systemd(self, verb: str) -> list[str]:
        """Units that systemctl was called for with that verb, in order."""
        calls = (call.split() for call in self.shell.calls if call.startswith(f"systemctl {verb} "))
        return [words[-1] for words in calls]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
