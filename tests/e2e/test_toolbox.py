"""Story: tools on a node and beside a pod, until they are left, killed or forbidden; over SSH where no kubelet is; in the audit log."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from stacks.releases import versions as lock
from tests.e2e.harness import config, lab, versions
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-toolbox"
SUBNET = "10.93.124.0/24"
WORKER, MASTER = "worker-1", "master-1"
AUDIT = "/var/log/kubernetes/audit.log"
SYSTEM = "kube-system"
# What an operator looks for on a node; the last two are the node's own.
TOOLS = "tcpdump strace ltrace ss dig curl nft ethtool iperf3 bpftrace conntrack nsenter jq mtr ctr"
# By a process of the machine, its network, its disk, its runtime; and a trace of one.
PROOF = f"""
for t in {TOOLS}; do command -v "$t" >/dev/null || echo "lacks $t"; done
pgrep -x kubelet >/dev/null && ip -o -4 addr | grep -c ' 10[.]93[.]124[.]'
echo $(cat /host/etc/hostname)
ctr images ls -q | grep -c netshoot
timeout 20 tcpdump -p -ni any -c 1 tcp >/dev/null 2>&1 && echo packets
timeout 20 strace -f -e trace=futex,epoll_pwait -p "$(pgrep -x kubelet)" -o /tmp/trace & sleep 3; kill $!; wait; grep -qE 'futex|epoll' /tmp/trace && echo calls
nft list tables | grep -c .
"""
SHOP = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: LEVEL}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  nodeName: worker-1
  securityContext: {runAsUser: 1000, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: web
      image: IMAGE
      command: [/agnhost, netexec, --http-port=8081, --udp-port=-1]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
"""
NO_HOST = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-host}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "!object.spec.?hostPID.orValue(false)", message: nobody sees all processes}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-host}
spec: {policyName: no-host, validationActions: [Deny]}
"""


def wanted() -> config.Config:
    made = config.lab(NAME, SUBNET, masters=1, workers=1)
    made["addons"] = {"toolbox": {"nodes": {"kubernetes.io/hostname": WORKER}}}
    return versions.with_addons(made, SUBNET)


def start(
    stack: Stack,
    *words: str,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    stdout: IO[bytes] | int = subprocess.PIPE,
) -> subprocess.Popen[str]:
    """A `make debug` in a session of its own."""
    command = [str(lab.ROOT / ".venv/bin/python"), "-m", "operations.debug", stack.name, *words]
    return subprocess.Popen(
        command, cwd=lab.ROOT, env=stack.environment, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True, start_new_session=True
    )  # fmt: skip


def debug(stack: Stack, *words: str, code: int = 0) -> tuple[str, str]:
    """What one printed on stdout and stderr to its end."""
    process = start(stack, *words)
    out, err = process.communicate(timeout=240)
    with (stack.evidence / "debug.log").open("a") as log:
        log.write(f"{words}\n{out}{err}")
    assert process.returncode == code, f"exit {process.returncode}: {out}{err}"
    return out, err


def pods(stack: Stack) -> dict[str, str]:
    """Phase of each pod of the tools."""
    listed = json.loads(stack.kubectl("-n", SYSTEM, "get", "pods", "-l", "kube-ha.io/debug", "-o", "json"))["items"]  # fmt: skip
    return {one["metadata"]["name"]: one["status"]["phase"] for one in listed}


def test_the_image_is_where_the_config_says_before_it_is_needed(stack: Stack) -> None:
    stack.up()
    rows = stack.kubectl("-n", SYSTEM, "get", "pods", "-l", "app=toolbox", "-o", "jsonpath={.items[*].spec.nodeName}")  # fmt: skip
    assert rows.split() == [WORKER]
    kept = "ctr -n k8s.io images ls -q | grep -c netshoot || true"
    assert stack.node(WORKER).run(kept).strip() != "0"
    assert stack.node(MASTER).run(kept).strip() == "0"
    assert pods(stack) == {}


def test_on_a_node_is_all_of_it_and_nothing_stays(stack: Stack) -> None:
    stack.settled()
    before = stack.node(WORKER).processes()
    began = time.monotonic()
    out, _ = debug(stack, "--node", WORKER, "--command", PROOF)
    stack.took("make debug on a node, with a packet and a trace", time.monotonic() - began)
    assert "lacks" not in out
    addresses, host, images, packets, calls, tables = out.split()
    assert (host, packets, calls) == (WORKER, "packets", "calls"), out
    assert min(map(int, (addresses, images, tables))) > 0, out
    debug(stack, "--node", WORKER, "--command", "exit 7", code=7)
    began = time.monotonic()
    out, _ = debug(stack, "--node", MASTER, "--command", "etcdctl endpoint health 2>&1")
    stack.took("make debug on a node that has to pull the image", time.monotonic() - began)
    assert "is healthy" in out
    wait_for("pods of the tools gone", lambda: str(pods(stack) or ""), limit_s=20)
    assert stack.node(WORKER).processes() == before


def test_a_shell_of_a_terminal(stack: Stack) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "rb+", buffering=0) as terminal:
        process = start(stack, "--node", WORKER, stdin=terminal, stdout=terminal)
    seen = b""
    os.write(ours, b"echo it is $((6*7)).; tty; exit 5\n")
    while process.poll() is None and b"/dev/pts" not in seen:
        seen += os.read(ours, 4096)
    assert process.wait(60) == 5, seen
    os.close(ours)
    assert b"it is 42." in seen
    assert process.stderr is not None
    process.stderr.close()


@contextmanager
def running(stack: Stack, *words: str, mark: str, what: str) -> Iterator[subprocess.Popen[str]]:
    """One whose command runs on the worker; measured: how long it does after the context, `what` has happened."""
    process = start(stack, *words, "--command", f"sleep {mark}")
    there = f"pgrep -f 'sleep {mark}$' || true"
    wait_for("the command runs", lambda: "" if stack.node(WORKER).run(there) else "not yet", limit_s=60)  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
    took = wait_for("the command gone", lambda: stack.node(WORKER).run(there), limit_s=90)
    stack.took(f"end of a command on the node after {what}", took)


def test_killed_it_ends_on_the_node_too(stack: Stack) -> None:
    with running(stack, "--node", WORKER, mark="54321", what="its client was killed") as process:
        assert list(pods(stack).values()) == ["Running"]
        os.killpg(process.pid, signal.SIGKILL)
    wait_for("end of the pod", lambda: str([one for one in pods(stack).values() if one == "Running"] or ""), limit_s=60)  # fmt: skip
    # The next one takes its name away.
    debug(stack, "--node", WORKER, "--command", "true")
    wait_for("pods of the tools gone", lambda: str(pods(stack) or ""), limit_s=20)


def test_ended_in_order_nothing_stays(stack: Stack) -> None:
    with running(stack, "--node", WORKER, mark="54322", what="its terminal was closed") as process:
        process.send_signal(signal.SIGHUP)
        process.wait(60)
    wait_for("pods of the tools gone", lambda: str(pods(stack) or ""), limit_s=20)


def test_beside_a_pod_its_processes_and_network_are_seen(stack: Stack) -> None:
    _serve(stack, "privileged")
    address = stack.kubectl("-n", "shop", "get", "pod", "web", "-o", "jsonpath={.status.podIP}")
    look = "ip -o -4 addr; ss -lnt; timeout 3 strace -p $(pgrep -x agnhost) 2>&1; (timeout 10 tcpdump -ni lo -c 1 >/dev/null 2>&1 && echo packet) & sleep 2; curl -s localhost:8081/hostname; wait"  # fmt: skip
    out, _ = debug(stack, "--pod", "shop/web", "--command", look)
    for told in (address, ":8081", "attached", "web", "packet"):
        assert told in out, told
    with running(
        stack, "--pod", "shop/web", mark="54323", what="its client was ended, beside a pod"
    ) as process:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    # A namespace's policy is asked, and what it says is told. It judges all containers of the pod, so of a new one.
    stack.kubectl("-n", "shop", "delete", "pod", "web", "--now")
    _serve(stack, "restricted")
    _, err = debug(stack, "--pod", "shop/web", "--command", "true", code=1)
    assert 'violates PodSecurity "restricted:latest"' in err
    assert "PROFILE=restricted" in err
    out, _ = debug(
        stack, "--pod", "shop/web", "--profile", "restricted", "--command", "ss -lnt; id -u"
    )
    assert ":8081" in out
    assert out.split()[-1] == "1000"
    _, err = debug(stack, "--pod", f"{SYSTEM}/kube-apiserver-{MASTER}", "--command", "true", code=1)
    assert f"NODE={MASTER}" in err


def _serve(stack: Stack, level: str) -> None:
    """A user's pod without rights, in a namespace of that Pod Security level."""
    image = f"registry.k8s.io/e2e-test-images/agnhost:{lock.for_kubernetes(config.kubernetes()).agnhost}"
    stack.kubectl("apply", "-f", "-", stdin=SHOP.replace("IMAGE", image).replace("LEVEL", level))
    ready = "-n shop wait --for=condition=Ready pod/web --timeout=60s"
    stack.kubectl(*ready.split(), limit_s=70)


