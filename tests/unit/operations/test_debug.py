"""Tools on a node and beside a pod: what is asked for, what begins, and that it ends; a stand-in plays kubectl."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from components.ssh.hop import Hop
from operations.debug import by_api, by_ssh, objects, wanted
from operations.debug.by_api import NoKubeletError
from operations.debug.wanted import Wanted
from operations.engine.engine import StackError
from operations.engine.kubectl import Kubectl
from operations.ssh.client import Target
from stacks.catalogue import toolbox
from tests.unit.render.examples import VERSIONS, lab

PLAN = lab()
MASTER, WORKER = PLAN.node("master-1"), PLAN.node("worker-1")
IMAGE = "docker.io/nicolaka/netshoot:v0.15"
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
RUNS = {"name": "toolbox", "state": {"running": {}}}
RUNNING = {"status": {"startTime": "now", "phase": "Running", "containerStatuses": [RUNS]}}
SAID = Wanted(node="worker-1", command="ss -lnt", limit_s=3600)

# Of the API: what it answers by a word of the question, and what it was asked.
PROGRAM = """#!{python}
import json, pathlib, sys, time
folder = pathlib.Path({folder!r})
words = " ".join(sys.argv[3:])
sent = sys.stdin.read() if words.startswith("create") else ""
while words.startswith("attach") and not sent.endswith("end\\n"):
    sent += sys.stdin.readline()
with open(folder / "asked", "a") as asked:
    asked.write(json.dumps([words, sent]) + "\\n")
for key, (code, out, error) in json.loads((folder / "answers").read_text()):
    if words.startswith(key):
        sys.stdout.write(out); sys.stderr.write(error); sys.exit(code)
"""

Answers = list[tuple[str, tuple[int, str, str]]]


class Api:
    """A kubectl that answers, and remembers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        file = folder / "kubectl"
        file.write_text(PROGRAM.format(python=sys.executable, folder=str(folder)))
        file.chmod(0o755)
        self.kubectl = Kubectl(program=file, kubeconfig=folder / "config")

    def answers(self, **said: Mapping[str, object] | tuple[int, str, str]) -> Kubectl:
        rows = [
            (
                key.replace("_", " "),
                said_ if isinstance(said_, tuple) else (0, json.dumps(said_), ""),
            )
            for key, said_ in said.items()
        ]
        (self.folder / "answers").write_text(json.dumps(rows))
        return self.kubectl

    def asked(self, word: str) -> list[tuple[str, str]]:
        rows = [json.loads(row) for row in (self.folder / "asked").read_text().splitlines()]
        return [(words, sent) for words, sent in rows if words.startswith(word)]


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setattr(by_api, "_LOOK_S", 0.01)
    monkeypatch.setattr(by_api, "_TAKEN_S", 0.2)
    monkeypatch.setattr(by_api, "_PATIENCE_S", 0.1)
    monkeypatch.setattr(objects, "BEAT_S", 0.05)
    return Api(tmp_path)


def asked_for(*words: str) -> Wanted:
    return wanted.of(wanted.parser().parse_args(["dev", *words]))


def test_all_that_is_wrong_is_said_at_once() -> None:
    words = ["--node=a", "--pod=b", "--via=so", "--profile=all", "--hours=25", "--image=--x"]
    with pytest.raises(StackError) as refused:
        asked_for(*words)
    told = [line.strip().partition(":")[0] for line in str(refused.value).splitlines()]
    assert told == ["NODE=name for a node, or POD=namespace/name for a pod", "POD", "IMAGE", "VIA", "PROFILE", "VIA", "HOURS"]  # fmt: skip


@pytest.mark.parametrize("hours", ["0", "-1", "x", "24.5", "0.01", "1e3", ""])
def test_no_session_is_without_an_end(hours: str) -> None:
    with pytest.raises(StackError, match="HOURS"):
        asked_for("--node=a", f"--hours={hours}")


