"""The list of nodes: who is missing, who leaves, labels and taints that are ours."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import pytest

from stacks import names as name_lists
from tests.scripts.shell import Shell

VALUES = {
    "WANTED": "master aaaa master-[1-3]\nworker bbbb worker-[1-2],db",
    "LABELS": "",
    "TAINTS": "",
    "MEMBERS": "master-1=10.0.0.11 master-2=10.0.0.12",
    "ETCD_ENDPOINTS": "https://127.0.0.1:2379",
    "STALL_S": "1",
    "IDLE_S": "1",
    "NETWORK": "1",
}


def node(name: str, applied: str = "bbbb", ready: str = "True", *told: str) -> str:
    """A row of the cluster's nodes; `told` is what it has begun, and what it failed with."""
    return "|".join((name, applied, ready, *told, "", "")[:5])


READY = [
    *(node(f"master-{number}", "aaaa") for number in (1, 2, 3)),
    *(node(name) for name in ("worker-1", "worker-2", "db")),
]


def cluster(shell: Shell, rows: list[str], extra: str = "") -> None:
    """kubectl lists these nodes."""
    (shell.folder / "nodes").write_text("".join(line + "\n" for line in rows))
    shell.stub("kubectl", f'case "$*" in {extra} *"get nodes"*) cat "{shell.folder}/nodes" ;; esac')


def changing(shell: Shell) -> list[str]:
    verbs = ("label", "taint", "annotate", "cordon", "drain", "delete", "uncordon")
    words = (call.partition("--request-timeout 10s ")[2] for call in shell.calls)
    return [text for text in words if text.startswith(verbs)]


@pytest.mark.parametrize(
    "names",
    [
        ["worker-1"],
        [f"worker-{number}" for number in range(1, 1001)],
        ["worker-1", "worker-3", "worker-10", "db", "a-b-7", "x9", "007", "node-08"],
        [f"worker-{number}" for number in (1, 2, 3, 5, 8, 11, 14, 16, 18)],
    ],
)
def test_names_come_back_from_their_short_form(shell: Shell, names: list[str]) -> None:
    short = name_lists.ranges(names)
    out = shell.run(f"expand '{short}'", phase="nodes", values=VALUES)
    assert sorted(out.split()) == sorted(names)


def test_nothing_is_missing_when_all_are_there(shell: Shell) -> None:
    cluster(shell, READY)
    assert shell.run("missing; wait_for_nodes", phase="nodes", values=VALUES) == ""


def without_worker_2(*rows: str) -> list[str]:
    return [*(line for line in READY if not line.startswith("worker-2")), *rows]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (None, "busy worker-2 (not registered)"),
        (node("worker-2", "bbbb", "False"), "busy worker-2 (not Ready)"),
        (node("worker-2", "bbbb", "Unknown"), "idle worker-2 (gives no sign of life)"),
        (node("worker-2", "bbbb", "Unknown", "bbbb"), "busy worker-2 (not Ready)"),
        (node("worker-2", "aaaa"), "idle worker-2 (has not applied this configuration)"),
        (
            node("worker-2", "aaaa", "Unknown"),
            "idle worker-2 (has not applied this configuration, and gives no sign of life)",
        ),
        (
            node("worker-2", "aaaa", "Unknown", "bbbb"),
            "busy worker-2 (has begun to apply this configuration)",
        ),
        # It has joined just now.
        (node("worker-2", ""), "busy worker-2 (has not applied this configuration)"),
        # Of another configuration.
        (
            node("worker-2", "aaaa", "True", "", "cccc 12:00 no disk"),
            "idle worker-2 (has not applied this configuration)",
        ),
        (
            node("worker-2", "aaaa", "False", "", "bbbb 12:00 no disk"),
            "failed worker-2 (failed at 12:00 no disk)",
        ),
        # A revert: what it had applied was worked on again.
        (
            node("worker-2", "bbbb", "True", "", "bbbb 12:00 no disk"),
            "failed worker-2 (failed at 12:00 no disk)",
        ),
    ],
)
def test_a_missing_node_is_named_with_the_reason(
    shell: Shell, row: str | None, reason: str
) -> None:
    cluster(shell, without_worker_2(*([row] if row else [])))
    assert shell.run("missing", phase="nodes", values=VALUES).splitlines() == [reason]
    out = shell.run("wait_for_nodes", phase="nodes", values=VALUES, fails=True)
    told = reason.partition(" ")[2]
    assert f"1 node(s) not as wanted, and nothing moved for 1 s: {told}" in out