def test_what_a_policy_forbids_is_refused_with_its_answer(stack: Stack) -> None:
    stack.kubectl("apply", "-f", "-", stdin=NO_HOST)

    def not_yet() -> str:
        process = start(stack, "--node", WORKER, "--command", "true")
        _, err = process.communicate(timeout=120)
        return "" if process.returncode == 1 and "nobody sees all processes" in err else f"{process.returncode} {err}"  # fmt: skip

    wait_for("the policy's answer", not_yet, limit_s=60)
    _, err = debug(stack, "--node", WORKER, "--command", "true", code=1)
    assert "ValidatingAdmissionPolicy 'no-host'" in err
    assert "VIA=ssh" in err
    assert pods(stack) == {}
    stack.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "no-host")


def test_over_ssh_where_no_kubelet_is_and_where_no_runtime_is(stack: Stack) -> None:
    worker = stack.node(WORKER)
    worker.run("systemctl stop kubelet")
    look = "command -v tcpdump; hostname; ctr containers ls -q | wc -l; ls /host/var/lib/kubelet | wc -l; ps -C containerd -o comm=; exit 4"  # fmt: skip
    began = time.monotonic()
    out, err = debug(stack, "--node", WORKER, "--command", look, code=4)
    stack.took("make debug on a node whose kubelet has just died", time.monotonic() - began)
    assert "its kubelet has not taken the pod" in err, err
    tool, host, containers, files, runtime = out.split()
    assert (tool, host, runtime) == ("/usr/local/sbin/tcpdump", WORKER, "containerd")
    assert min(int(containers), int(files)) > 0
    assert pods(stack) == {}
    assert worker.run("grep kube-ha-debug /proc/mounts || true; ctr -n k8s.io snapshots ls | grep kube-ha-debug || true; ls /run | grep kube-ha-debug || true") == ""  # fmt: skip
    assert "asked by" in worker.run("journalctl -q -t kube-ha-debug")
    with running(
        stack,
        "--node",
        WORKER,
        "--via",
        "ssh",
        "--hours",
        "0.017",
        mark="54324",
        what="its client was killed, over SSH, by HOURS",
    ):
        pass  # the limit ends it
    worker.run("systemctl stop containerd")
    out, err = debug(stack, "--node", WORKER, "--via", "ssh", "--command", "systemctl is-active containerd; command -v haproxy; true")  # fmt: skip
    assert out.split() == ["inactive", "/usr/sbin/haproxy"]
    assert "the machine's own programs: containerd" in err
    worker.run("systemctl start containerd kubelet")
    # Of an image that is not there yet, by the mirror; and of the machine that has etcd.
    stack.node(MASTER).run(
        "ctr -n k8s.io images ls -q | grep netshoot | xargs -r ctr -n k8s.io images rm"
    )
    out, _ = debug(stack, "--node", MASTER, "--via", "ssh", "--command", "etcdctl endpoint health 2>&1; command -v strace")  # fmt: skip
    assert "is healthy" in out
    assert out.split()[-1] == "/usr/bin/strace"
    stack.wait_healthy({MASTER, WORKER}, limit_s=90)


def test_each_use_is_in_the_audit_log(stack: Stack) -> None:
    rows = stack.node(MASTER).run(
        'jq -c \'select(.user.username == "kubernetes-admin" and .objectRef.resource == "pods" and '
        '(.objectRef.name | type == "string" and (startswith("debug-") or . == "web"))) | '
        f"[.verb, .objectRef.namespace, .objectRef.subresource, .responseStatus.code]' {AUDIT}"
    )
    done = {tuple(json.loads(row)) for row in rows.splitlines()}
    for verb, namespace, part, codes in (
        ("create", SYSTEM, None, {201}),
        ("get", SYSTEM, "exec", {101}),
        ("patch", "shop", "ephemeralcontainers", {200, 403}),
        ("get", "shop", "exec", {101}),
        ("delete", SYSTEM, None, {200}),
    ):
        assert codes <= {row[3] for row in done if row[:3] == (verb, namespace, part)}, (verb, part)


def test_the_next_up_has_nothing_to_do(stack: Stack) -> None:
    assert_up_changes_nothing(stack)
