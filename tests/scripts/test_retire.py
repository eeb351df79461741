"""The remaining nodes take out dead nodes and those recreated, before anything else."""

from __future__ import annotations

import json

import pytest

from tests.scripts import node_list
from tests.scripts.shell import Shell

VALUES = {
    "ADDRESS": "10.0.0.11",
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


def node(name: str, ready: str) -> str:
    return json.dumps(node_list.one(name, ready=ready))


def cluster(
    shell: Shell, *, ready: str, known: str = "", members: str = MEMBERS, holders: str = ""
) -> None:
    """worker-1 is Ready or not, master-2 is dead; `known` was taken out before, by name; `holders` are listed."""
    (shell.folder / "members").write_text(members)
    shell.stub(
        "kubectl",
        f'case "$*" in *"get configmap"*{{.data.worker-1}}*) printf "{known}" ;; '
        f"*\"get configmap kube-ha-vip-holders\"*) printf '{holders}' ;; "
        f'*"get "*"node worker-1"*) echo \'{node("worker-1", ready)}\' ;; '
        f'*"get "*"node master-2"*) echo \'{node("master-2", "Unknown")}\' ;; '
        '*"apply"*) cat >>"' + str(shell.folder) + '/applied" ;; esac',
    )
    shell.stub(
        "etcdctl",
        f'case "$*" in *"member list"*) cat "{shell.folder}/members" ;; '
        f'*"member remove"*) sed -i "/^a2,/d" "{shell.folder}/members" ;; '
        f"{answering()} esac",
    )


def answering(*silent: str) -> str:
    """etcdctl's answers of members of one cluster, but for those at these addresses: they tell which, and have no quorum."""
    of = """'"ClusterID" : 7'"""
    refused = "".join(f'*{address}*"get /kube-ha/cluster"*) exit 1 ;; ' for address in silent)
    return f'{refused}*"get /kube-ha/"*) echo {of} ;;'


def changing(shell: Shell) -> list[str]:
    """What was changed, in order."""
    words = []
    for call in shell.calls:
        _, _, text = call.partition("--request-timeout 10s ")
        if text.startswith(("cordon", "drain", "delete")):
            words.append(f"{text.split()[0]} {text.partition(' -- ')[2]}")
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


def test_a_load_balancer_gives_up_the_address_before_its_machine_goes(shell: Shell) -> None:
    cluster(shell, ready="True", holders='{"edge-1":"1","edge-2":"1"}')
    shell.stub("sleep")
    values = {**VALUES, "INCARNATIONS": "edge-1=2:active worker-1=2:active"}
    shell.run("main", phase="retire", values=values)
    [patch] = [call for call in shell.calls if "patch configmap kube-ha-vip-holders" in call]
    assert patch.endswith('--type merge -p {"data":{"edge-1":null}}')
    assert shell.calls.index("sleep 4") > shell.calls.index(patch)


def test_one_that_was_made_anew_already_stays_listed(shell: Shell) -> None:
    cluster(shell, ready="True", known="2:active", holders='{"worker-1":"2"}')
    shell.run("main", phase="retire", values={**VALUES, "INCARNATIONS": "worker-1=2:active"})
    assert not [call for call in shell.calls if "patch" in call]


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
        f"{answering('10.0.0.13')} esac",
    )
    out = shell.run("main", phase="retire", values=VALUES, fails=True)
    assert "etcd member master-2 cannot leave: of the 2 that would stay" in out
    assert not [word for word in changing(shell) if "remove" in word or "delete" in word]


def test_a_dead_one_is_taken_out_again(shell: Shell) -> None:
    """Lost, taken back after a failure, and lost again: the note of the first time does not count."""
    cluster(shell, ready="False", known="1:lost")
    shell.run("main", phase="retire", values={**VALUES, "INCARNATIONS": "worker-1=1:lost"})
    assert changing(shell) == ["cordon worker-1", "delete node worker-1"]


def test_who_is_in_wrong_hands_is_not_asked_to_end_its_pods(shell: Shell) -> None:
    cluster(shell, ready="True", known="1:compromised")
    shell.run("main", phase="retire", values={**VALUES, "INCARNATIONS": "worker-1=1:compromised"})
    assert changing(shell) == ["delete node worker-1"]


def drain_fails(shell: Shell, *, then: str) -> None:
    """worker-1 is Ready when it is looked at first, its drain fails, and afterwards it is `then`."""
    shell.stub(
        "kubectl",
        'case "$*" in *"drain "*"worker-1"*) touch drained; echo "disruption budget"; exit 1 ;; '
        f'*"get "*"node worker-1"*) if [[ -e drained ]]; then echo \'{node("worker-1", then)}\'; '
        f"else echo '{node('worker-1', 'True')}'; fi ;; esac",
    )


def test_a_node_that_dies_while_it_is_drained_is_not_waited_for(shell: Shell) -> None:
    cluster(shell, ready="True")
    drain_fails(shell, then="Unknown")
    shell.run("main", phase="retire", values={**VALUES, "INCARNATIONS": "worker-1=2:active"})
    assert changing(shell)[-1] == "delete node worker-1"


def test_a_living_node_that_cannot_be_drained_stays(shell: Shell) -> None:
    cluster(shell, ready="True")
    drain_fails(shell, then="True")
    values = {**VALUES, "INCARNATIONS": "worker-1=2:active"}
    out = shell.run("main", phase="retire", values=values, fails=True)
    assert "node worker-1 cannot be drained: disruption budget" in out
    assert "delete node worker-1" not in changing(shell)