def wait_while(shell: Shell, rows: list[list[str]], *, stall_s: int = 50, idle_s: int = 50) -> str:
    """What the wait says when the cluster lists these rows, one list a look, the last one for ever."""
    for number, listed in enumerate(rows, start=1):
        text = "".join(f"{line}\n" for line in listed)
        (shell.folder / f"nodes-{number}").write_text(text)
    last = len(rows)
    shell.stub("kubectl", f'cat "{shell.folder}/nodes-$((calls < {last} ? calls : {last}))"')
    values = {**VALUES, "STALL_S": str(stall_s), "IDLE_S": str(idle_s)}
    return shell.run("wait_for_nodes", phase="nodes", values=values, fails=True)


BEGUN = without_worker_2(node("worker-2", "aaaa", "True", "bbbb"))
FAILED = without_worker_2(node("worker-2", "aaaa", "False", "", "bbbb 12:05 no disk"))
FAILED_BEFORE = without_worker_2(node("worker-2", "aaaa", "False", "", "bbbb 12:00 no disk"))


@pytest.mark.parametrize(
    "rows",
    [
        [BEGUN, FAILED],
        # A retry: the old failure is cleared when the phase begins, or replaced between two looks.
        [FAILED_BEFORE, BEGUN, FAILED],
        [FAILED_BEFORE, FAILED_BEFORE, FAILED],
        # Another one is still at work.
        [[*BEGUN[:-2], BEGUN[-1]], [*FAILED[:-2], FAILED[-1]]],
    ],
    ids=["first try", "retry", "retry that failed at once", "one of two"],
)
def test_a_node_that_fails_ends_the_wait_with_its_reason(
    shell: Shell, rows: list[list[str]]
) -> None:
    started = time.monotonic()
    out = wait_while(shell, rows)
    assert time.monotonic() - started < 20
    assert "ERROR master-1: worker-2 (failed at 12:05 no disk)\n" in out
    assert "  do: mend what the failed command above names" in out


def test_the_failure_of_an_earlier_update_leaves_the_retry_time_to_begin(shell: Shell) -> None:
    out = wait_while(shell, [FAILED_BEFORE], idle_s=3)
    looks = sum("get nodes" in call for call in shell.calls)
    assert looks >= 3
    assert "nothing moved for 3 s: worker-2 (failed at 12:00 no disk)" in out
    assert "a machine that cannot be reached has to be switched on" in out


def test_a_wait_is_short_only_where_nothing_is_under_way(shell: Shell) -> None:
    started = time.monotonic()
    joins = [line for line in FAILED_BEFORE if not line.startswith("db")]
    out = wait_while(shell, [joins], idle_s=1, stall_s=4)
    assert time.monotonic() - started > 2
    assert "2 node(s) not as wanted, and nothing moved for 4 s: db (not registered)" in out


def test_an_api_that_does_not_answer_at_first_makes_no_old_failure_a_new_one(shell: Shell) -> None:
    (shell.folder / "nodes").write_text("".join(f"{line}\n" for line in FAILED_BEFORE))
    shell.stub("kubectl", f'[[ $calls -gt 2 ]] && cat "{shell.folder}/nodes"')
    out = shell.run("wait_for_nodes", phase="nodes", values={**VALUES, "STALL_S": "9"}, fails=True)
    assert "nothing moved for 1 s: worker-2 (failed at 12:00 no disk)" in out


def test_nodes_that_come_one_by_one_are_waited_for(shell: Shell) -> None:
    steps = [READY[:number] for number in range(3, len(READY) + 1) for _ in range(2)]
    for number, listed in enumerate(steps, start=1):
        (shell.folder / f"nodes-{number}").write_text("".join(f"{line}\n" for line in listed))
    shell.stub("kubectl", f'cat "{shell.folder}/nodes-$calls"')
    shell.run("wait_for_nodes", phase="nodes", values={**VALUES, "STALL_S": "4"})


