"""The list of nodes: who is missing, who leaves, labels and taints that are ours."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping, Sequence

import pytest

from stacks.cluster import names as name_lists
from tests.scripts import node_list
from tests.scripts.shell import Shell

VALUES = {
    "WANTED": "master aaaaaaaaaaaaaaaa master-[1-3]\nworker bbbbbbbbbbbbbbbb worker-[1-2],db",
    "LABELS": "",
    "TAINTS": "",
    "MEMBERS": "master-1=10.0.0.11 master-2=10.0.0.12",
    "ETCD_ENDPOINTS": "https://127.0.0.1:2379",
    "STALL_S": "1",
    "IDLE_S": "1",
    "NETWORK": "1",
}


def node(name: str, applied: str = "bbbbbbbbbbbbbbbb", ready: str = "True", *told: str) -> str:
    """A row of the cluster's nodes; `told` is what it has begun, and what it failed with."""
    return "|".join((name, applied, ready, *told, "", "")[:5])


READY = [
    *(node(f"master-{number}", "aaaaaaaaaaaaaaaa") for number in (1, 2, 3)),
    *(node(name) for name in ("worker-1", "worker-2", "db")),
]


def cluster(
    shell: Shell,
    rows: list[str],
    extra: str = "",
    *,
    fields: Sequence[str] = node_list.TOLD,
    record: Mapping[str, str] | None = None,
) -> None:
    """kubectl lists these nodes, and holds this record of those that the stack has asked for."""
    (shell.folder / "nodes").write_text(node_list.listing(rows, fields))
    held = "" if record is None else json.dumps({"data": record})
    (shell.folder / "record").write_text(held)
    shell.stub(
        "kubectl",
        f"""case "$*" in {extra}
  *"get nodes"*) cat "{shell.folder}/nodes" ;;
  *"get configmap kube-ha-nodes"*) cat "{shell.folder}/record" ;;
  *"patch configmap kube-ha-nodes"*)
    cat >>"{shell.folder}/patches" # and what it makes of the record
    jq -c --slurpfile is "{shell.folder}/record" '{{data: (($is[0].data // {{}}) * .data | with_entries(select(.value != null)))}}' <(tail -n 1 "{shell.folder}/patches") >"{shell.folder}/record.new"
    mv "{shell.folder}/record.new" "{shell.folder}/record" ;;
esac""",
    )


