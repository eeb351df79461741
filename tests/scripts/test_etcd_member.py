"""How a machine becomes a member: data there, joining, a lost incarnation, founding, and when to refuse."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from tests.scripts.machine import Machine
from tests.scripts.real_etcd import LOOPBACK
from tests.scripts.shell import Shell

# Loopback addresses stand for machines: ports of these can be open, closed, or out of reach.
ME, SECOND, THIRD, OTHER = (f"{LOOPBACK}.{number}" for number in (1, 2, 3, 9))
VALUES = {
    "ADDRESS": ME,
    "MEMBERS": f"master-1={ME} master-2={SECOND} master-3={THIRD}",
    "BOOTSTRAP": "0",
    "ARTEFACTS": "etcd http://mirror/etcd.tar.gz 00",
    "ARCH_DIR": "etcd-v3",
    "ETCD_ENV": "ETCD_NAME=master-1",
    "ETCD_UNIT": "[Service]",
}
# The stub of etcdctl says who answers.
FILES = "DATA=$PWD/data BOOTSTRAP_ENV=$PWD/bootstrap.env; open_port() { :; }"


def row(number: int, state: str, name: str, address: str, *, learner: bool = False) -> str:
    urls = f"https://{address}:2380, https://{address}:2379"
    return f"{number}, {state}, {name}, {urls}, {str(learner).lower()}"


def members(shell: Shell, *rows: str) -> None:
    """etcdctl answers `member list` with these rows at the second machine; adding adds a row."""
    (shell.folder / "rows").write_text("".join(line + "\n" for line in rows))
    shell.stub(
        "etcdctl",
        f"""
at=$2
case "$*" in
  *"get /kube-ha/"*) [[ $at == *{SECOND}* ]] && echo '"ClusterID" : 7' ;;
  *"member list"*) [[ $at == *{SECOND}* ]] && cat "{shell.folder}/rows" ;;
  *status*) exit 1 ;;
  *"member add"*) echo "9, unstarted, , https://{ME}:2380, , true" >>"{shell.folder}/rows" ;;
  *"member remove"*) sed -i "/^${{@: -1}},/d" "{shell.folder}/rows" ;;
esac""",
    )


def changing(shell: Shell) -> list[str]:
    """Calls of etcdctl that change membership, without their options."""
    words = (call.partition("--command-timeout 8s ")[2] for call in shell.calls)
    return [text for text in words if text.startswith(("member add", "member rem", "member pro"))]


@pytest.fixture
def other_etcd() -> Iterator[None]:
    """Something listens on the peer port of the second machine."""
    with socket.create_server((SECOND, 2380)):
        yield


FIND = """
rows=$(identities "$ADDRESS")
if read -r id _ < <(our_cluster "$rows"); then find_cluster "$rows" "$id"; else echo none; fi
"""


def test_a_cluster_is_found_at_a_member_with_a_quorum_behind_it(shell: Shell) -> None:
    members(shell, row(1, "started", "master-2", SECOND))
    out = shell.run(f"{FILES}; {FIND}", phase="etcd-member", values=VALUES)
    assert out.strip() == SECOND


def test_no_member_that_answers_is_no_cluster_and_no_error(shell: Shell) -> None:
    shell.stub("etcdctl", "exit 1")
    out = shell.run(f"{FILES}; {FIND}", phase="etcd-member", values=VALUES)
    assert out.strip() == "none"


def test_joining_adds_a_learner_and_lists_all_members(shell: Shell) -> None:
    members(shell, row(1, "started", "master-2", SECOND))
    shell.run(f"{FILES}; add_learner {SECOND}", phase="etcd-member", values=VALUES)
    assert changing(shell) == [f"member add master-1 --learner --peer-urls https://{ME}:2380"]
    assert (shell.folder / "bootstrap.env").read_text() == (
        f"ETCD_INITIAL_CLUSTER=master-2=https://{SECOND}:2380,master-1=https://{ME}:2380\n"
        "ETCD_INITIAL_CLUSTER_STATE=existing\n"
        "ETCD_INITIAL_CLUSTER_TOKEN=dev-0123456789ab\n"
    )


HALF_JOINED = (
    row(1, "started", "master-2", SECOND),
    row(9, "unstarted", "", ME, learner=True),
)
AGAIN = ["member remove 9", f"member add master-1 --learner --peer-urls https://{ME}:2380"]


def test_joining_is_taken_up_where_it_broke_off(shell: Shell) -> None:
    members(shell, *HALF_JOINED)
    (shell.folder / "bootstrap.env").write_text("ETCD_INITIAL_CLUSTER_STATE=existing\n")
    shell.run(f"{FILES}; add_learner {SECOND}", phase="etcd-member", values=VALUES)
    assert changing(shell) == []
    assert f"master-1=https://{ME}:2380" in (shell.folder / "bootstrap.env").read_text()


@pytest.mark.parametrize("mark", [None, "ETCD_INITIAL_CLUSTER_STATE=new\n"])
def test_an_entry_that_this_machine_did_not_add_is_made_anew(
    shell: Shell, mark: str | None
) -> None:
    """A machine rebuilt blank. Its member may have begun a log before it had told its name; an etcd
    that starts again without it panics ("tocommit(306) is out of range"), forever.
    """
    members(shell, *HALF_JOINED)
    if mark:
        (shell.folder / "bootstrap.env").write_text(mark)
    out = shell.run(f"{FILES}; add_learner {SECOND}", phase="etcd-member", values=VALUES)
    assert "lost incarnation" in out
    assert changing(shell) == AGAIN
    assert "STATE=existing" in (shell.folder / "bootstrap.env").read_text()


def test_a_learner_that_is_not_wanted_any_more_makes_room(shell: Shell) -> None:
    """etcd takes one learner at a time; this one's machine was given up while it joined."""
    given_up = row(5, "unstarted", "", OTHER, learner=True)
    members(shell, row(1, "started", "master-2", SECOND), given_up)
    out = shell.run(f"{FILES}; add_learner {SECOND}", phase="etcd-member", values=VALUES)
    assert f"removing learner https://{OTHER}:2380" in out
    assert changing(shell)[0] == "member remove 5"
    assert OTHER not in (shell.folder / "bootstrap.env").read_text()