def test_without_a_network_of_ours_nodes_need_not_be_ready(shell: Shell) -> None:
    cluster(shell, [line.replace("True", "False") for line in READY])
    assert shell.run("missing", phase="nodes", values={**VALUES, "NETWORK": "0"}) == ""


def test_nodes_that_are_not_wanted_are_evicted_and_then_deleted(shell: Shell) -> None:
    cluster(shell, [*READY, node("worker-3")])
    shell.run("drain_nodes; delete_nodes", phase="nodes", values=VALUES)
    done = [text for text in changing(shell) if "worker" in text and "annot" not in text]
    cordoned, drained, deleted = done
    assert cordoned == "cordon worker-3"
    assert drained.startswith("drain worker-3 ")
    assert deleted == "delete node worker-3"


def test_all_that_leave_are_cordoned_before_one_is_drained(shell: Shell) -> None:
    cluster(shell, [*READY, node("worker-3"), node("worker-4")])
    shell.run("drain_nodes", phase="nodes", values=VALUES)
    verbs = [" ".join(text.split()[:2]) for text in changing(shell) if "annotate" not in text]
    assert verbs == ["cordon worker-3", "cordon worker-4", "drain worker-3", "drain worker-4"]


def test_a_drain_that_is_blocked_stops_before_anything_is_removed(shell: Shell) -> None:
    cluster(shell, [*READY, node("worker-3")], extra='*drain*) echo "disruption budget"; exit 1 ;;')
    out = shell.run("drain_nodes; delete_nodes", phase="nodes", values=VALUES, fails=True)
    assert "node worker-3 cannot be drained: disruption budget" in out
    assert not [text for text in changing(shell) if text.startswith("delete")]


def test_labels_are_set_once(shell: Shell) -> None:
    cluster(shell, READY)
    shell.run("mark_node labels label worker-1 'a=1 b=2' 'a=1 b=2'", phase="nodes", values=VALUES)
    assert changing(shell) == []


def test_labels_we_no_longer_want_go_and_those_of_others_stay(shell: Shell) -> None:
    cluster(shell, READY)
    shell.run(
        "mark_node labels label worker-1 'a=5 c=3' 'a=1 example.com/b=2 c=3'",
        phase="nodes",
        values=VALUES,
    )
    assert changing(shell) == [
        # Both, until it is done: a run that is cut off here is known to the next.
        "annotate --overwrite node worker-1 kube-ha.io/labels=a=1 example.com/b=2 c=3 a=5 c=3",
        "label node worker-1 --overwrite a=5 c=3 example.com/b-",
        "annotate --overwrite node worker-1 kube-ha.io/labels=a=5 c=3",
    ]


def test_the_last_label_goes_too(shell: Shell) -> None:
    cluster(shell, READY)
    shell.run("mark_node labels label worker-1 '' 'a=1'", phase="nodes", values=VALUES)
    assert changing(shell)[1:] == [
        "label node worker-1 --overwrite a-",
        "annotate --overwrite node worker-1 kube-ha.io/labels=-",
    ]


@pytest.mark.parametrize(
    ("before", "words", "call"),
    [
        ("k=v:NoSchedule", "k=v:NoExecute", "k=v:NoExecute k:NoSchedule-"),
        ("k=v:NoSchedule", "", "k:NoSchedule-"),
        ("k=:NoSchedule", "k=w:NoSchedule", "k=w:NoSchedule"),
        ("k=v:NoSchedule", "k=w:NoSchedule", "k=w:NoSchedule"),
    ],
)
def test_taints_follow_the_config(shell: Shell, before: str, words: str, call: str) -> None:
    cluster(shell, READY)
    shell.run(f"mark_node taints taint worker-1 '{words}' '{before}'", phase="nodes", values=VALUES)
    assert changing(shell)[1] == f"taint node worker-1 --overwrite {call}"


