"""Story: a cluster is made, and its keys and tokens are nowhere to be seen but in 0600 files."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.leaks import CommandLines, needles, seen
from tests.e2e.harness.stack import Stack

# Files that others than their owner may read, journals, and what processes were started with.
_OPEN_FILES = r"""
find / -xdev \( -path /proc -o -path /sys -o -path /usr -o -path /var/lib/containerd \) -prune -o \
  -type f -perm /044 -size -2M -newer /etc/machine-id -print0 2>/dev/null | xargs -0 -r cat
journalctl -b -q --no-pager -o cat
cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n'
"""


def wanted() -> config.Config:
    return config.lab("test-secrets", "10.93.8.0/24", masters=1, workers=1)


def test_no_secret_is_seen_in_clear(stack: Stack) -> None:
    previewed = stack.preview()
    with CommandLines() as commands:
        created = stack.up()
        # A second one shows what a diff of secrets looks like.
        stack.edit("converge.generation", 2)
        previewed_again = stack.preview()
        again = stack.up()
    secret = needles(stack.export())
    kinds = set(secret.values())
    assert {"private key", "bootstrap token", "encryption key"} <= kinds, kinds

    hidden = stack.node("master-1").run("cat /etc/kubernetes/pki/*.key /etc/kubernetes/*.yaml")
    assert seen(secret, "0600 files", hidden), "the scan must find what is there"
    found: list[str] = []
    for run in (previewed, created, previewed_again, again):
        found += seen(secret, f"output of {run.log.name}", run.output)
        found += seen(secret, f"events of {run.log.name}", run.events.read_text())
    found += seen(secret, "command lines", "\n".join(commands.lines))
    for file in stack.folder.rglob("state/**/*"):
        if file.is_file():
            found += seen(secret, f"state {file.name}", file.read_text(errors="replace"))
    found += seen(secret, "config", stack.file.read_text())
    for node in stack.nodes():
        found += seen(secret, f"open files of {node.name}", node.run(_OPEN_FILES, timeout_s=120))
    assert found == []


def test_worker_holds_no_key_of_others(stack: Stack) -> None:
    worker = stack.node("worker-1")
    pattern = r"BEGIN [A-Z ]*PRIVATE KEY|\b[a-z0-9]{6}\.[a-z0-9]{16}\b"
    script = f"grep -rlE '{pattern}' /etc/kubernetes /etc/kube-ha /root/.kube-ha || true"
    assert worker.run(script) == ""
    own = worker.run("ls /var/lib/kubelet/pki")
    assert "kubelet-client-current.pem" in own
