"""Those that stay take out dead nodes and those made anew, before anything else."""

from __future__ import annotations

import json

from tests.scripts.shell import Shell

VALUES = {
    "MEMBERS": "master-1=10.0.0.11 master-3=10.0.0.13",
    "ETCD_ENDPOINTS": "https://127.0.0.1:2379",
    "GOING_MEMBERS": "master-2=10.0.0.12",
    "INCARNATIONS": "master-2=1:lost worker-1=2:active",
}
MEMBERS = """\
a1, started, master-1, https://10.0.0.11:2380, https://10.0.0.11:2379, false
a2, started, master-2, https://10.0.0.12:2380, https://10.0.0.12:2379, false
a3, started, master-3, https://10.0.0.13:2380, https://10.0.0.13:2379, false
"""


def cluster(shell: Shell, *, ready: str, known: str = "", members: str = MEMBERS) -> None:
    """worker-1 is Ready or not, master-2 is dead; `known` was taken out before, by name."""
    (shell.folder / "members").write_text(members)
    shell.stub(
        "kubectl",
        f'case "$*" in *"get configmap"*{{.data.worker-1}}*) printf "{known}" ;; '
        f'*"get node worker-1"*) printf "worker-1 {ready}" ;; '
        '*"get node master-2"*) printf "master-2 Unknown" ;; '
        '*"apply"*) cat >>"' + str(shell.folder) + '/applied" ;; esac',
    )
    shell.stub(
        "etcdctl",
        f'case "$*" in *"member list"*) cat "{shell.folder}/members" ;; '
        f'*"member remove"*) sed -i "/^a2,/d" "{shell.folder}/members" ;; '
        '*"endpoint health"*) echo "one is healthy"; echo "other is healthy" ;; esac',
    )


def changing(shell: Shell) -> list[str]:
    """What was changed, in order."""
    words = []
    for call in shell.calls:
        _, _, text = call.partition("--request-timeout 10s ")
        if text.startswith(("cordon", "drain", "delete node")):
            words.append(" ".join(text.split()[:3]).removesuffix(" --ignore-daemonsets"))
        if "member remove" in call:
            words.append("member remove " + call.rpartition(" ")[2])
    return words


def test_a_living_one_is_evicted_a_dead_one_is_not_waited_for(shell: Shell) -> None:
    cluster(shell, ready="True")
    shell.run("main", phase="retire", values=VALUES)
    assert changing(shell) == [
        "cordon master-2",
        "cordon worker-1",
        "drain worker-1",
        "member remove a2",
        "delete node master-2",
        "delete node worker-1",
    ]
    kept = (shell.folder / "applied").read_text().splitlines()
    assert [json.loads(line)["data"] for line in kept] == [
        {"master-2": "1:lost"},
        {"worker-1": "2:active"},
    ]


def test_what_was_taken_out_before_is_left_alone(shell: Shell) -> None:
    """It may be the new incarnation that stands there now."""
    cluster(shell, ready="True", known="2:active")
    shell.run("main", phase="retire", values=VALUES)
    assert "delete node worker-1" not in changing(shell)
    assert "delete node master-2" in changing(shell)


def test_nothing_is_asked_when_nobody_goes(shell: Shell) -> None:
    cluster(shell, ready="True")
    shell.run("main", phase="retire", values={**VALUES, "INCARNATIONS": ""})
    assert shell.calls == []


def test_a_member_that_never_started_is_known_by_its_address(shell: Shell) -> None:
    unstarted = "a2, unstarted, , https://10.0.0.12:2380, , true"
    rows = [unstarted if row.startswith("a2") else row for row in MEMBERS.splitlines()]
    other = "a4, unstarted, , https://10.0.0.14:2380, , true"
    cluster(shell, ready="False", members="\n".join([*rows, other, ""]))
    shell.run("main", phase="retire", values=VALUES)
    assert [word for word in changing(shell) if "member" in word] == ["member remove a2"]


def test_without_a_quorum_of_the_others_nothing_is_removed(shell: Shell) -> None:
    cluster(shell, ready="False")
    shell.stub(
        "etcdctl",
        f'case "$*" in *"member list"*) cat "{shell.folder}/members" ;; '
        '*"endpoint health"*) echo "one is healthy" ;; esac',
    )
    out = shell.run("main", phase="retire", values=VALUES, fails=True)
    assert "etcd member master-2 cannot leave: of the 2 that would stay" in out
    assert not [word for word in changing(shell) if "remove" in word or "delete" in word]