def recorded(shell: Shell) -> dict[str, str]:
    text = (shell.folder / "record").read_text()
    found: dict[str, str] = json.loads(text or "{}").get("data", {})
    return found


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
        (node("worker-2", "bbbbbbbbbbbbbbbb", "False"), "busy worker-2 (not Ready)"),
        (node("worker-2", "bbbbbbbbbbbbbbbb", "Unknown"), "idle worker-2 (is unresponsive)"),
        (
            node("worker-2", "bbbbbbbbbbbbbbbb", "Unknown", "bbbbbbbbbbbbbbbb"),
            "busy worker-2 (not Ready)",
        ),
        (
            node("worker-2", "aaaaaaaaaaaaaaaa"),
            "idle worker-2 (has not applied this configuration)",
        ),
        (
            node("worker-2", "aaaaaaaaaaaaaaaa", "Unknown"),
            "idle worker-2 (has not applied this configuration, and is unresponsive)",
        ),
        (
            node("worker-2", "aaaaaaaaaaaaaaaa", "Unknown", "bbbbbbbbbbbbbbbb"),
            "busy worker-2 (has begun to apply this configuration)",
        ),
        # It has joined just now.
        (node("worker-2", ""), "busy worker-2 (has not applied this configuration)"),
        # Of another configuration.
        (
            node("worker-2", "aaaaaaaaaaaaaaaa", "True", "", "cccccccccccccccc 12:00 no disk"),
            "idle worker-2 (has not applied this configuration)",
        ),
        (
            node("worker-2", "aaaaaaaaaaaaaaaa", "False", "", "bbbbbbbbbbbbbbbb 12:00 no disk"),
            "failed worker-2 (failed at 12:00 no disk)",
        ),
        # A revert: what it had applied was worked on again.
        (
            node("worker-2", "bbbbbbbbbbbbbbbb", "True", "", "bbbbbbbbbbbbbbbb 12:00 no disk"),
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
    """What the wait says when the cluster lists these rows, one list a look, the last one forever."""
    for number, listed in enumerate(rows, start=1):
        (shell.folder / f"nodes-{number}").write_text(node_list.listing(listed))
    last = len(rows)
    shell.stub("kubectl", f'cat "{shell.folder}/nodes-$((calls < {last} ? calls : {last}))"')
    values = {**VALUES, "STALL_S": str(stall_s), "IDLE_S": str(idle_s)}
    return shell.run("wait_for_nodes", phase="nodes", values=values, fails=True)


BEGUN = without_worker_2(node("worker-2", "aaaaaaaaaaaaaaaa", "True", "bbbbbbbbbbbbbbbb"))
FAILED = without_worker_2(
    node("worker-2", "aaaaaaaaaaaaaaaa", "False", "", "bbbbbbbbbbbbbbbb 12:05 no disk")
)
FAILED_BEFORE = without_worker_2(
    node("worker-2", "aaaaaaaaaaaaaaaa", "False", "", "bbbbbbbbbbbbbbbb 12:00 no disk")
)


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
    assert "  do: fix what the failed command above names" in out


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
    (shell.folder / "nodes").write_text(node_list.listing(FAILED_BEFORE))
    shell.stub("kubectl", f'[[ $calls -gt 2 ]] && cat "{shell.folder}/nodes"')
    out = shell.run("wait_for_nodes", phase="nodes", values={**VALUES, "STALL_S": "9"}, fails=True)
    assert "nothing moved for 1 s: worker-2 (failed at 12:00 no disk)" in out


def test_nodes_that_come_one_by_one_are_waited_for(shell: Shell) -> None:
    steps = [READY[:number] for number in range(3, len(READY) + 1) for _ in range(2)]
    for number, listed in enumerate(steps, start=1):
        (shell.folder / f"nodes-{number}").write_text(node_list.listing(listed))
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
    assert cordoned == "cordon -- worker-3"
    assert drained.startswith("drain --ignore-daemonsets ")
    assert drained.endswith(" -- worker-3")
    assert deleted == "delete -- node worker-3"


def test_all_that_leave_are_cordoned_before_one_is_drained(shell: Shell) -> None:
    cluster(shell, [*READY, node("worker-3"), node("worker-4")])
    shell.run("drain_nodes", phase="nodes", values=VALUES)
    verbs = [
        f"{text.split()[0]} {text.split()[-1]}" for text in changing(shell) if "annot" not in text
    ]
    assert verbs == ["cordon worker-3", "cordon worker-4", "drain worker-3", "drain worker-4"]


def test_a_drain_that_is_blocked_stops_before_anything_is_removed(shell: Shell) -> None:
    cluster(shell, [*READY, node("worker-3")], extra='*drain*) echo "disruption budget"; exit 1 ;;')
    out = shell.run("drain_nodes; delete_nodes", phase="nodes", values=VALUES, fails=True)
    assert "node worker-3 cannot be drained: disruption budget" in out
    assert not [text for text in changing(shell) if text.startswith("delete")]


def marked(shell: Shell, nodes: Sequence[dict[str, object]], **values: str) -> list[str]:
    """What is set and taken away where the cluster lists these nodes. Calls of one kind run side by side: sorted."""
    (shell.folder / "nodes").write_text(node_list.listed(*nodes))
    code = "read_record; mark_nodes; settle_nodes; echo changes=$changes"
    shell.run(code, phase="nodes", values={**VALUES, **values})
    calls = [text.replace(" --overwrite -- node", "") for text in changing(shell)]
    kinds = itertools.groupby(calls, key=lambda text: text.split()[0])
    return [text for _, one in kinds for text in sorted(one)]


def labelled(name: str, labels: str = "", taints: str = "", **written: str) -> dict[str, object]:
    """A Node with these labels, and taints "key=value:effect", as it is and not as it was asked for."""
    found = node_list.one(name, **written)
    metadata, spec = found["metadata"], found["spec"]
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    metadata["labels"] = dict(word.split("=") for word in labels.split())
    spec["taints"] = []
    for word in taints.split():
        key, _, rest = word.partition("=")
        value, _, effect = rest.partition(":")
        spec["taints"].append({"key": key, "effect": effect, **({"value": value} if value else {})})
    return found


def test_labels_are_set_once(shell: Shell) -> None:
    cluster(shell, [], record={"known": "worker-1", "labels": "worker-1\ta=1", "taints": ""})
    values = {"LABELS": "worker-1\ta=1 b=2"}
    assert marked(shell, [labelled("worker-1", "a=1")], **values) == ["label worker-1 b=2"]
    # Both were known before the first was set: a run that is cut off there is known to the next.
    patches = (shell.folder / "patches").read_text().splitlines()
    assert json.loads(patches[0]) == {"data": {"labels": "worker-1\ta=1\nworker-1\ta=1 b=2\n"}}
    assert recorded(shell)["labels"] == "worker-1\ta=1 b=2"
    shell.forget()
    (shell.folder / "patches").unlink()
    assert marked(shell, [labelled("worker-1", "a=1 b=2")], **values) == []


def test_nodes_with_the_same_to_do_are_marked_in_calls_of_twenty(shell: Shell) -> None:
    cluster(shell, [])
    nodes = [labelled(f"worker-{number}", "a=1") for number in range(1, 251)]
    nodes.append(labelled("worker-251"))
    calls = marked(shell, nodes, LABELS="worker-[1-251]\ta=1 b=2")
    words = [call.split() for call in calls]
    sizes = sorted(len([name for name in one if name.startswith("worker-")]) for one in words)
    assert sizes == [1, 10, *([20] * 12)]
    assert ["label", "worker-251", "a=1", "b=2"] in words
    names = [name for one in words for name in one if name.startswith("worker-")]
    assert sorted(names) == sorted(f"worker-{number}" for number in range(1, 252))


def test_one_call_of_those_side_by_side_that_fails_ends_the_phase(shell: Shell) -> None:
    cluster(shell, [], '*"label "*worker-51*) echo refused >&2; exit 1 ;;')
    nodes = [labelled(f"worker-{number}") for number in range(1, 131)]
    (shell.folder / "nodes").write_text(node_list.listed(*nodes))
    values = {**VALUES, "LABELS": "worker-[1-130]\ta=1"}
    code = "{ read_record; mark_nodes; echo went on; } 8>&2"
    out = shell.run(code, phase="nodes", values=values, fails=True)
    assert "went on" not in out
    assert out.count("ERROR") == 1


def test_once_all_is_as_wanted_nothing_is_written(shell: Shell) -> None:
    values = {"LABELS": "worker-1\ta=1", "TAINTS": "worker-1\tk=v:NoSchedule"}
    node = labelled("worker-1", "a=1", "k=v:NoSchedule")
    cluster(shell, [])
    marked(shell, [node], **values)
    shell.forget()
    assert marked(shell, [node], **values) == []
    assert not [call for call in shell.calls if "patch" in call]


def test_labels_we_no_longer_want_go_and_those_of_others_stay(shell: Shell) -> None:
    before = "worker-[1-2]\ta=1 example.com/b=2 c=3"
    cluster(shell, [], record={"known": "worker-1", "labels": before, "taints": ""})
    node = labelled("worker-1", "a=1 example.com/b=2 c=3 of-others=4")
    assert marked(shell, [node], LABELS="worker-1\ta=5 c=3") == [
        "label worker-1 a=5 example.com/b-"
    ]


def test_the_last_label_goes_too(shell: Shell) -> None:
    cluster(shell, [], record={"known": "worker-1", "labels": "worker-1\ta=1", "taints": ""})
    assert marked(shell, [labelled("worker-1", "a=1")], LABELS="worker-1\t") == [
        "label worker-1 a-"
    ]
    assert recorded(shell) == {"known": "master-[1-3],worker-[1-2],db", "labels": "worker-1\t", "taints": ""}  # fmt: skip


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
    cluster(shell, [], record={"known": "", "labels": "", "taints": f"worker-1\t{before}"})
    node = labelled("worker-1", "", before)
    assert marked(shell, [node], TAINTS=f"worker-1\t{words}") == [f"taint worker-1 {call}"]


def test_annotations_of_a_network_follow_the_config_and_those_of_others_stay(shell: Shell) -> None:
    key = "projectcalico.org/RouteReflectorClusterID"
    wanted = f"worker-1\t{key}=244.0.0.1\nworker-2\t"
    cluster(shell, [], record={"known": "", "labels": "", "taints": ""})
    both = [labelled("worker-1", a="1"), labelled("worker-2")]
    assert marked(shell, both, ANNOTATIONS=wanted) == [f"annotate worker-1 {key}=244.0.0.1"]
    assert recorded(shell)["annotations"] == wanted
    shell.forget()
    both[0]["metadata"]["annotations"] |= {key: "244.0.0.1", "of-others": "x"}  # type: ignore[index]
    assert marked(shell, both, ANNOTATIONS=wanted) == []
    swapped = f"worker-1\t\nworker-2\t{key}=244.0.0.1"
    assert marked(shell, both, ANNOTATIONS=swapped) == [
        f"annotate worker-1 {key}-",
        f"annotate worker-2 {key}=244.0.0.1",
    ]


def test_a_network_that_writes_no_annotations_has_none_recorded(shell: Shell) -> None:
    cluster(shell, [])
    marked(shell, [labelled("worker-1")], LABELS="worker-1\ta=1")
    assert "annotations" not in recorded(shell)


def test_a_node_that_joined_anew_under_its_name_gets_all_of_its_marks(shell: Shell) -> None:
    """The record tells what the Node before had."""
    lines = {"LABELS": "worker-[1-2]\ta=1", "TAINTS": "worker-[1-2]\tk=v:NoSchedule"}
    record = {"known": "", "labels": lines["LABELS"], "taints": lines["TAINTS"]}
    cluster(shell, [], record=record)
    old = labelled("worker-1", "a=1", "k=v:NoSchedule")
    assert marked(shell, [old, labelled("worker-2")], **lines) == [
        "label worker-2 a=1",
        "taint worker-2 k=v:NoSchedule",
    ]


def test_marks_that_an_older_version_remembered_on_the_nodes_move_to_the_record(
    shell: Shell,
) -> None:
    cluster(shell, [])
    node = labelled("worker-1", "a=1 b=2", labels_="x")
    node["metadata"]["annotations"] = {"kube-ha.io/labels": "a=1 b=2", "kube-ha.io/taints": "-"}  # type: ignore[index]
    assert marked(shell, [node], LABELS="worker-1\ta=1") == [
        "label worker-1 b-",
        "annotate --all -- nodes kube-ha.io/labels-",
        "annotate --all -- nodes kube-ha.io/taints-",
    ]
    assert recorded(shell)["labels"] == "worker-1\ta=1"


def test_a_node_that_was_to_leave_and_stays_takes_work_again(shell: Shell) -> None:
    cluster(shell, [*READY, node("worker-3")])
    shell.run("drain_nodes", phase="nodes", values=VALUES)
    assert changing(shell)[0] == "annotate --overwrite -- node worker-3 kube-ha.io/leaving=true"
    shell.forget()
    wanted = {**VALUES, "WANTED": VALUES["WANTED"].replace("worker-[1-2]", "worker-[1-3]")}
    rows = ["worker-1|", "worker-3|true", "worker-4|true"]
    cluster(shell, rows, fields=["leaving"])
    shell.run("keep_nodes", phase="nodes", values=wanted)
    assert changing(shell) == [
        "uncordon -- worker-3",
        "annotate -- node worker-3 kube-ha.io/leaving-",
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
  *"get /kube-ha/"*) answers "$(number "$2")" && echo '"ClusterID" : 7' ;;
  *status*)
    answers "$(number "$2")" || exit 1
    printf '"MemberID" : %d\n"Leader" : %d\n' "$(number "$2")" {leader} ;;