def test_learners_that_are_wanted_and_voters_that_are_not_stay(shell: Shell) -> None:
    wanted = row(5, "unstarted", "", THIRD, learner=True)
    leaving = row(6, "started", "master-9", OTHER)
    members(shell, row(1, "started", "master-2", SECOND), wanted, leaving)
    shell.run(f"{FILES}; add_learner {SECOND}", phase="etcd-member", values=VALUES)
    assert not [call for call in changing(shell) if "remove" in call]


def test_a_member_that_lost_its_data_is_replaced(shell: Shell) -> None:
    members(shell, row(1, "started", "master-2", SECOND), row(7, "started", "master-1", ME))
    out = shell.run(f"{FILES}; add_learner {SECOND}", phase="etcd-member", values=VALUES)
    assert "lost incarnation" in out
    assert changing(shell) == [
        "member remove 7",
        f"member add master-1 --learner --peer-urls https://{ME}:2380",
    ]


def test_a_member_without_name_gets_one_that_etcd_accepts(shell: Shell) -> None:
    members(
        shell,
        row(1, "started", "master-2", SECOND),
        row(8, "unstarted", "", THIRD, learner=True),
    )
    shell.run(f"{FILES}; add_learner {SECOND}", phase="etcd-member", values=VALUES)
    cluster = (shell.folder / "bootstrap.env").read_text().splitlines()[0]
    assert f"8=https://{THIRD}:2380" in cluster


def test_founding_is_refused_where_it_was_not_allowed(shell: Shell) -> None:
    out = shell.run(f"{FILES}; found_cluster", phase="etcd-member", values=VALUES, fails=True)
    assert "no etcd member with a quorum answers" in out
    assert "restore a snapshot" in out
    assert not (shell.folder / "bootstrap.env").exists()


@pytest.mark.usefixtures("other_etcd")
def test_founding_is_refused_beside_an_etcd_that_runs(shell: Shell) -> None:
    values = {**VALUES, "BOOTSTRAP": "1"}
    out = shell.run(f"{FILES}; found_cluster", phase="etcd-member", values=values, fails=True)
    assert f"etcd on master-2={SECOND} runs, but without a quorum" in out
    assert not (shell.folder / "bootstrap.env").exists()


def test_founding_is_refused_while_a_machine_does_not_answer(shell: Shell) -> None:
    shell.stub("timeout", "exit 124")
    values = {**VALUES, "BOOTSTRAP": "1"}
    out = shell.run(f"{FILES}; found_cluster", phase="etcd-member", values=values, fails=True)
    assert f"cannot tell whether etcd on master-2={SECOND} has data" in out
    assert not (shell.folder / "bootstrap.env").exists()