def test_what_was_asked_for() -> None:
    found = asked_for("--pod", "shop/web-0", "--container", "web", "--command", "a 'b'", "--hours", "0.5")  # fmt: skip
    assert (found.namespace, found.pod, found.container) == ("shop", "web-0", "web")
    assert (found.command, found.limit_s) == ("a 'b'", 1800)


def test_the_pod_is_on_its_node_whatever_that_ones_taints_and_ends_by_itself() -> None:
    spec = objects.pod("x", WORKER, IMAGE, limit_s=1800)["spec"]
    assert isinstance(spec, dict)
    assert spec["nodeName"] == "worker-1"
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert (spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("Never", 1800)
    # Nobody is evicted for it, and nothing in it may speak for an account of the cluster.
    assert "priorityClassName" not in spec
    assert spec["automountServiceAccountToken"] is False


def test_etcds_own_client_finds_its_keys_where_there_is_a_member() -> None:
    assert not [key for key in objects.environment(WORKER) if key.startswith("ETCDCTL")]
    there = objects.environment(MASTER)
    assert there["ETCDCTL_KEY"].startswith("/host/etc/")


def test_the_first_process_ends_when_it_is_told_cut_off_or_no_longer_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objects, "GONE_S", 1)

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(objects.life(), stdin=subprocess.PIPE, bufsize=0)

    with start() as told, start() as cut, start() as alone, start() as held:
        assert told.stdin
        assert cut.stdin
        assert held.stdin
        told.stdin.write(f"{objects.BEAT}{objects.END}".encode())
        cut.stdin.close()
        for _ in range(6):
            held.stdin.write(objects.BEAT.encode())
            with pytest.raises(subprocess.TimeoutExpired):
                held.wait(0.3)
        for process in (told, cut, alone):
            process.wait(5)
        held.stdin.write(objects.END.encode())
        held.wait(5)


def test_a_command_runs_there_and_its_exit_code_is_told(api: Api) -> None:
    kubectl = api.answers(get_node=READY, get_pod=RUNNING, exec=(7, "", ""))
    assert by_api.on_node(kubectl, WORKER, SAID, IMAGE) == 7
    ((_, sent),) = api.asked("create")
    name = json.loads(sent)["metadata"]["name"]
    assert name.startswith("debug-worker-1-")
    ((ran, _),) = api.asked("exec")
    assert name in ran
    assert ran.endswith("ss -lnt")
    # Left as it was found, and what others left besides.
    swept, removed = api.asked("delete")
    assert name in removed[0]
    assert "status.phase!=Running" in swept[0]
    ((_, beats),) = api.asked("attach")
    assert beats.endswith(objects.BEAT + objects.END)


def test_what_policy_forbids_is_refused_with_its_answer_and_goes_no_other_way(api: Api) -> None:
    answer = 'pods "x" is forbidden: ValidatingAdmissionPolicy "no-host" denied request: never\n'
    kubectl = api.answers(get_node=READY, create=(1, "", f"a warning\nError: {answer}"))
    with pytest.raises(StackError) as refused:
        by_api.on_node(kubectl, WORKER, SAID, IMAGE)
    assert not isinstance(refused.value, NoKubeletError)
    assert "no-host" in str(refused.value)
    assert objects.LABEL in str(refused.value)
    assert not api.asked("exec")


@pytest.mark.parametrize(
    ("node", "pod", "told"),
    [
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown", "message": "silent"}]}}, RUNNING, "silent"),
        ((1, "", "Unable to connect to the server: EOF\n"), RUNNING, "EOF"),
        (READY, {"status": {"phase": "Pending"}}, "has not taken"),
        (READY, {"status": {"phase": "Failed", "reason": "Evicted", "startTime": "now"}}, "Evicted"),
    ],
    ids=["not ready", "no API", "no kubelet", "refused by the kubelet"],
)  # fmt: skip
def test_where_no_pod_can_begin_it_is_another_way_and_none_stays(
    api: Api, node: Mapping[str, object], pod: Mapping[str, object], told: str
) -> None:
    kubectl = api.answers(get_node=node, get_pod=pod)
    with pytest.raises(NoKubeletError, match=told):
        by_api.on_node(kubectl, WORKER, SAID, IMAGE)
    created = [json.loads(sent)["metadata"]["name"] for _, sent in api.asked("create")]
    deleted = [words for words, _ in api.asked("delete") if "--force" in words]
    assert len(created) == len(deleted)
    assert all(name in words for name, words in zip(created, deleted, strict=True))