def test_marks_of_all_nodes_are_read_at_once(shell: Shell) -> None:
    cluster(shell, ["master-1|a=1|-", "worker-1|a=1 b=2|k=v:NoSchedule", "worker-2||"])
    values = {
        **VALUES,
        "LABELS": "master-1\ta=1\nworker-[1-2]\ta=1 b=2",
        "TAINTS": "master-1\t\nworker-[1-2]\tk=v:NoSchedule",
    }
    shell.run("mark_nodes", phase="nodes", values=values)
    assert changing(shell) == [
        "label node worker-2 --overwrite a=1 b=2",
        "annotate --overwrite node worker-2 kube-ha.io/labels=a=1 b=2",
        "taint node worker-2 --overwrite k=v:NoSchedule",
        "annotate --overwrite node worker-2 kube-ha.io/taints=k=v:NoSchedule",
    ]
    assert sum("get nodes" in call for call in shell.calls) == 1


def test_a_node_that_was_to_leave_and_stays_takes_work_again(shell: Shell) -> None:
    cluster(shell, [*READY, node("worker-3")])
    shell.run("drain_nodes", phase="nodes", values=VALUES)
    assert changing(shell)[0] == "annotate --overwrite node worker-3 kube-ha.io/leaving=true"
    shell.forget()
    wanted = {**VALUES, "WANTED": VALUES["WANTED"].replace("worker-[1-2]", "worker-[1-3]")}
    cluster(shell, ["worker-1 ", "worker-3 true", "worker-4 true"])
    shell.run("keep_nodes", phase="nodes", values=wanted)
    assert changing(shell) == [
        "uncordon worker-3",
        "annotate node worker-3 kube-ha.io/leaving-",
    ]


def row(number: int, name: str, address: str, *, learner: bool = False) -> str:
    urls = f"https://{address}:2380, https://{address}:2379"
    return f"{number}, started, {name}, {urls}, {str(learner).lower()}"


MEMBERS = [row(n, f"master-{n}", f"10.0.0.1{n}") for n in (1, 2, 3)]


def etcd(shell: Shell, rows: list[str], *, up: Sequence[int] = (1, 2, 3), leader: int = 1) -> None:
    """etcdctl knows these members, of which those numbered `up` answer; 127.0.0.1 is member 1."""
    (shell.folder / "members").write_text("".join(line + "\n" for line in rows))
    shell.stub(
        "etcdctl",
        f"""
answers() {{ [[ " {" ".join(map(str, up))} " == *" $1 "* ]]; }}
number() {{ case $1 in *127.0.0.1*) echo 1 ;; *) n=${{1%:*}}; echo "${{n: -1}}" ;; esac; }}
case "$*" in
  *"member list"*) cat "{shell.folder}/members" ;;
  *"member remove"*) grep -q "^${{@: -1}}," "{shell.folder}/members" && sed -i "/^${{@: -1}},/d" "{shell.folder}/members" ;;
  *health*) for e in ${{2//,/ }}; do answers "$(number "$e")" && echo "$e is healthy"; done ;;
  *status*)
    answers "$(number "$2")" || exit 1
    printf '"MemberID" : %d\n"Leader" : %d\n' "$(number "$2")" {leader} ;;
esac""",
    )


def removed(shell: Shell) -> list[str]:
    return [call.split()[-1] for call in shell.calls if "member remove" in call]


def asked(shell: Shell) -> list[str]:
    """What was asked of etcd, in order: members whose health was looked at, changes."""
    out = []
    for call in shell.calls:
        words = call.split()
        if "health" in words:
            out.append("health of " + ",".join(url[-6:-5] for url in words[2].split(",")))
        elif "remove" in words or "move-leader" in words:
            out.append(" ".join(words[words.index("8s") + 1 :]))
    return out


def test_a_member_that_is_not_wanted_is_removed_by_those_that_stay(shell: Shell) -> None:
    etcd(shell, MEMBERS)
    cluster(shell, [])
    shell.run("retire_members", phase="nodes", values=VALUES)
    assert removed(shell) == ["3"]


