"""Only the cluster's own etcd serves: real members without data, with that of another cluster, and with that of before a restore."""

from __future__ import annotations

import hashlib

import pytest

from tests.fuzz.dice import Dice
from tests.scripts.lost_data import (
    ALL,
    LOCAL,
    MANIFEST,
    begin,
    impostor,
    join,
    lose_data,
    run,
    serves,
    voters,
)
from tests.scripts.real_etcd import CLUSTER_ID, Members
from tests.scripts.shell import Shell

MARK = f"kube-ha-cluster:dev:{CLUSTER_ID};"


@pytest.fixture
def three(members: Members) -> Members:
    """Three members that hold /registry/a = written, each with an API server beside it."""
    begin(members)
    return members


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("left", ["nothing", "an empty word", "half a word"])
def test_an_etcd_without_data_does_not_start_and_its_phase_joins_it_anew(
    three: Members, number: int, left: str
) -> None:
    """Whichever member: the one that founded has the same ids again if it founds again."""
    member, other = three[number], three[2]
    lose_data(member)
    if left != "nothing":
        text = "" if left == "an empty word" else "ETCD_INITIAL_CLUSTER_STATE=existing\n"
        (member.pki / "bootstrap.env").write_text(text)
    assert not member.boot()
    assert not serves(three, member)
    assert member.refused.startswith("empty ")
    since = member.refused
    assert not member.boot()
    assert member.refused == since, "the time is that of the first refusal"
    # The disk may only be late: its API server waits for it.
    assert (member.shell.root / MANIFEST).exists()
    join(three, member)
    assert three.get(member, "/registry/a") == "written"
    assert voters(three, other) == ALL
    assert three.cluster_id(member) == three.cluster_id(other)
    assert not member.refused


def test_etcd_itself_founds_nothing_without_the_founding_word(three: Members) -> None:
    """Were there no guard at all."""
    member = three[2]
    lose_data(member)
    systemctl = member.shell.folder / "bin/systemctl"
    text = systemctl.read_text()
    unguarded = text.replace("if ! ours etcd-guard.sh before", "if false")
    assert unguarded != text
    systemctl.write_text(unguarded)
    member.boot()
    assert not serves(three, member)
    log = (member.shell.folder / "etcd.log").read_text()
    assert "could not retrieve cluster information" in log


def test_data_that_comes_back_is_served_again(three: Members) -> None:
    member = three[2]
    member.kill()
    member.data.rename(member.data.with_name("unplugged"))
    assert not member.boot()
    member.data.with_name("unplugged").rename(member.data)
    assert member.boot()
    assert three.get(member, "/registry/a") == "written"
    assert not member.refused


def test_all_machines_were_off_and_the_first_one_is_alone_for_a_while(three: Members) -> None:
    for member in three.all.values():
        member.kill()
    assert three[1].boot()
    assert not serves(three, three[1]), "it has no quorum"
    assert three[1].guard("running").returncode == 0
    assert three[1].is_running
    assert three[2].boot()
    assert three[3].boot()
    for member in three.all.values():
        three.wait_healthy(member)
        assert member.guard("running").returncode == 0
        assert member.is_running
    assert three.get(three[1], "/registry/a") == "written"


@pytest.mark.parametrize("marked", [False, True], ids=["unmarked", "marked by its own backup"])
def test_an_impostor_counts_for_nobody_and_its_phase_brings_it_back(
    members: Members, *, marked: bool
) -> None:
    """As it may run on machines of a version before: nothing was written down there."""
    begin(members, proved=False)
    first, false = members[1], members[2]
    impostor(members, false)
    if marked:
        members.put(first, {"/kube-ha/cluster": MARK})
        members.put(false, {"/kube-ha/cluster": MARK})
    assert serves(members, false)
    assert "only 1 of the other 2" in run(members, first, "etcd_successor", fails=True)
    # Who joins does not join it, though it is asked first.
    third = members[3]
    lose_data(third)
    words = f"{false.name}={false.address} {first.name}={first.address}"
    code = 'rows=$(identities); printf "[%s]\\n" "$(our_cluster "$rows")"'
    assert run(members, third, code, MEMBERS=words).strip() == "[]", "one against one"
    # The quorum is gone with the third one: the impostor is told apart as soon as it is back.
    assert "no etcd member of this cluster answers" in run(
        members, third, "join_or_found", fails=True
    )