def test_an_image_that_cannot_be_had_is_said_with_the_ways_to_have_it(api: Api) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such host"}
    status = {"startTime": "now", "containerStatuses": [{"name": "toolbox", "state": {"waiting": waiting}}]}  # fmt: skip
    kubectl = api.answers(get_node=READY, get_pod={"status": status})
    with pytest.raises(StackError, match="no such host") as refused:
        by_api.on_node(kubectl, WORKER, SAID, IMAGE)
    assert "ALSO=addon=toolbox" in str(refused.value)
    assert api.asked("delete")[-1]


def target(**more: object) -> dict[str, object]:
    return {
        "metadata": {"annotations": more},
        "spec": {"nodeName": "worker-1", "containers": [{"name": "web"}, {"name": "log"}]},
        "status": {"phase": "Running", "startTime": "now"},
    }


BESIDE = Wanted(namespace="shop", pod="web-0", command="id", limit_s=3600)


@pytest.mark.parametrize(
    ("notes", "container", "seen"),
    [
        ({}, "", "web"),
        ({"kubectl.kubernetes.io/default-container": "log"}, "", "log"),
        ({"kubectl.kubernetes.io/default-container": "log"}, "web", "web"),
    ],
)
def test_of_a_pod_the_processes_of_one_container_are_seen_without_a_privileged_one(
    api: Api, monkeypatch: pytest.MonkeyPatch, notes: dict[str, object], container: str, seen: str
) -> None:
    monkeypatch.setattr(by_api, "_wait", lambda *_: None)
    kubectl = api.answers(get_pod=target(**notes), exec=(3, "", ""))
    assert by_api.in_pod(kubectl, replace(BESIDE, container=container), IMAGE) == 3
    ((words, _),) = api.asked("debug")
    assert f"--target {seen} --profile general --custom " in words
    assert "privileged" not in json.dumps(objects.IN_A_POD)
    assert by_api.in_pod(kubectl, replace(BESIDE, profile="restricted"), IMAGE) == 3
    assert "--profile restricted" in api.asked("debug")[-1][0]
    assert "--custom" not in api.asked("debug")[-1][0]


@pytest.mark.parametrize(
    ("pod", "container", "told"),
    [
        (target(**{"kubernetes.io/config.mirror": "x"}), "", "NODE=worker-1"),
        ({**target(), "status": {"phase": "Succeeded"}}, "", "Succeeded"),
        (target(), "db", r"CONTAINER=web\|log"),
    ],
    ids=["static", "ended", "no such container"],
)
def test_a_pod_that_takes_none_is_said_before_anything_is_asked(
    api: Api, pod: Mapping[str, object], container: str, told: str
) -> None:
    with pytest.raises(StackError, match=told):
        by_api.in_pod(api.answers(get_pod=pod), replace(BESIDE, container=container), IMAGE)
    assert not api.asked("debug")


def test_a_pods_namespace_that_forbids_it_is_said_with_what_it_would_take(api: Api) -> None:
    answer = 'error: pods "web-0" is forbidden: violates PodSecurity "restricted:latest"'
    with pytest.raises(StackError, match="violates PodSecurity") as refused:
        by_api.in_pod(api.answers(get_pod=target(), debug=(1, "", answer)), BESIDE, IMAGE)
    assert "PROFILE=restricted" in str(refused.value)