def test_founding_makes_a_cluster_of_one(shell: Shell) -> None:
    values = {**VALUES, "BOOTSTRAP": "1"}
    shell.run(f"{FILES}; found_cluster", phase="etcd-member", values=values)
    told = (shell.folder / "bootstrap.env").read_text().splitlines()
    assert told[:2] == [
        f"ETCD_INITIAL_CLUSTER=master-1=https://{ME}:2380",
        "ETCD_INITIAL_CLUSTER_STATE=new",
    ]
    assert told[2].startswith("ETCD_INITIAL_CLUSTER_TOKEN=dev-0123456789ab-")
    # Founded twice, these are two clusters: neither is taken for the other.
    shell.run(f"{FILES}; found_cluster", phase="etcd-member", values=values)
    assert (shell.folder / "bootstrap.env").read_text().splitlines()[2] != told[2]


def test_a_machine_that_was_a_member_founds_nothing_whatever_it_is_told(shell: Shell) -> None:
    """The command that founds is in the state forever, and an engine may run it again."""
    shell.state.mkdir(parents=True)
    (shell.state / "etcd.cluster").write_text("4711 1\n")
    values = {**VALUES, "BOOTSTRAP": "1"}
    out = shell.run(f"{FILES}; found_cluster", phase="etcd-member", values=values, fails=True)
    assert "this machine's member was of etcd cluster 1267, and its data is gone" in out
    assert not (shell.folder / "bootstrap.env").exists()


STATUS = '"MemberID" : 255\n"IsLearner" : {}\n'


def test_a_voter_is_not_promoted_again(shell: Shell) -> None:
    (shell.folder / "status").write_text(STATUS.format("false"))
    shell.stub("etcdctl", f'[[ "$*" != *status* ]] || cat "{shell.folder}/status"')
    shell.run(f"{FILES}; promote", phase="etcd-member", values=VALUES)
    assert changing(shell) == []


def test_a_learner_is_promoted_when_it_has_caught_up(shell: Shell) -> None:
    (shell.folder / "status").write_text(STATUS.format("true"))
    shell.stub(
        "etcdctl",
        f"""
case "$*" in
  *status*) cat "{shell.folder}/status" ;;
  *promote*) [[ $2 == *{THIRD}* && $calls -gt 6 ]] ;;
esac""",
    )
    out = shell.run(
        f'{FILES}; promote; echo "changes=$changes"', phase="etcd-member", values=VALUES
    )
    assert changing(shell)[-1] == "member promote ff"
    assert "changes=1" in out


def test_a_promotion_whose_answer_was_lost_is_seen(shell: Shell) -> None:
    shell.stub(
        "etcdctl",
        """
case "$*" in
  *status*) printf '"MemberID" : 255\\n"IsLearner" : %s\\n' "$([[ $calls -gt 3 ]] && echo false || echo true)" ;;
  *promote*) exit 1 ;;
esac""",
    )
    shell.run(f"{FILES}; promote", phase="etcd-member", values=VALUES)


THREE = [
    row(1, "started", "master-1", ME),
    row(2, "started", "master-2", SECOND),
    row(3, "started", "master-3", THIRD),
]


def voters(shell: Shell, rows: list[str], *, healthy: tuple[str, ...], leader: bool = True) -> None:
    """A cluster as seen by this member, in which those at the given addresses are healthy."""
    (shell.folder / "rows").write_text("".join(line + "\n" for line in rows))
    shell.stub("systemctl")
    shell.stub(
        "etcdctl",
        f"""
case "$*" in
  *"member list"*) cat "{shell.folder}/rows" ;;
  *"get /kube-ha/"*)
    for address in 127.0.0.1 {" ".join(healthy)}; do
      if [[ $2 == *$address* ]]; then echo '"ClusterID" : 7'; exit; fi
    done
    exit 1 ;;
  *status*) echo '"MemberID" : 14841639068965178418' ;;
  *move-leader*) exit {0 if leader else 1} ;;
esac""",
    )


def test_a_restart_that_would_cost_the_quorum_is_refused(shell: Shell) -> None:
    voters(shell, THREE, healthy=(SECOND,))
    out = shell.run(f"{FILES}; before_restart", phase="etcd-member", values=VALUES, fails=True)
    assert "only 1 of the other 2 voters answer" in out