def test_the_phase_on_an_impostor_joins_it_to_the_others(members: Members) -> None:
    begin(members, proved=False)
    first, false = members[1], members[2]
    impostor(members, false)
    out = join(members, false)
    assert "is of cluster" in out
    assert members.get(false, "/registry/a") == "written"
    assert voters(members, first) == ALL
    assert (false.shell.folder / "home/etcd.removed/member").is_dir()
    # Its API server ended with the false etcd; the phase brings it back at its end.
    assert not (false.shell.root / MANIFEST).exists()
    assert "pkill -KILL -x kube-apiserver" in false.shell.calls
    run(members, false, "api_server_ready() { :; }; steady() { :; }; recall_api_server; bring_back")
    assert (false.shell.root / MANIFEST).read_text() == LOCAL
    assert (false.shell.state / "etcd.cluster").read_text().split() == [
        members.cluster_id(first),
        "1",
    ]


def test_data_of_another_cluster_does_not_serve_where_it_was_put(three: Members) -> None:
    """A disk was swapped, or restored by hand: what was proved here is another cluster."""
    member = three[3]
    proved = (member.shell.state / "etcd.cluster").read_text()
    lose_data(member)
    alone = f"ETCD_INITIAL_CLUSTER={member.name}=https://{member.address}:2380\n"
    (member.pki / "bootstrap.env").write_text(f"{alone}ETCD_INITIAL_CLUSTER_STATE=new\n")
    assert not member.boot()
    assert member.refused.startswith("foreign ")
    (member.pki / "bootstrap.env").unlink()
    for _ in range(2):
        assert not member.boot()
        assert not serves(three, member)
    assert not (member.shell.root / MANIFEST).exists(), "its API server ended"
    assert (member.shell.state / "etcd.cluster").read_text() == proved
    join(three, member)
    assert voters(three, three[1]) == ALL
    assert three.get(member, "/registry/a") == "written"


def test_the_one_of_most_members_and_the_highest_epoch_is_ours(shell: Shell) -> None:
    """Over drawn answers: never an older epoch, never another stack's, never whoever answers first."""
    cases = []
    for number in range(150):
        dice = Dice(hashlib.sha512(bytes([number])).digest())
        rows = [
            f"10.0.0.{n} {dice.one_of(IDS)} {dice.one_of((1, 1, 1, 7))} "
            f"{dice.one_of(('ours', 'none', 'none', 'other'))}"
            for n in range(dice.between(1, 5))
        ]
        record = f"{dice.one_of(IDS)} {dice.one_of((1, 7, 9))}" if dice.below(2) else ""
        cases.append((rows, record))
    lines = [
        f"printf '%s' '{record}' >$CLUSTER_RECORD; our_cluster '{chr(10).join(rows)}' || true; echo ."
        for rows, record in cases
    ]
    code = "etcdctl_at() { :; }\n" + "\n".join(lines)
    values = {"ADDRESS": "10.0.0.1", "MEMBERS": "", "ARCH_DIR": "etcd-v3", "BOOTSTRAP": "0"}
    out = shell.run(code, phase="etcd-member", values=values)
    answers = out.split(".\n")[:-1]
    assert len(answers) == len(cases)
    decided = 0
    for (rows, record), answer in zip(cases, answers, strict=True):
        known = [row.split() for row in rows if not row.endswith("other")]
        top = max((int(row[2]) for row in known), default=0)
        epoch = int(record.split()[1]) if record else 0
        if not answer:
            continue
        decided += 1
        chosen, of = answer.split()
        newest = [row for row in known if row[1] == chosen and int(row[2]) == top]
        assert int(of) == top >= epoch, (rows, record, answer)
        assert newest, (rows, record, answer)
        told = {row[1] for row in known if int(row[2]) == top}
        if record and record.split()[0] in told and epoch == top:
            assert chosen == record.split()[0], (rows, record, answer)
        if len(told) == 1:
            assert told == {chosen}
    assert decided > 50


# 64 bits, alike in all but the last of them: as floating point these are one number.
IDS = ["14841639068965178418", "14841639068965178419", "14841639068965178420"]