def test_a_lost_quorum_is_called_by_its_name(shell: Shell) -> None:
    shell.stub("kubectl")
    shell.stub("etcdctl", '[[ "$*" == *10.0.0.11*"endpoint status"* ]]')
    code = "sleep() { SECONDS=99; }; main"
    out = shell.run(code, phase="retire", values=VALUES, fails=True)
    assert "cannot remove master-2 worker-1: etcd has no quorum" in out
    assert "(healthy: master-1; unreachable: master-3)" in out
    assert "start members that have data until a majority answers" in out
    assert "restore a snapshot" in out
    assert changing(shell) == []


def test_all_entries_of_a_member_go(shell: Shell) -> None:
    """It had died, and its successor under another address had died while it joined."""
    rows = [*MEMBERS.splitlines(), "a5, unstarted, , https://10.0.0.12:2380, , true"]
    rows[1] = rows[1].replace("10.0.0.12", "10.0.0.92")
    cluster(shell, ready="False", members="\n".join([*rows, ""]))
    shell.run("main", phase="retire", values=VALUES)
    assert [word for word in changing(shell) if "member" in word] == [
        "member remove a2",
        "member remove a5",
    ]


@pytest.mark.parametrize(
    ("others", "healthy", "words"),
    [
        ([], 0, "it is the last voter"),
        (["a1, started, master-1, https://x:2380, https://x:2379, false"], 1, ""),
        (
            [
                "a1, started, master-1, https://x:2380, https://x:2379, false",
                "a3, unstarted, , https://y:2380, , false",
            ],
            1,
            "of the 2 that would stay (https://x:2379) only 1 are healthy",
        ),
        (
            [
                "a1, started, master-1, https://x:2380, https://x:2379, false",
                "a3, unstarted, , https://y:2380, , true",
            ],
            1,
            "",
        ),
    ],
    ids=["last voter", "one of two", "a voter that never started counts", "a learner does not"],
)
def test_those_that_stay_must_have_a_quorum_of_their_own(
    shell: Shell, others: list[str], healthy: int, words: str
) -> None:
    rows = [*others, "a2, started, master-2, https://z:2380, https://z:2379, false", ""]
    cluster(shell, ready="False", members="\n".join(rows))
    shell.stub(
        "etcdctl",
        f'case "$*" in *"member list"*) cat "{shell.folder}/members" ;; '
        f"{answering(*([] if healthy else ['x']))} esac",
    )
    code = "quorum_without a2 master-2"
    out = shell.run(code, phase="retire", values=VALUES, fails=bool(words))
    assert words in out


def test_leadership_does_not_go_to_the_one_that_leaves(shell: Shell) -> None:
    """One that is recreated is wanted, and so in the list of those who may have it."""
    shell.stub(
        "etcdctl",
        """n=$(grep -o '10[.]0[.]0[.]1[0-9]' <<<"$2" | tail -c 2)
[[ "$*" != *"get /kube-ha/"* ]] || echo '"ClusterID" : 7'
[[ "$*" != *status* ]] || printf '"MemberID" : %d\n"Leader" : 2\n' "${n:-2}" """,
    )
    values = {**VALUES, "MEMBERS": "master-2=10.0.0.12 master-3=10.0.0.13"}
    shell.run("hand_over_leadership 2 https://10.0.0.12:2379", phase="retire", values=values)
    (moved,) = [call for call in shell.calls if "move-leader" in call]
    assert moved.split()[2] == "https://10.0.0.12:2379"
    assert moved.endswith(" move-leader 3")


def impostor(*, unlike: str) -> str:
    """etcdctl's answers: the one at this address is a cluster of its own, which began empty."""
    ours = """printf '"ClusterID" : 7\\n"Key" : "/kube-ha/cluster"\\n"Value" : "kube-ha-cluster:dev:0123456789ab;"\\n'"""
    other = """'"ClusterID" : 14841639068965178418'"""
    return f'*{unlike}*"get /kube-ha/"*) echo {other} ;; *"get /kube-ha/"*) {ours} ;;'


def test_who_answers_as_another_cluster_is_taken_out_through_nobody_else(shell: Shell) -> None:
    """Its API server answers well, behind every load balancer: none is asked, and it counts for no quorum."""
    cluster(shell, ready="True")
    values = {**VALUES, "MEMBERS": "master-1=10.0.0.11 master-2=10.0.0.12 master-3=10.0.0.13"}
    body = (shell.folder / "bin/etcdctl").read_text()
    spoilt = body.replace(answering(), impostor(unlike="10.0.0.12"))
    assert spoilt != body
    (shell.folder / "bin/etcdctl").write_text(spoilt)
    shell.run("main", phase="retire", values=values)
    assert "member remove a2" in changing(shell)
    asked = [call for call in shell.calls if call.startswith("kubectl ")]
    assert asked
    for call in asked:
        assert "--server https://10.0.0.11:6443" in call
        assert "3446" not in call


def test_a_master_whose_own_etcd_is_the_false_one_takes_nobody_out(shell: Shell) -> None:
    cluster(shell, ready="True")
    values = {**VALUES, "MEMBERS": "master-1=10.0.0.11 master-2=10.0.0.12 master-3=10.0.0.13"}
    body = (shell.folder / "bin/etcdctl").read_text()
    (shell.folder / "bin/etcdctl").write_text(
        body.replace(answering(), impostor(unlike="127.0.0.1"))
    )
    out = shell.run("main", phase="retire", values=values, fails=True)
    assert (
        "etcd at https://127.0.0.1:2379, which this master asks, belongs to another cluster" in out
    )
    assert changing(shell) == []