esac""",
    )


def removed(shell: Shell) -> list[str]:
    return [call.split()[-1] for call in shell.calls if "member remove" in call]


def asked(shell: Shell) -> list[str]:
    """What was asked of etcd, in order: which members answer, changes."""
    out = []
    for call in shell.calls:
        words = call.split()
        if "/kube-ha/cluster" in words:
            out.append(f"whether {words[2][-6:-5]} answers")
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
        "whether 1 answers",
        "whether 3 answers",
        "member remove 2",
        "whether 1 answers",
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
    assert asked(shell) == ["whether 1 answers", "whether 2 answers", "move-leader 2"]
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
    shell.run("member_removed 3", phase="nodes", values=VALUES)
    shell.stub("etcdctl", 'echo "unhealthy cluster"; exit 1')
    out = shell.run("member_removed 3", phase="nodes", values=VALUES, fails=True)
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
    assert "ERROR master-1: master-2=10.0.0.12 is not a voting etcd member" in out


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
    cluster(shell, rows, fields=["maintenance", "cordoned"])
    shell.run("maintain_nodes", phase="nodes", values={**VALUES, "MAINTENANCE": wanted})
    return changing(shell)


def test_maintenance_cordons_and_its_end_uncordons(shell: Shell) -> None:
    assert maintained(shell, ["worker-1||", "worker-2|true|true", "db||"], "worker-[1-1]") == [
        "annotate -- node worker-1 kube-ha.io/maintenance=true",
        "cordon -- worker-1",
        "uncordon -- worker-2",
        "annotate -- node worker-2 kube-ha.io/maintenance-",
    ]


def test_what_an_administrator_cordoned_stays_so_after_maintenance(shell: Shell) -> None:
    assert maintained(shell, ["worker-1||true", "db||true"], "worker-[1-1]") == [
        "annotate -- node worker-1 kube-ha.io/maintenance=cordoned-before"
    ]
    shell.forget()
    assert maintained(shell, ["worker-1|cordoned-before|true"], "") == [
        "annotate -- node worker-1 kube-ha.io/maintenance-"
    ]


def test_nodes_in_maintenance_are_left_alone(shell: Shell) -> None:
    assert maintained(shell, ["worker-1|true|true", "db||"], "worker-[1-1]") == []


def test_maintenance_of_a_node_that_leaves_is_not_ended(shell: Shell) -> None:
    """It would take new pods for a moment."""
    assert maintained(shell, ["worker-9|true|true"], "") == []


@pytest.mark.parametrize(
    ("ready", "then", "ends"),
    [
        ("Unknown", "Unknown", True),
        ("True", "Unknown", True),
        ("True", "True", False),
        ("False", "False", False),
    ],
)
def test_a_dead_node_that_is_removed_is_not_drained_for_ever(
    shell: Shell,
    ready: str,
    then: str,
    *,
    ends: bool,
) -> None:
    """A PodDisruptionBudget counts the pods of a dead machine as well, and refuses to let them go."""
    first, later = (json.dumps(node_list.one("worker-9", ready=word)) for word in (ready, then))
    shell.stub(
        "kubectl",
        f"""case "$*" in