def test_a_restart_hands_the_leadership_over_first(shell: Shell) -> None:
    voters(shell, THREE, healthy=(SECOND, THIRD))
    shell.stub("sleep")
    shell.run(f"{FILES}; before_restart", phase="etcd-member", values=VALUES)
    moved, rest = shell.calls[-2:]
    # All 64 bits of it: the awk of Debian knows 32.
    assert moved.endswith("move-leader cdf818194e3a8c32")
    # A client that was refused while it moved does not meet the restart with its next try.
    assert rest == "sleep 2"


def test_a_follower_restarts_at_once(shell: Shell) -> None:
    voters(shell, THREE, healthy=(SECOND, THIRD), leader=False)
    shell.stub("sleep")
    shell.run(f"{FILES}; before_restart", phase="etcd-member", values=VALUES)
    assert "sleep 2" not in shell.calls


BECOME = """
before_restart() { echo "steps aside"; }
mkdir -p "$STATE" "$DATA/member"
put 644 "$PWD/unit" <<<"[Service]"
etcd_has_data() { :; }
systemctl() { :; }
for name in set_aside_foreign join_or_found start_etcd promote end_nospace tell_alarms prove_cluster answers; do
  eval "$name() { :; }"
done
"""


def test_it_steps_aside_before_a_restart_and_never_without_one(shell: Shell) -> None:
    code = f'{FILES}; {BECOME} become_member "$PWD/unit"'
    assert "steps aside" in shell.run(code, phase="etcd-member", values=VALUES)
    mark = 'sha256sum -- "$PWD/unit" >"$STATE/etcd.service.sum"'
    code = f'{FILES}; {BECOME} {mark}; become_member "$PWD/unit"'
    assert "steps aside" not in shell.run(code, phase="etcd-member", values=VALUES)


ASIDE = """
others_serve() { :; }
nothing_on() { echo "closed $1" >>"$PWD/calls"; }
api_server_ended() { echo "ended" >>"$PWD/calls"; }
api_server_ready() { :; }
steady() { echo "steady" >>"$PWD/calls"; }
"""


def test_the_api_server_beside_it_drains_before_a_restart_and_comes_back_after_it(
    shell: Shell,
) -> None:
    manifest = shell.root / "etc/kubernetes/manifests/kube-apiserver.yaml"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("kind: Pod\n")
    voters(shell, THREE, healthy=(SECOND, THIRD))
    shell.run(f"{FILES}{ASIDE} before_restart", phase="etcd-member", values=VALUES)
    assert not manifest.exists()
    closed, ended, moved = (
        next(n for n, call in enumerate(shell.calls) if word in call)
        for word in ("closed 6443", "ended", "move-leader")
    )
    # What it had accepted is answered before its member goes.
    assert closed < ended < moved
    # Whoever comes next, also after a run that was cut off here, puts it back.
    shell.run(f"{FILES}{ASIDE} bring_back", phase="etcd-member", values=VALUES)
    assert manifest.read_text() == "kind: Pod\n"
    assert shell.calls[-1] == "steady"
    assert not (shell.folder / "home/aside").exists()


@pytest.mark.parametrize("count", [1, 2])
def test_one_of_one_or_two_voters_may_restart(shell: Shell, count: int) -> None:
    voters(shell, THREE[:count], healthy=(SECOND,))
    shell.run(f"{FILES}; before_restart", phase="etcd-member", values=VALUES)


def test_a_member_that_is_down_may_always_be_started(shell: Shell) -> None:
    shell.stub("systemctl", "exit 3")
    shell.stub("etcdctl", "exit 1")
    shell.run(f"{FILES}; before_restart", phase="etcd-member", values=VALUES)


def data_there(shell: Shell) -> None:
    (shell.folder / "data/member/wal").mkdir(parents=True)
    (shell.folder / "data/member/wal/0.wal").touch()


def test_a_member_removed_while_it_was_away_joins_anew_and_its_data_is_kept(shell: Shell) -> None:
    data_there(shell)
    shell.stub("systemctl")
    members(shell, THREE[1])
    out = shell.run(f"{FILES}; set_aside_foreign", phase="etcd-member", values=VALUES)
    assert "was removed from its cluster" in out
    assert not (shell.folder / "data/member").exists()
    assert (shell.folder / "data.removed/member").is_dir()


