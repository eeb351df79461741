"""A machine of a test, seen from inside its container: no SSH connection is made to look."""

from __future__ import annotations

from dataclasses import dataclass

from tests.e2e.harness import lab

# One line a process or container: name, PID, start time where PIDs could come back.
_PROCESSES = r"""
for unit in etcd kubelet containerd haproxy keepalived; do
  printf '%s %s\n' "$unit" "$(systemctl show -p MainPID --value "$unit" 2>/dev/null)"
done
if systemctl is-active -q containerd; then
  ctr -n k8s.io tasks ls | awk 'NR > 1 {print $1, $2}' | while read -r id pid; do
    printf '%s %s/%s\n' "$id" "$pid" "$(awk '{print $22}' "/proc/$pid/stat")"
  done
fi
"""

# Everything that a phase writes and that decides how the node behaves; logs and marks are left out.
_FILES = r"""
find /etc/kubernetes /etc/kube-ha /etc/containerd /etc/haproxy /etc/keepalived /etc/cni /etc/sysctl.d \
  /etc/systemd/system /etc/modules-load.d /opt/cni/bin /usr/local/bin /usr/local/sbin \
  /var/lib/kubelet/config.yaml /var/lib/kubelet/kubeadm-flags.env \
  -type f -not -path '/etc/kubernetes/tmp/*' -print0 2>/dev/null | sort -z |
  xargs -0 -r -n 64 sh -c 'for f; do
    printf "%s %s %s\n" "$f" "$(stat -c %a "$f")" "$(sha256sum <"$f" | cut -c1-16)"; done' _
"""

# Arguments and environment of what runs: a file may be right while its process is an older one.
_RUNNING = r"""
for unit in etcd kubelet containerd; do
  pid=$(systemctl show -p MainPID --value "$unit" 2>/dev/null)
  if [ "${pid:-0}" != 0 ]; then
    printf '%s %s\n' "$unit" "$(tr '\0' ' ' <"/proc/$pid/cmdline")"
    printf '%s-env %s\n' "$unit" "$(tr '\0' '\n' <"/proc/$pid/environ" | grep ^ETCD_ | grep -v ETCD_INITIAL | sort | tr '\n' ' ')"
  fi
done
for name in kube-apiserver kube-controller-manager kube-scheduler; do
  for pid in $(pgrep -x "$(printf %.15s "$name")"); do
    printf '%s %s\n' "$name" "$(tr '\0' ' ' <"/proc/$pid/cmdline")"
  done
done
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A lab machine by its lab and name."""

    lab: str
    name: str

    @property
    def container(self) -> str:
        return f"kube-ha-{self.lab}-{self.name}"

    def run(self, script: str, *, timeout_s: float = 60) -> str:
        """Stdout of a bash script inside the machine. Raises lab.LabError."""
        return lab.engine("exec", self.container, "bash", "-c", script, timeout_s=timeout_s)

    def put(self, path: str, text: str) -> None:
        """Make a file of its owner alone. Raises lab.LabError."""
        script = 'umask 077; mkdir -p "${0%/*}"; cat >"$0.new"; mv "$0.new" "$0"'
        command = ["exec", "-i", self.container, "bash", "-c", script, path]
        lab.shell(lab.engine_command(*command), stdin=text)

    def start_program(self, command: str) -> None:
        """Start something that runs on by itself, whatever happens to this computer's engine meanwhile."""
        lab.engine("exec", "--detach", self.container, "bash", "-c", command)

    def asked(self, script: str) -> str:
        """The same, or an empty text where it fails or the machine is not there."""
        try:
            return self.run(script)
        except lab.LabError:
            return ""

    def is_booting(self) -> str:
        """What systemd says of a machine that is not up yet; empty when it is, as far as it will be."""
        state = self.asked("systemctl is-system-running --wait || true").strip()
        return "" if state in ("running", "degraded") else state or "no answer"

    def runs(self, program: str) -> bool:
        """Whether a process of this name (15 characters at most) runs."""
        return bool(self.asked(f"pgrep -x {program}").strip())

    def kill(self) -> None:
        """Cut the power."""
        lab.machine_sh("kill", LAB=self.lab, MACHINE=self.name)

    def start(self) -> None:
        """Switch it on again."""
        lab.machine_sh("start", LAB=self.lab, MACHINE=self.name)

    def pause(self) -> None:
        """Let it stand still."""
        lab.machine_sh("pause", LAB=self.lab, MACHINE=self.name)

    def unpause(self) -> None:
        """Let it go on."""
        lab.machine_sh("unpause", LAB=self.lab, MACHINE=self.name)

    def processes(self) -> dict[str, str]:
        """Main PID of each unit; PID and start time of each Kubernetes container."""
        return _pairs(self.run(_PROCESSES))

    def files(self) -> dict[str, str]:
        """Mode and checksum of each file that decides what this node is, by path."""
        return _pairs(self.run(_FILES))

    def running(self) -> dict[str, str]:
        """Arguments and settings of what runs, by program."""
        return _pairs(self.run(_RUNNING))

    def connections(self) -> int:
        """SSH logins since it was made, by its own sshd's journal."""
        count = "journalctl -q -o cat -t sshd | grep -c '^Accepted ' || true"
        return int(self.run(count).strip())

    def etcdctl(self, words: str) -> str:
        """Stdout of etcdctl with this member's own client certificate. Raises lab.LabError."""
        folder = "/etc/kube-ha/etcd"
        keys = f"--cacert {folder}/ca.crt --cert {folder}/client.crt --key {folder}/client.key"
        return self.run(f"etcdctl --endpoints https://127.0.0.1:2379 {keys} {words} 2>&1")


def _pairs(text: str) -> dict[str, str]:
    """Lines `key rest of line`; several lines of one key are joined."""
    out: dict[str, str] = {}
    for line in text.splitlines():
        key, _, rest = line.partition(" ")
        out[key] = f"{out[key]}\n{rest}" if key in out else rest
    return out