*" get "*"node worker-9") if [[ -e drained ]]; then echo '{later}'; else echo '{first}'; fi ;;
*" drain "*) touch drained; echo "Cannot evict pod"; exit 1 ;;
esac""",
    )
    out = shell.run("drain_node worker-9", phase="nodes", values=VALUES, fails=not ends)
    assert ("cannot be drained" in out) != ends
    assert (shell.folder / "drained").exists() == (ready != "Unknown")


BOTH = {"CONTROL_PLANE": "master-[1-3]", "ABSENT_BUDGET": "1"}
A, B = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"


@pytest.mark.parametrize(
    ("rows", "said", "left"),
    [
        pytest.param({"worker-1": node("worker-1", B, "Unknown")}, {}, "", id="a worker of the budget"),
        pytest.param({"worker-1": node("worker-1", A, "Unknown")}, {}, "worker-1", id="it has something to apply"),
        pytest.param({"worker-1": node("worker-1", B, "Unknown", B)}, {}, "worker-1", id="it has begun to"),
        pytest.param({"worker-1": node("worker-1", B, "False")}, {}, "worker-1", id="it answers"),
        pytest.param({"worker-1": ""}, {}, "worker-1", id="it never joined"),
        pytest.param({"worker-1": node("worker-1", B, "Unknown")}, {"ABSENT_BUDGET": "0"}, "worker-1", id="no budget"),
        pytest.param(
            {name: node(name, B, "Unknown") for name in ("worker-1", "db")}, {}, "db worker-1", id="beyond the budget"
        ),
        pytest.param(
            {name: node(name, B, "Unknown") for name in ("worker-1", "db")}, {"MAINTENANCE": "db"}, "", id="in maintenance"
        ),
        pytest.param({"master-1": node("master-1", A, "Unknown")}, {}, "", id="a master of three"),
        pytest.param(
            {name: node(name, A, "Unknown") for name in ("master-1", "master-2")}, {}, "master-1 master-2", id="most masters"
        ),
    ],
)  # fmt: skip
def test_unresponsive_nodes_are_left_out_within_the_budget(
    shell: Shell, rows: dict[str, str], said: dict[str, str], left: str
) -> None:
    cluster(shell, [row for row in (rows.get(r.split("|")[0], r) for r in READY) if row])
    found = shell.run("missing", phase="nodes", values={**VALUES, **BOTH, **said})
    assert " ".join(line.split()[1] for line in found.splitlines()) == left


def test_who_is_absent_stays_and_nobody_waits_for_it(shell: Shell) -> None:
    rows = [*READY, node("worker-3", "", "Unknown")]
    cluster(shell, rows, record={"known": "master-[1-3],worker-[1-3],db"})
    values = {**VALUES, **BOTH, "ABSENT": "worker-3"}
    code = "missing; read_record; drain_nodes; delete_nodes; tell_strangers; settle_nodes"
    assert shell.run(code, phase="nodes", values=values) == ""
    assert changing(shell) == []
    assert "worker-3" in recorded(shell)["known"]
    cluster(shell, rows, record={"known": "master-[1-3],worker-[1-3],db"})
    shell.run("read_record; drain_nodes", phase="nodes", values={**VALUES, **BOTH})
    assert any("cordon -- worker-3" in call for call in changing(shell))