def test_a_removed_member_that_still_answers_for_itself_joins_anew(shell: Shell) -> None:
    """Started by the node phase it runs for a moment, until the others tell it."""
    data_there(shell)
    shell.stub("systemctl")
    (shell.folder / "rows").write_text(THREE[1] + "\n")
    shell.stub(
        "etcdctl",
        f"""case "$2 $*" in
  *127.0.0.1*) exit 1 ;; # no quorum behind it
  *{SECOND}*"get /kube-ha/"*) echo '"ClusterID" : 7' ;;
  *"get /kube-ha/"*) exit 1 ;;
  *"member list"*) cat "{shell.folder}/rows" ;;
esac""",
    )
    shell.run(f"{FILES}; set_aside_foreign", phase="etcd-member", values=VALUES)
    assert (shell.folder / "data.removed/member").is_dir()


def test_a_member_that_the_others_list_keeps_its_data(shell: Shell) -> None:
    data_there(shell)
    voters(shell, THREE, healthy=(SECOND,))
    shell.run(f"{FILES}; set_aside_foreign", phase="etcd-member", values=VALUES)
    assert (shell.folder / "data/member").is_dir()


def test_a_decommissioned_member_comes_back_as_a_new_one(shell: Shell) -> None:
    """Its data is there, etcd does not run, and the others do not list it."""
    Machine(shell).make()
    shell.run("main", phase="decommission")
    members(shell, THREE[1])
    code = "DATA=$HOME_DIR/etcd; set_aside_foreign; etcd_has_data || echo none"
    out = shell.run(f"{FILES}; {code}", phase="etcd-member", values=VALUES)
    assert out.endswith("none\n")
    assert (shell.folder / "home/etcd.removed/member/wal/0.wal").exists()
    shell.run(f"{FILES}; add_learner {SECOND}", phase="etcd-member", values=VALUES)
    assert changing(shell) == [f"member add master-1 --learner --peer-urls https://{ME}:2380"]


def test_a_member_that_is_down_keeps_its_data(shell: Shell) -> None:
    data_there(shell)
    members(shell, *THREE)
    shell.run(f"{FILES}; set_aside_foreign", phase="etcd-member", values=VALUES)
    assert (shell.folder / "data/member").is_dir()


def test_data_stays_while_no_quorum_answers(shell: Shell) -> None:
    data_there(shell)
    shell.stub("etcdctl", "exit 1")
    shell.run(f"{FILES}; set_aside_foreign", phase="etcd-member", values=VALUES)
    assert (shell.folder / "data/member").is_dir()


def test_a_member_that_is_in_forgets_the_list_by_which_it_joined(shell: Shell) -> None:
    (shell.folder / "bootstrap.env").write_text("ETCD_INITIAL_CLUSTER_STATE=existing\n")
    done = ("set_aside_foreign", "join_or_found", "start_etcd", "promote", "prove_cluster")
    stubs = "; ".join(f"{name}() {{ :; }}" for name in (*done, "wait_for", "settled"))
    code = f"{FILES}; {stubs}; etcd_has_data() {{ true; }}; become_member"
    shell.run(code, phase="etcd-member", values=VALUES)
    assert not (shell.folder / "bootstrap.env").exists()


@pytest.mark.parametrize(("until", "founds"), [(-1, False), (3600, True), (None, True)])
def test_a_text_that_may_found_a_cluster_founds_none_when_its_time_is_over(
    shell: Shell, until: int | None, *, founds: bool
) -> None:
    """It is in the state forever, and whatever makes it run again must not make a second cluster."""
    values = {**VALUES, "BOOTSTRAP": "1", "MEMBERS": f"master-1={ME}"}
    if until is not None:
        values["BOOTSTRAP_UNTIL"] = str(int(time.time()) + until)
    out = shell.run(f"{FILES}; found_cluster", phase="etcd-member", values=values, fails=not founds)
    assert ("bootstrapping the etcd cluster" in out) == founds
    if not founds:
        assert "a new, empty cluster is never made" in out


def test_where_nobody_listens_etcdctl_does_not_try_for_its_whole_time(shell: Shell) -> None:
    shell.stub("etcdctl")
    code = f"etcdctl_at {SECOND} member list || echo refused; answers {SECOND} || echo refused; identities"
    out = shell.run(code, phase="etcd-member", values=VALUES)
    assert out.splitlines() == [f"nobody listens at {SECOND}:2379", "refused"] * 2
    assert shell.calls == []