def test_a_member_stays_while_the_others_have_no_quorum_of_their_own(shell: Shell) -> None:
    etcd(shell, MEMBERS, up=[1, 3])
    out = shell.run("retire_members", phase="nodes", values=VALUES, fails=True)
    assert "etcd member master-3 cannot leave: of the 2 that would stay" in out
    assert removed(shell) == []


ONE = {**VALUES, "MEMBERS": "master-1=10.0.0.11"}


def test_members_leave_one_at_a_time_each_asked_for_the_quorum_of_the_rest(shell: Shell) -> None:
    etcd(shell, MEMBERS)
    cluster(shell, [])
    shell.run("retire_members", phase="nodes", values=ONE)
    assert asked(shell)[2:] == [
        "health of 1,3",
        "member remove 2",
        "health of 1",
        "member remove 3",
    ]


def test_dead_members_leave_first(shell: Shell) -> None:
    """Alive ones first would leave 2 of 4 voters."""
    five = [row(n, f"master-{n}", f"10.0.0.1{n}") for n in range(1, 6)]
    etcd(shell, five, up=[1, 2, 3])
    cluster(shell, [])
    shell.run("retire_members", phase="nodes", values=VALUES)
    assert removed(shell) == ["4", "5", "3"]


def test_a_leader_that_leaves_hands_over_to_a_member_that_stays_and_answers(shell: Shell) -> None:
    etcd(shell, MEMBERS, up=[2, 3], leader=3)
    cluster(shell, [])
    shell.stub("sleep")
    values = {**VALUES, "ETCD_ENDPOINTS": "https://10.0.0.12:2379"}
    shell.run("hand_over_leadership 3 https://10.0.0.13:2379", phase="nodes", values=values)
    assert asked(shell) == ["move-leader 2"]
    # A client that was refused while it moved does not meet the removal with its next try.
    assert shell.calls[-1] == "sleep 2"
    assert [call.split()[2] for call in shell.calls if "move-leader" in call] == [
        "https://10.0.0.13:2379"
    ]


def test_leadership_of_a_member_that_stays_is_left_alone(shell: Shell) -> None:
    etcd(shell, MEMBERS, leader=2)
    shell.stub("sleep")
    shell.run("hand_over_leadership 3 https://10.0.0.13:2379", phase="nodes", values=VALUES)
    assert asked(shell) == []
    assert "sleep 2" not in shell.calls


def test_a_removal_whose_answer_got_lost_counts(shell: Shell) -> None:
    etcd(shell, MEMBERS[:2])
    shell.run("removed 3", phase="nodes", values=VALUES)
    shell.stub("etcdctl", 'echo "unhealthy cluster"; exit 1')
    out = shell.run("removed 3", phase="nodes", values=VALUES, fails=True)
    assert out.startswith("unhealthy cluster\nERROR master-1")


def service(shell: Shell, addresses: list[str]) -> None:
    """The Service `kubernetes` has these endpoints; a patch is recorded."""
    (shell.folder / "slice").write_text("".join(f"{address}\n" for address in addresses))
    shell.stub("kubectl", f'case "$*" in *"get endpointslice"*) cat "{shell.folder}/slice" ;; esac')


def test_an_apiserver_without_its_member_leaves_the_service(shell: Shell) -> None:
    etcd(shell, MEMBERS)
    service(shell, ["10.0.0.11", "10.0.0.13", "10.0.0.130"])
    shell.run("out_of_service 10.0.0.13", phase="nodes", values=VALUES)
    assert any(call.endswith(" del /registry/masterleases/10.0.0.13") for call in shell.calls)
    (patch,) = (call.rpartition(" -p ")[2] for call in shell.calls if " patch " in call)
    assert json.loads(patch) == [
        {"op": "test", "path": "/endpoints/1/addresses/0", "value": "10.0.0.13"},
        {"op": "remove", "path": "/endpoints/1"},
    ]


def test_nothing_is_patched_where_the_apiserver_is_not_listed(shell: Shell) -> None:
    etcd(shell, MEMBERS)
    service(shell, ["10.0.0.11", "10.0.0.130"])
    shell.run("out_of_service 10.0.0.13", phase="nodes", values=VALUES)
    assert not [call for call in shell.calls if " patch " in call]