@pytest.mark.parametrize(
    ("said", "full"),
    [
        (IMAGE, IMAGE),
        ("busybox", "docker.io/library/busybox:latest"),
        ("nicolaka/netshoot:v0.15", IMAGE),
        ("localhost:5000/tools", "localhost:5000/tools:latest"),
        ("quay.io/a/b@sha256:00", "quay.io/a/b@sha256:00"),
    ],
)
def test_an_image_has_the_name_that_containerd_knows(said: str, full: str) -> None:
    assert objects.full_reference(said) == full


def test_the_image_is_that_of_the_lock() -> None:
    assert toolbox.image(VERSIONS) == IMAGE


# Stand-ins of the machine's programs: what they do, in the place of what they would do.
MACHINE = {
    "logger": "exit 0",
    "umount": 'echo "umount $*" >>"$CALLS"',
    "mount": 'echo "mount $*" >>"$CALLS"',
    "chroot": 'shift; exec "$@"',
    "ctr": 'echo "ctr $*" >>"$CALLS"; [[ $* == *" ls "* ]] && echo "$HAS"; [[ $* != *"$FAILS"* ]] || { echo "a reason" >&2; exit 1; }',
}  # fmt: skip
Machine = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Runs the command of by_ssh as a machine would."""
    for name, text in MACHINE.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)

    def start(
        wanted_: Wanted, *, has: str = IMAGE, fails: str = "nothing"
    ) -> subprocess.Popen[str]:
        hop = Hop(address="10.0.0.1", port=22, user="root", host_key=None, key=None)
        text = by_ssh.command(Target(hop=hop), WORKER, wanted_, IMAGE)
        mark = "unshare --mount --propagation slave "
        assert text.startswith(mark)
        text = text.removeprefix(mark).replace("PATH=/usr", f"PATH={tmp_path}:/usr")
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CALLS": str(tmp_path / "calls"), "HAS": has, "FAILS": fails, "RUN": str(tmp_path / "run")}  # fmt: skip
        return subprocess.Popen(
            ["bash", "-c", text], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )  # fmt: skip

    return start


def calls(tmp_path: Path) -> str:
    return (tmp_path / "calls").read_text()


def test_over_ssh_the_image_is_mounted_used_and_taken_away(
    machine: Machine, tmp_path: Path
) -> None:
    said = replace(SAID, command='echo "it\'s $CONTAINERD_NAMESPACE"; exit 9')
    process = machine(said)
    out, _ = process.communicate(timeout=20)
    assert (out, process.returncode) == ("it's k8s.io\n", 9)
    assert " pull " not in calls(tmp_path)
    assert f"images mount --rw --expiration 3660s -- {IMAGE}" in calls(tmp_path)
    assert "images unmount --rm" in calls(tmp_path).splitlines()[-1]
    assert not (tmp_path / "run").exists() or not [*(tmp_path / "run").rglob("answer*")]


def test_over_ssh_the_image_is_pulled_where_the_machine_lacks_it(machine: Machine, tmp_path: Path) -> None:  # fmt: skip
    machine(SAID, has="").communicate(timeout=20)
    assert f"images pull --hosts-dir /etc/containerd/certs.d -- {IMAGE}" in calls(tmp_path)


def test_over_ssh_without_an_image_it_is_the_machines_own_shell_and_said(machine: Machine) -> None:
    process = machine(replace(SAID, command="echo here"), has="", fails=" pull ")
    out, err = process.communicate(timeout=20)
    assert (out, process.returncode) == ("here\n", 0)
    assert "own programs" in err
    assert "a reason" in err


def test_over_ssh_it_ends_at_the_limit_and_takes_all_away(machine: Machine, tmp_path: Path) -> None:
    process = machine(replace(SAID, command="sleep 60", limit_s=1))
    process.communicate(timeout=20)
    assert process.returncode == 124
    assert "images unmount --rm" in calls(tmp_path)