def test_pods_are_diverted_before_the_member_goes_though_it_puts_itself_back(shell: Shell) -> None:
    etcd(shell, MEMBERS)
    service(shell, ["10.0.0.11", "10.0.0.13"])
    patched = 'sed -i /10.0.0.13/d "$PWD/slice"; echo patched'
    shell.stub(
        "kubectl", f'case "$*" in *"get endpointslice"*) cat slice ;; *patch*) {patched} ;; esac'
    )
    # In the first pause it is back.
    shell.stub("sleep", "if [[ $calls == 1 ]]; then echo 10.0.0.13 >>slice; fi")
    shell.run("divert_from 10.0.0.13", phase="nodes", values=VALUES)
    seen = [word for call in shell.calls for word in call.split() if word in ("patch", "sleep")]
    assert seen == ["patch", "sleep", "patch", "sleep"]
    assert " get " in shell.calls[-1], "the last look finds nothing"


def test_an_apiserver_that_asks_other_members_goes_on_serving(shell: Shell) -> None:
    values = {**VALUES, "ETCD_ENDPOINTS": "https://10.0.0.21:2379"}
    shell.run("out_of_service 10.0.0.13", phase="nodes", values=values)
    assert shell.calls == []


@pytest.mark.parametrize(
    "rows",
    [
        MEMBERS[:1],
        [MEMBERS[0], row(2, "master-2", "10.0.0.12", learner=True)],
        [MEMBERS[0], MEMBERS[1].replace("started", "unstarted")],
    ],
)
def test_a_wanted_member_that_does_not_vote_is_named(shell: Shell, rows: list[str]) -> None:
    etcd(shell, rows)
    out = shell.run("expect_members", phase="nodes", values=VALUES, fails=True)
    assert "ERROR master-1: master-2=10.0.0.12 is no voting etcd member" in out


def test_wanted_members_that_vote_pass(shell: Shell) -> None:
    etcd(shell, MEMBERS)
    shell.run("expect_members", phase="nodes", values=VALUES)


def test_members_that_are_wanted_stay(shell: Shell) -> None:
    etcd(shell, MEMBERS[:2])
    shell.run("retire_members", phase="nodes", values=VALUES)
    assert removed(shell) == []


def test_an_etcd_that_does_not_answer_is_an_error_not_an_empty_list(shell: Shell) -> None:
    shell.stub("etcdctl", "echo 'deadline exceeded'; exit 1")
    out = shell.run("retire_members", phase="nodes", values=VALUES, fails=True)
    assert "ERROR master-1" in out


def maintained(shell: Shell, rows: list[str], wanted: str) -> list[str]:
    cluster(shell, rows)
    shell.run("maintain_nodes", phase="nodes", values={**VALUES, "MAINTENANCE": wanted})
    return changing(shell)


def test_maintenance_cordons_and_its_end_uncordons(shell: Shell) -> None:
    assert maintained(shell, ["worker-1||", "worker-2|true|true", "db||"], "worker-[1-1]") == [
        "annotate node worker-1 kube-ha.io/maintenance=true",
        "cordon worker-1",
        "uncordon worker-2",
        "annotate node worker-2 kube-ha.io/maintenance-",
    ]


def test_what_an_administrator_cordoned_stays_so_after_maintenance(shell: Shell) -> None:
    assert maintained(shell, ["worker-1||true", "db||true"], "worker-[1-1]") == [
        "annotate node worker-1 kube-ha.io/maintenance=cordoned-before"
    ]
    shell.forget()
    assert maintained(shell, ["worker-1|cordoned-before|true"], "") == [
        "annotate node worker-1 kube-ha.io/maintenance-"
    ]


def test_nodes_in_maintenance_are_left_alone(shell: Shell) -> None:
    assert maintained(shell, ["worker-1|true|true", "db||"], "worker-[1-1]") == []


def test_maintenance_of_a_node_that_leaves_is_not_ended(shell: Shell) -> None:
    """It would take new pods for a moment."""
    assert maintained(shell, ["worker-9|true|true"], "") == []
